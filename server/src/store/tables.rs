//! Where tables with an auto-increment key column are kept (S19): definitions, rows as bytes, and a counter for each value of a first
//! key column. The layers above give the bytes their meaning; here keys are compared, byte by byte.

use std::sync::Arc;

use async_trait::async_trait;

use super::{CommitError, StoreError};
use crate::domain::{Direction, PartitionKey, Timestamp};

/// The number of a table. A table of the same name that is made later has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u64);

/// A table as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRecord {
    /// Its number.
    pub id: TableId,
    /// The instance that it belongs to.
    pub instance: String,
    /// Its name, once within the instance.
    pub name: String,
    /// Its definition, JSON.
    pub definition: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The outcome of an attempt to make a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableMade {
    /// It is there now.
    Made(TableRecord),
    /// There is one of this name.
    Exists(TableRecord),
    /// The instance has as many tables as it may.
    TooMany,
}

/// The key of a row that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// All of it.
    Whole(Arc<[u8]>),
    /// The store puts the next value of the counter into it; made by [`RowKey::assigned`].
    Assigned {
        /// The whole key, with zeros where the number will be.
        key: Arc<[u8]>,
        /// Where the auto-increment column begins.
        at: usize,
    },
}

/// The first byte of an encoded integer of a key, as in `tidemark_table`; `server/src/table` compares the two.
pub const INTEGER_TAG: u8 = 0x10;

/// The largest number that a counter gives: 2^53 - 1, the largest that every JSON reader keeps exact.
pub const LARGEST_ASSIGNED: i64 = (1 << 53) - 1;

/// Bytes of an encoded integer: [`INTEGER_TAG`] and the number, big-endian with its sign bit turned.
const INTEGER_BYTES: usize = 9;

impl RowKey {
    /// A key whose auto-increment column the store fills. `before`: the encoded columns before it, which begin with the first one;
    /// `after`: those after it.
    pub fn assigned(before: &[u8], after: &[u8]) -> RowKey {
        let mut number = [0; INTEGER_BYTES];
        number[0] = INTEGER_TAG;
        RowKey::Assigned { key: [before, &number, after].concat().into(), at: before.len() }
    }

    /// Its length in bytes; the number counts.
    pub fn length(&self) -> usize {
        match self {
            RowKey::Whole(key) | RowKey::Assigned { key, .. } => key.len(),
        }
    }

    /// The whole key; `number` is what the counter gave.
    pub fn with(self, number: i64) -> Arc<[u8]> {
        match self {
            RowKey::Whole(key) => key,
            RowKey::Assigned { mut key, at } => {
                let number = (number.cast_unsigned() ^ (1 << 63)).to_be_bytes();
                Arc::make_mut(&mut key)[at + 1..at + INTEGER_BYTES].copy_from_slice(&number);
                key
            }
        }
    }

    /// The columns before the number and those after it; of a whole key all of it, and nothing.
    pub fn around_number(&self) -> (&[u8], &[u8]) {
        match self {
            RowKey::Whole(key) => (key, &[]),
            RowKey::Assigned { key, at } => (&key[..*at], &key[at + INTEGER_BYTES..]),
        }
    }
}

/// The state of the row that a change was decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing: it is right whatever is there.
    Anything,
    /// There is no such row.
    Absent,
    /// The row is there, in this revision.
    Revision(u64),
}

/// A change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// Which row.
    pub key: RowKey,
    /// The state that it was decided on; [`Expected::Anything`] for a key that the store assigns.
    pub expected: Expected,
    /// The row from now on; `None`: it is deleted.
    pub row: Option<Arc<[u8]>>,
}

/// Changes of one table under one value of its first key column, all done or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableWrite {
    /// Which table.
    pub table: TableId,
    /// The first 4 hex digits of md5 of the first key column's value.
    pub partition_key: PartitionKey,
    /// The encoded first key column: whose counter assigns.
    pub first: Arc<[u8]>,
    /// In order; a later change of the same row wins.
    pub changes: Vec<RowChange>,
}

/// The outcome of a [`TableWrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableOutcome {
    /// It is durable. For each change the assigned number, if its key has one.
    Stored(Vec<Option<i64>>),
    /// Nothing of it is stored: another process has changed a row that it was decided on. Decide again.
    Stale,
    /// Nothing of it is stored: the table is deleted.
    NoTable,
    /// Nothing of it is stored, and nothing ever will be: its counter has come to the end. The text is for the log.
    Rejected(String),
}

