//! PlainBuffer: how keys and rows lie inside the messages. All integers are little-endian.
//!
//! ```text
//! message  0x75 as 4 bytes, then rows
//! row      01 key cells, 02 attribute cells, 08 if the row is to be deleted, 09 checksum of the row
//! cell     03, 04 length name, [05 length type data], [06 operation], [07 timestamp, 8 bytes], 0A checksum of the cell
//! ```
//!
//! Sections without cells, and parts that a cell does not have, are left out with their tags. [`decode_row`] and [`decode_key`] read what
//! clients send, and [`encode_sent`] writes; [`encode_rows`] and [`encode_key`] write what they are answered, and [`decode_rows`] reads.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub(super) use decode::bare_value;
pub use decode::{decode_key, decode_row, decode_rows};
pub use encode::{encode_key, encode_rows, encode_sent};

use crate::value::{KeyValue, Value};

/// The first integer of a message.
const HEADER: u32 = 0x75;

/// The tags of rows and cells.
mod tag {
    pub(super) const KEY: u8 = 0x01;
    pub(super) const ATTRIBUTES: u8 = 0x02;
    pub(super) const CELL: u8 = 0x03;
    pub(super) const NAME: u8 = 0x04;
    pub(super) const VALUE: u8 = 0x05;
    pub(super) const OPERATION: u8 = 0x06;
    pub(super) const TIMESTAMP: u8 = 0x07;
    pub(super) const DELETE: u8 = 0x08;
    pub(super) const ROW_CHECKSUM: u8 = 0x09;
    pub(super) const CELL_CHECKSUM: u8 = 0x0A;
}

/// The types of values.
mod kind {
    pub(super) const INTEGER: u8 = 0x00;
    pub(super) const DOUBLE: u8 = 0x01;
    pub(super) const BOOLEAN: u8 = 0x02;
    pub(super) const STRING: u8 = 0x03;
    pub(super) const NULL: u8 = 0x06;
    pub(super) const BLOB: u8 = 0x07;
    pub(super) const INF_MIN: u8 = 0x09;
    pub(super) const INF_MAX: u8 = 0x0A;
    pub(super) const AUTO_INCREMENT: u8 = 0x0B;
}

/// The most cells that a row may have.
pub const MAX_CELLS: usize = 1024;

/// The most columns of a key that are read. Tables have at most 4; a few more are let through, so that they are refused by name.
pub const MAX_KEY_PARTS: usize = 16;

/// A row as a client sent it: well-formed, its checksums right, and nothing else checked.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedRow {
    /// Its key, in the order sent.
    pub key: Vec<(String, KeyPart)>,
    /// Its cells, in the order sent.
    pub cells: Vec<ReceivedCell>,
    /// Whether it has the marker of a row to delete.
    pub delete: bool,
}

/// One place of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// A value.
    Value(KeyValue),
    /// Before every value; a bound of a range.
    InfMin,
    /// After every value; a bound of a range.
    InfMax,
    /// The placeholder for a value that the store assigns (S19).
    AutoIncrement,
}

/// A cell as a client sent it. Which parts belong together depends on the request, and is not checked here.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedCell {
    /// The column.
    pub name: String,
    /// The value to put, or the integer to add.
    pub value: Option<Value>,
    /// The operation on the column. `None`: the value is put.
    pub operation: Option<CellOperation>,
    /// Which version, milliseconds since 1970.
    pub timestamp: Option<i64>,
}

/// An operation on a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellOperation {
    /// All versions are deleted.
    DeleteAll,
    /// The version of the timestamp is deleted.
    DeleteOne,
    /// The value is added.
    Increment,
}

impl CellOperation {
    /// As on the wire.
    fn code(self) -> u8 {
        match self {
            CellOperation::DeleteAll => 1,
            CellOperation::DeleteOne => 3,
            CellOperation::Increment => 4,
        }
    }

    fn from_code(code: u8) -> Option<CellOperation> {
        let all = [CellOperation::DeleteAll, CellOperation::DeleteOne, CellOperation::Increment];
        all.into_iter().find(|operation| operation.code() == code)
    }
}
