//! The fields of a protobuf message one after the other, without storing them.
//!
//! A message that repeats an element of two bytes a million times becomes a hundred times as large when it is decoded. Where elements are
//! limited, they are counted with [`WireFields`] first.

use prost::encoding::{WireType, decode_key, decode_varint};

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

    fn slice(&mut self, length: u64) -> Option<&'a [u8]> {
        let (slice, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(slice)
    }

    fn field(&mut self) -> Option<Field<'a>> {
        let (number, kind) = decode_key(&mut self.rest).ok()?;
        let value = match kind {
            WireType::Varint => FieldValue::Varint(decode_varint(&mut self.rest).ok()?),
            WireType::SixtyFourBit => self.slice(8).map(|_| FieldValue::Fixed)?,
            WireType::LengthDelimited => {
                let length = decode_varint(&mut self.rest).ok()?;
                FieldValue::Bytes(self.slice(length)?)
            }
            WireType::ThirtyTwoBit => self.slice(4).map(|_| FieldValue::Fixed)?,
            WireType::StartGroup | WireType::EndGroup => return None,
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
