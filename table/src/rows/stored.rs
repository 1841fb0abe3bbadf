//! A row's columns as bytes. Stored, must stay stable; another format gets another first byte.
//!
//! `1`, when the row was last written, then the cells in their order. A cell: the length of its name and the name, or 0 where it is another
//! version of the column before; its timestamp, less the one before; the type of its value, and the value. Numbers are varints of 7 bits a
//! byte, the lowest first, signed ones in zigzag; a double is 8 bytes, little-endian.

use super::capacity::of_cell;
use crate::{Cell, Value};

/// The columns of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// When the row was last written, by the server's clock: milliseconds since 1970 UTC.
    pub written_at: i64,
    /// By name in the order of bytes; versions of one column from the newest to the oldest.
    pub cells: Vec<Cell>,
}

/// Bytes that are no columns of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are not the columns of a row")]
pub struct Unreadable;

const FORMAT: u8 = 1;
const INTEGER: u8 = 1;
const DOUBLE: u8 = 2;
const FALSE: u8 = 3;
const TRUE: u8 = 4;
const STRING: u8 = 5;
const BLOB: u8 = 6;

impl Columns {
    /// As they are stored.
    pub fn encode(&self) -> Vec<u8> {
        // Of a cell: its timestamp, the type and the lengths.
        let rest = 24 * self.cells.len() as u64;
        let size = 16 + rest + self.cells.iter().map(of_cell).sum::<u64>();
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        bytes.push(FORMAT);
        append_signed(&mut bytes, self.written_at);
        let (mut name, mut timestamp) = ("", self.written_at);
        for cell in &self.cells {
            if cell.name == name {
                bytes.push(0);
            } else {
                append_bytes(&mut bytes, cell.name.as_bytes());
            }
            append_signed(&mut bytes, cell.timestamp.wrapping_sub(timestamp));
            append_value(&mut bytes, &cell.value);
            (name, timestamp) = (&cell.name, cell.timestamp);
        }
        bytes
    }

    /// The stored columns. Bytes that [`encode`](Self::encode) does not make are refused.
    pub fn decode(bytes: &[u8]) -> Result<Columns, Unreadable> {
        let mut rest = bytes;
        if rest.split_off_first() != Some(&FORMAT) {
            return Err(Unreadable);
        }
        let written_at = take_signed(&mut rest)?;
        let mut cells: Vec<Cell> = Vec::new();
        let mut timestamp = written_at;
        while !rest.is_empty() {
            let (name, before) = (take_bytes(&mut rest)?, cells.last());
            let name = match (name, before) {
                ([], Some(before)) => before.name.clone(),
                (name, before) => {
                    let is_next = before.map_or("", |before| &before.name).as_bytes() < name;
                    let name = str::from_utf8(name).ok().filter(|_| is_next).ok_or(Unreadable)?;
                    name.to_owned()
                }
            };
            timestamp = take_signed(&mut rest)?.wrapping_add(timestamp);
            if before.is_some_and(|before| before.name == name && before.timestamp <= timestamp) {
                return Err(Unreadable);
            }
            cells.push(Cell { name, value: take_value(&mut rest)?, timestamp });
        }
        Ok(Columns { written_at, cells })
    }
}

fn append_value(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Integer(number) => {
            bytes.push(INTEGER);
            append_signed(bytes, *number);
        }
        Value::Double(number) => {
            bytes.push(DOUBLE);
            bytes.extend(number.to_le_bytes());
        }
        Value::Boolean(false) => bytes.push(FALSE),
        Value::Boolean(true) => bytes.push(TRUE),
        Value::String(text) => {
            bytes.push(STRING);
            append_bytes(bytes, text.as_bytes());
        }
        Value::Blob(blob) => {
            bytes.push(BLOB);
            append_bytes(bytes, blob);
        }
    }
}

fn take_value(rest: &mut &[u8]) -> Result<Value, Unreadable> {
    match *rest.split_off_first().ok_or(Unreadable)? {
        INTEGER => take_signed(rest).map(Value::Integer),
        DOUBLE => {
            let number = rest.split_off(..8).ok_or(Unreadable)?;
            Ok(Value::Double(f64::from_le_bytes(number.try_into().map_err(|_| Unreadable)?)))
        }
        FALSE => Ok(Value::Boolean(false)),
        TRUE => Ok(Value::Boolean(true)),
        STRING => {
            let text = str::from_utf8(take_bytes(rest)?).map_err(|_| Unreadable)?;
            Ok(Value::String(text.to_owned()))
        }
        BLOB => Ok(Value::Blob(take_bytes(rest)?.to_vec())),
        _ => Err(Unreadable),
    }
}

