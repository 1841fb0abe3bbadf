//! The definition of a table: its key columns and its options. Stored as JSON.

use serde::{Deserialize, Serialize};

/// The type of a key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyType {
    /// 64-bit integers.
    Integer,
    /// Texts.
    String,
    /// Bytes.
    Binary,
}

/// The type that a table declares for an attribute column; told again, never enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// 64-bit integers.
    Integer,
    /// Doubles.
    Double,
    /// True or false.
    Boolean,
    /// Texts.
    String,
    /// Bytes.
    Blob,
}

/// A column of the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyColumnDefinition {
    /// Its name, 1 to 255 bytes.
    pub name: String,
    /// Its type.
    pub kind: KeyType,
    /// Whether the store assigns its values (S19): at most one column, an integer, never the first.
    #[serde(default)]
    pub auto_increment: bool,
}

/// The options of a table that may be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableOptions {
    /// After how many seconds a version of a column is gone; -1: never; else 86,400 or more.
    pub time_to_live: i32,
    /// How many versions of a column are kept; 1 or more.
    pub max_versions: i32,
    /// How many seconds a given timestamp may lie away from the server's clock; 1 or more.
    pub deviation_seconds: i64,
    /// Whether UpdateRow is allowed.
    pub allow_update: bool,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions { time_to_live: -1, max_versions: 1, deviation_seconds: 86_400, allow_update: true }
    }
}

/// The throughput that a table's users reserved: told again, and without effect here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedThroughput {
    /// Units of reading a second; 0 or more.
    pub read: i32,
    /// Units of writing a second; 0 or more.
    pub write: i32,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDefinition {
    /// Its name within its instance.
    pub name: String,
    /// 1 to 4 columns; the first one's value says which partition a row is in.
    pub key: Vec<KeyColumnDefinition>,
    /// Declared attribute columns, at most 32; any other column may be written, too.
    #[serde(default)]
    pub columns: Vec<(String, ColumnType)>,
    /// Its options.
    pub options: TableOptions,
    /// The throughput that was reserved for it.
    #[serde(default)]
    pub reserved: ReservedThroughput,
}

impl TableDefinition {
    /// A table `t` with these key columns, of which the last may be assigned by the store.
    #[cfg(test)]
    pub(crate) fn of_test(key: &[(&str, KeyType)], assigns_last: bool) -> TableDefinition {
        let column = |(at, (name, kind)): (usize, &(&str, KeyType))| KeyColumnDefinition {
            name: (*name).to_owned(),
            kind: *kind,
            auto_increment: assigns_last && at + 1 == key.len(),
        };
        TableDefinition {
            name: "t".to_owned(),
            key: key.iter().enumerate().map(column).collect(),
            columns: Vec::new(),
            options: TableOptions::default(),
            reserved: ReservedThroughput::default(),
        }
    }

    /// The place of the auto-increment column within the key.
    pub fn auto_increment(&self) -> Option<usize> {
        self.key.iter().position(|column| column.auto_increment)
    }
}
