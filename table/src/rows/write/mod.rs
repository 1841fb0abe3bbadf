//! A write of one row: the request, and its effect on the row that is there.
//!
//! [`decide`](decide::decide) computes the effect without I/O. Its caller reads the row before, if [`RowWrite::needs_row`], and stores
//! the [`Effect`] after.

pub mod decide;
mod key;
#[cfg(test)]
mod tests;

pub use decide::{Decided, Effect, WriteRefusal, decide};
pub use key::WrittenKey;

use crate::wire::filter::Filter;
use crate::{TableDefinition, Value};

/// The most bytes of a row's columns, all versions together.
pub const MAX_ROW_BYTES: u64 = 16 << 20;

/// A write of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowWrite {
    /// Which row.
    pub key: WrittenKey,
    /// The change to it.
    pub change: WriteChange,
    /// Under which condition.
    pub condition: WriteCondition,
    /// The row to answer.
    pub returns: Returns,
}

/// A change to a row.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteChange {
    /// It is replaced by these columns.
    Put(Vec<PutColumn>),
    /// Some of its columns change, one after the other.
    Update(Vec<ColumnChange>),
    /// It is deleted.
    Delete,
}

/// A version to write.
#[derive(Clone, Debug, PartialEq)]
pub struct PutColumn {
    /// The column.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Which version, milliseconds since 1970; `None`: that of the server's time.
    pub timestamp: Option<i64>,
}

/// A change to a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnChange {
    /// It gets this version.
    Put(PutColumn),
    /// It loses the version of this timestamp.
    DeleteVersion {
        /// The column.
        name: String,
        /// The version.
        timestamp: i64,
    },
    /// It loses all versions.
    DeleteAll {
        /// The column.
        name: String,
    },
    /// It gets a version with the sum of the latest one, or of 0, and `by`.
    Increment {
        /// The column.
        name: String,
        /// How much is added.
        by: i64,
    },
}

/// Under which condition a write is done.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteCondition {
    /// Whether the row must be there.
    pub existence: Existence,
    /// A filter that its columns must satisfy; of a row that is not there all are missing.
    pub column: Option<Filter>,
}

/// Whether a row must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    /// It may be there or not.
    Ignore,
    /// It must.
    ExpectExist,
    /// It must not.
    ExpectNotExist,
}

/// The row in the answer to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Returns {
    /// No row.
    Nothing,
    /// The row's key.
    Key,
    /// The row's key, and these columns, which the write increments: each once, in the order of bytes.
    AfterModify(Vec<String>),
}

impl RowWrite {
    /// Whether its effect depends on the row that is there.
    pub fn needs_row(&self, definition: &TableDefinition) -> bool {
        if self.key.is_assigned() {
            return false;
        }
        let is_conditional = self.condition.existence != Existence::Ignore || self.condition.column.is_some();
        match self.change {
            WriteChange::Delete => is_conditional,
            // A row with an auto-increment column is made by the placeholder alone.
            WriteChange::Put(_) => is_conditional || definition.auto_increment().is_some(),
            WriteChange::Update(_) => true,
        }
    }
}
