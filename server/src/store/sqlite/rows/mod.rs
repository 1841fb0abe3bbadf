//! Rows of tables and their counters (S19), as the journal, the ledger, the memtables and the flush have them. Called by those;
//! what programs ask of tables stands in `tables`.

use std::sync::Arc;

use crate::domain::PartitionKey;
use crate::store::tables::TableId;

pub(super) mod flush;
mod ledger;
mod live;
mod memtable;

pub(super) use ledger::Counters;
pub(super) use live::LiveTables;
pub(super) use memtable::{MemtableRows, TableRows, UnlockedRows};

/// Which counter: the table and the encoded first key column.
pub(super) type CounterKey = (TableId, Arc<[u8]>);

/// A row as it is from now on; `None`: it is deleted.
pub(super) type NewRow = Option<Arc<[u8]>>;

/// The effect of a write to a table, as the journal stores it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowsRecord {
    pub(super) table: TableId,
    pub(super) partition_key: PartitionKey,
    /// The encoded first key column.
    pub(super) first: Arc<[u8]>,
    /// Its counter from now on, where numbers were assigned.
    pub(super) last_id: Option<i64>,
    /// In order; a later change of the same row wins. A row without bytes is there, one that is absent is deleted.
    pub(super) changes: Vec<(Arc<[u8]>, NewRow)>,
}
