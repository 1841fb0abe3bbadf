//! Rows of tables that are in the journal and not yet, or only just, in the keyed tables: a part of each memtable.
//!
//! The newest state of each row counts; a deletion hides what the tables, or older memtables, have.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::{CounterKey, NewRow, RowsRecord};
use crate::domain::PartitionKey;
use crate::store::tables::TableId;

/// The weight of a row or a counter in memory besides its bytes.
const FIXED: usize = 160;

/// The rows of one table, each with its partition.
pub(in crate::store::sqlite) type MemtableRows = BTreeMap<Arc<[u8]>, (PartitionKey, NewRow)>;

/// The rows and counters of tables in one memtable.
#[derive(Default)]
pub(in crate::store::sqlite) struct TableRows {
    state: RwLock<UnlockedRows>,
}

/// The same, unlocked.
#[derive(Default)]
pub(in crate::store::sqlite) struct UnlockedRows {
    pub(in crate::store::sqlite) tables: BTreeMap<TableId, MemtableRows>,
    /// The latest numbers.
    pub(in crate::store::sqlite) counters: HashMap<CounterKey, (PartitionKey, i64)>,
}

impl TableRows {
    /// Takes in what is durable, and tells by how much it has grown, in rows and bytes.
    pub(in crate::store::sqlite) fn apply<'a>(
        &self,
        records: impl Iterator<Item = &'a RowsRecord>,
    ) -> (usize, usize) {
        let (mut more_rows, mut more_bytes) = (0, 0);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        for record in records {
            let rows = state.tables.entry(record.table).or_default();
            for (key, row) in &record.changes {
                more_rows += 1;
                more_bytes += key.len() + row.as_ref().map_or(0, |row| row.len()) + FIXED;
                rows.insert(Arc::clone(key), (record.partition_key, row.clone()));
            }
            if let Some(last_id) = record.last_id {
                let key = (record.table, Arc::clone(&record.first));
                more_bytes += record.first.len() + FIXED;
                state.counters.insert(key, (record.partition_key, last_id));
            }
        }
        (more_rows, more_bytes)
    }

    /// Shows it; nobody changes it meanwhile.
    pub(in crate::store::sqlite) fn read(&self) -> RwLockReadGuard<'_, UnlockedRows> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}
