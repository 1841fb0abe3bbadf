//! Values of columns, and rows made of them.

/// The value of an attribute column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A 64-bit integer.
    Integer(i64),
    /// A finite double.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// A text.
    String(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// The value of a key column. Values of one column are of one type; integers come in their numeric order, texts and bytes in that of
/// their bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyValue {
    /// A 64-bit integer.
    Integer(i64),
    /// A text of at most 1,024 bytes.
    String(String),
    /// At most 1,024 bytes.
    Binary(Vec<u8>),
}

/// The key of a row: each key column's name and value, in the order of the table's definition.
pub type PrimaryKey = Vec<(String, KeyValue)>;

/// One version of an attribute column.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The column.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Which version: milliseconds since 1970 UTC.
    pub timestamp: i64,
}

/// A row as it is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its key.
    pub key: PrimaryKey,
    /// By name in the order of bytes; versions of one column from the newest to the oldest.
    pub cells: Vec<Cell>,
}