/// A row as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRow {
    /// Its key.
    pub key: Vec<u8>,
    /// Which state of it; another one has another number. 0 where one process alone writes.
    pub revision: u64,
    /// Its columns.
    pub row: Vec<u8>,
}

/// A part of a table, in the order of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableScan {
    /// Which table.
    pub table: TableId,
    /// The partition, if `start` and `end` have the same first key column.
    pub partition_key: Option<PartitionKey>,
    /// Where it begins, inclusive.
    pub start: Vec<u8>,
    /// Where it ends, exclusive; smaller than `start` where it goes backward.
    pub end: Vec<u8>,
    /// Which way.
    pub direction: Direction,
    /// The largest number of rows.
    pub rows: usize,
    /// At most so many bytes of keys and rows; the first row always goes.
    pub bytes: usize,
}

/// Definitions, rows and counters.
///
/// # The contract
///
/// - **Durable first.** `commit` returns `Ok` only when what it stored survives a power cut; readers see it from then on, and never in
///   part.
/// - **Assigned numbers grow** within one table and one value of the first key column: from 1, without repetition, in the order of the
///   commits, through restarts and deletions, and also among several processes on one database. They stay below 2^53.
/// - **One process, one writer.** Where one process alone writes (SQLite), callers guarantee that two commits that change the same row never
///   overlap, and [`Expected`] is not looked at. A row whose number the store assigns is always a new one, so such commits may overlap.
///   Elsewhere [`Expected`] is looked at, under a lock.
/// - **Writes of one call see each other.** Where several change the same row, the later ones count as decided on what the earlier ones
///   make of it: only the first one's [`Expected`] is compared, and if that write is not stored, those that follow it are stale as well.
/// - **After `CommitError::Unknown`** it may or may not be stored; readers see which.
#[async_trait]
pub trait TableStore: Send + Sync + 'static {
    /// Makes a table, if `instance` has none of this name and fewer than `most`.
    async fn create_table(
        &self,
        instance: &str,
        name: &str,
        definition: &str,
        now: Timestamp,
        most: usize,
    ) -> Result<TableMade, StoreError>;

    /// The table of this name.
    async fn table(&self, instance: &str, name: &str) -> Result<Option<TableRecord>, StoreError>;

    /// All tables of an instance, by name in the order of bytes.
    async fn tables(&self, instance: &str) -> Result<Vec<TableRecord>, StoreError>;

    /// The first `limit` tables of all instances whose number is larger than `after`, by number: for what walks over all of them.
    async fn tables_after(&self, after: TableId, limit: usize) -> Result<Vec<TableRecord>, StoreError>;

    /// Asks for as little as there is: whether the store answers.
    async fn ping(&self) -> Result<(), StoreError> {
        self.tables_after(TableId(0), 1).await.map(drop)
    }

    /// Replaces the definition of a table, if it is still `from`. `false`: it is not, or there is no such table.
    async fn redefine_table(&self, table: TableId, from: &str, to: &str) -> Result<bool, StoreError>;

    /// Deletes a table: at once for everybody, its rows later ([`forget_deleted`](Self::forget_deleted)). `false`: there is none.
    async fn delete_table(&self, table: TableId) -> Result<bool, StoreError>;

    /// Removes up to `limit` rows and counters of deleted tables, and tells how many.
    async fn forget_deleted(&self, limit: usize) -> Result<u64, StoreError>;

    /// Makes the writes durable, each whole or not at all; one outcome for each.
    async fn commit(&self, writes: Vec<TableWrite>) -> Result<Vec<TableOutcome>, CommitError>;

    /// Whether calls of `commit` that wait at the same time are made durable together. Where they are, nothing is won by gathering writes
    /// before.
    fn groups_commits(&self) -> bool {
        false
    }

    /// These rows, each by its table, partition and whole key, in order.
    async fn rows(
        &self,
        keys: &[(TableId, PartitionKey, Vec<u8>)],
    ) -> Result<Vec<Option<StoredRow>>, StoreError>;

    /// The rows of a part of a table, and whether it may have more after them.
    async fn scan(&self, scan: &TableScan) -> Result<(Vec<StoredRow>, bool), StoreError>;
}
