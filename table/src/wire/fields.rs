//! The fields of a protobuf message one after the other, without storing them.
//!
//! A message that repeats an element of two bytes a million times becomes a hundred times as large when it is decoded. Where elements are
//! limited, they are counted with [`WireFields`] first.

use crate::error::TableError;

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its number.
    pub number: u32,
    /// Its value.
    pub value: FieldValue<'a>,
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// Integers, booleans, enums.
    Varint(u64),
    /// Texts, bytes, messages.
    Bytes(&'a [u8]),
    /// Numbers of 4 or 8 bytes; no message of tables has any.
    Fixed,
}

/// The fields of a message, until the first error.
#[derive(Clone, Debug)]
pub struct WireFields<'a> {
    rest: &'a [u8],
}

impl<'a> WireFields<'a> {
    /// Those of this message.
    pub fn of(message: &'a [u8]) -> WireFields<'a> {
        WireFields { rest: message }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7F);
            value |= bits << shift;
            if byte & 0x80 == 0 {
                // The tenth byte holds one bit.
                return (shift < 63 || bits <= 1).then_some(value);
            }
        }
        None
    }

    fn slice(&mut self, length: u64) -> Option<&'a [u8]> {
        let (slice, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(slice)
    }

    fn field(&mut self) -> Option<Field<'a>> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
        let value = match key & 7 {
            0 => FieldValue::Varint(self.varint()?),
            1 => self.slice(8).map(|_| FieldValue::Fixed)?,
            2 => {
                let length = self.varint()?;
                FieldValue::Bytes(self.slice(length)?)
            }
            5 => self.slice(4).map(|_| FieldValue::Fixed)?,
            _ => return None,
        };
        Some(Field { number, value })
    }
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<Field<'a>, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(
            field
                .ok_or_else(|| TableError::invalid("The request is malformed: its protobuf cannot be read.")),
        )
    }
}