fn append_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    append_unsigned(bytes, value.len() as u64);
    bytes.extend(value);
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Unreadable> {
    let length = usize::try_from(take_unsigned(rest)?).map_err(|_| Unreadable)?;
    rest.split_off(..length).ok_or(Unreadable)
}

fn append_signed(bytes: &mut Vec<u8>, number: i64) {
    append_unsigned(bytes, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

fn take_signed(rest: &mut &[u8]) -> Result<i64, Unreadable> {
    let number = take_unsigned(rest)?;
    Ok((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
}

fn append_unsigned(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_unsigned(rest: &mut &[u8]) -> Result<u64, Unreadable> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *rest.split_off_first().ok_or(Unreadable)?;
        let part = u64::from(byte & 0x7f);
        number |= part << shift;
        if byte < 0x80 {
            // Refused: a number that is not in its shortest form, or does not fit.
            let is_shortest = byte != 0 || shift == 0;
            return if is_shortest && (number >> shift) == part { Ok(number) } else { Err(Unreadable) };
        }
    }
    Err(Unreadable)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::Integer),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::Double),
            any::<bool>().prop_map(Value::Boolean),
            "\\PC{0,6}".prop_map(Value::String),
            vec(any::<u8>(), 0..200).prop_map(Value::Blob),
        ]
    }

    fn columns() -> impl Strategy<Value = Columns> {
        let versions = btree_map(prop_oneof![any::<i64>(), 0..9_i64], value(), 1..4);
        let columns = btree_map("\\PC{1,3}", versions, 0..5);
        (any::<i64>(), columns).prop_map(|(written_at, columns)| {
            let column = |(name, versions): (String, BTreeMap<i64, Value>)| {
                let cell = move |(timestamp, value)| Cell { name: name.clone(), value, timestamp };
                versions.into_iter().rev().map(cell).collect::<Vec<_>>()
            };
            Columns { written_at, cells: columns.into_iter().flat_map(column).collect() }
        })
    }

    proptest! {
        #[test]
        fn columns_survive_the_way_in_and_out(columns in columns()) {
            prop_assert_eq!(Columns::decode(&columns.encode()), Ok(columns));
        }

        #[test]
        fn any_bytes_are_columns_or_refused(bytes in vec(any::<u8>(), 0..60)) {
            let bytes = [&[FORMAT][..], &bytes].concat();
            if let Ok(columns) = Columns::decode(&bytes) {
                prop_assert_eq!(columns.encode(), bytes);
            }
        }

        #[test]
        fn what_is_cut_or_changed_is_other_columns_or_refused(
            columns in columns(), at in any::<prop::sample::Index>(), byte in any::<u8>()
        ) {
            let mut bytes = columns.encode();
            let at = at.index(bytes.len());
            let cut = Columns::decode(&bytes[..at]);
            prop_assert!(cut.is_err() || cut.is_ok_and(|cut| cut.encode() == bytes[..at]));
            bytes[at] = byte;
            let changed = Columns::decode(&bytes);
            prop_assert!(changed.is_err() || changed.is_ok_and(|changed| changed.encode() == bytes));
        }
    }

    #[test]
    fn the_bytes_stay_as_they_are() {
        let cell = |name: &str, timestamp, value| Cell { name: name.to_owned(), value, timestamp };
        let columns = Columns {
            written_at: 1_000,
            cells: vec![
                cell("a", 1_000, Value::Integer(-1)),
                cell("a", 999, Value::Integer(300)),
                cell("b", 1_000, Value::Double(1.5)),
                cell("c", 1_000, Value::Boolean(true)),
                cell("d", 1_000, Value::Boolean(false)),
                cell("e", 1_000, Value::String("hi".to_owned())),
                cell("f", 1_000, Value::Blob(vec![0xff])),
            ],
        };
        let bytes = [
            &[1, 0xd0, 0x0f][..],
            &[1, b'a', 0, 1, 1],
            &[0, 1, 1, 0xd8, 0x04],
            &[1, b'b', 2, 2, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f],
            &[1, b'c', 0, 4],
            &[1, b'd', 0, 3],
            &[1, b'e', 0, 5, 2, b'h', b'i'],
            &[1, b'f', 0, 6, 1, 0xff],
        ];
        assert_eq!(columns.encode(), bytes.concat());
        assert_eq!(Columns { written_at: 0, cells: Vec::new() }.encode(), [1, 0]);
    }
}
