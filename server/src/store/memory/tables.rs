//! Tables in memory: for tests of what stands above storage, and as the model of the real stores.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound::{Excluded, Included};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::domain::{Direction, PartitionKey, Timestamp};
use crate::store::tables::{
    Expected, LARGEST_ASSIGNED, RowChange, RowKey, StoredRow, TableId, TableMade, TableOutcome, TableRecord,
    TableScan, TableStore, TableWrite,
};
use crate::store::{CommitError, StoreError};

/// A [`TableStore`] that forgets everything when it is dropped. It compares revisions, as a store does that several processes use.
#[derive(Default)]
pub struct MemoryTables {
    state: Mutex<TablesState>,
}

#[derive(Default)]
struct TablesState {
    tables: BTreeMap<TableId, TableRecord>,
    last_table: u64,
    deleted: BTreeMap<TableId, MemoryTable>,
    rows: BTreeMap<TableId, MemoryTable>,
    revision: u64,
}

#[derive(Default)]
struct MemoryTable {
    /// Each with its revision.
    rows: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    /// By the encoded first key column.
    counters: BTreeMap<Vec<u8>, i64>,
}

impl MemoryTables {
    /// Without tables.
    pub fn new() -> MemoryTables {
        MemoryTables::default()
    }

    fn state(&self) -> MutexGuard<'_, TablesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TablesState {
    fn named(&self, instance: &str, name: &str) -> Option<&TableRecord> {
        self.tables.values().find(|table| table.instance == instance && table.name == name)
    }

    /// `changed`: rows that this call has changed; `lost`: those that it would have.
    fn write(
        &mut self,
        write: TableWrite,
        changed: &mut HashSet<(TableId, Vec<u8>)>,
        lost: &mut HashSet<(TableId, Vec<u8>)>,
    ) -> TableOutcome {
        let Some(table) = self.rows.get_mut(&write.table) else { return TableOutcome::NoTable };
        let whole = |change: &RowChange| match &change.key {
            RowKey::Whole(key) => Some((write.table, key.to_vec())),
            RowKey::Assigned { .. } => None,
        };
        let is_stale = write.changes.iter().any(|change| {
            let Some(key) = whole(change) else { return false };
            let found = table.rows.get(&key.1).map(|(revision, _)| *revision);
            let fits = match change.expected {
                _ if changed.contains(&key) => true,
                Expected::Anything => true,
                Expected::Absent => found.is_none(),
                Expected::Revision(revision) => found == Some(revision),
            };
            lost.contains(&key) || !fits
        });
        let last = table.counters.get(&write.first[..]).copied().unwrap_or(0);
        let assigned = write.changes.iter().filter(|change| matches!(change.key, RowKey::Assigned { .. }));
        let assigned = assigned.count() as i64;
        let refused = if is_stale {
            Some(TableOutcome::Stale)
        } else if assigned > 0 && last + assigned > LARGEST_ASSIGNED {
            Some(TableOutcome::Rejected(format!("a counter of table {} has reached its end", write.table.0)))
        } else {
            None
        };
        if let Some(outcome) = refused {
            lost.extend(write.changes.iter().filter_map(whole));
            return outcome;
        }
        changed.extend(write.changes.iter().filter_map(whole));
        let mut numbers = Vec::with_capacity(write.changes.len());
        let mut next = last;
        for change in write.changes {
            let number = match change.key {
                RowKey::Whole(_) => None,
                RowKey::Assigned { .. } => {
                    next += 1;
                    Some(next)
                }
            };
            numbers.push(number);
            let key = change.key.with(next);
            self.revision += 1;
            match change.row {
                Some(row) => _ = table.rows.insert(key.to_vec(), (self.revision, row.to_vec())),
                None => _ = table.rows.remove(&key[..]),
            }
        }
        if assigned > 0 {
            table.counters.insert(write.first.to_vec(), next);
        }
        TableOutcome::Stored(numbers)
    }
}

#[async_trait]
impl TableStore for MemoryTables {
    async fn create_table(
        &self,
        instance: &str,
        name: &str,
        definition: &str,
        now: Timestamp,
        most: usize,
    ) -> Result<TableMade, StoreError> {
        let mut state = self.state();
        if let Some(table) = state.named(instance, name) {
            return Ok(TableMade::Exists(table.clone()));
        }
        if state.tables.values().filter(|table| table.instance == instance).count() >= most {
            return Ok(TableMade::TooMany);
        }
        state.last_table += 1;
        let id = TableId(state.last_table);
        let (instance, name, definition) = (instance.to_owned(), name.to_owned(), definition.to_owned());
        let table = TableRecord { id, instance, name, definition, created_at: now };
        state.tables.insert(id, table.clone());
        state.rows.insert(id, MemoryTable::default());
        Ok(TableMade::Made(table))
    }

    async fn table(&self, instance: &str, name: &str) -> Result<Option<TableRecord>, StoreError> {
        Ok(self.state().named(instance, name).cloned())
    }

    async fn tables(&self, instance: &str) -> Result<Vec<TableRecord>, StoreError> {
        let state = self.state();
        let mut tables: Vec<TableRecord> =
            state.tables.values().filter(|table| table.instance == instance).cloned().collect();
        tables.sort_unstable_by(|one, next| one.name.cmp(&next.name));
        Ok(tables)
    }

    async fn tables_after(&self, after: TableId, limit: usize) -> Result<Vec<TableRecord>, StoreError> {
        let later = (Excluded(after), std::ops::Bound::Unbounded);
        Ok(self.state().tables.range(later).take(limit).map(|(_, table)| table.clone()).collect())
    }

    async fn redefine_table(&self, table: TableId, from: &str, to: &str) -> Result<bool, StoreError> {
        let mut state = self.state();
        let known = state.tables.get_mut(&table).filter(|table| table.definition == from);
        Ok(known.map(|table| table.definition = to.to_owned()).is_some())
    }

    async fn delete_table(&self, table: TableId) -> Result<bool, StoreError> {
        let mut state = self.state();
        let known = state.tables.remove(&table).is_some();
        if let Some(rows) = state.rows.remove(&table) {
            state.deleted.insert(table, rows);
        }
        Ok(known)
    }

    async fn forget_deleted(&self, limit: usize) -> Result<u64, StoreError> {
        let mut state = self.state();
        let mut forgotten = 0;
        while let Some(mut table) = state.deleted.first_entry() {
            let MemoryTable { rows, counters } = table.get_mut();
            while forgotten < limit && (rows.pop_first().is_some() || counters.pop_first().is_some()) {
                forgotten += 1;
            }
            if !(rows.is_empty() && counters.is_empty()) {
                break;
            }
            table.remove();
        }
        Ok(forgotten as u64)
    }

    async fn commit(&self, writes: Vec<TableWrite>) -> Result<Vec<TableOutcome>, CommitError> {
        let mut state = self.state();
        let (mut changed, mut lost) = (HashSet::new(), HashSet::new());
        Ok(writes.into_iter().map(|write| state.write(write, &mut changed, &mut lost)).collect())
    }

    async fn rows(
        &self,
        keys: &[(TableId, PartitionKey, Vec<u8>)],
    ) -> Result<Vec<Option<StoredRow>>, StoreError> {
        let state = self.state();
        let row = |(table, _, key): &(TableId, PartitionKey, Vec<u8>)| {
            let (revision, row) = state.rows.get(table)?.rows.get(key)?;
            Some(StoredRow { key: key.clone(), revision: *revision, row: row.clone() })
        };
        Ok(keys.iter().map(row).collect())
    }

    async fn scan(&self, scan: &TableScan) -> Result<(Vec<StoredRow>, bool), StoreError> {
        let state = self.state();
        let Some(table) = state.rows.get(&scan.table) else { return Ok((Vec::new(), false)) };
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let mut take = |(key, (revision, row)): (&Vec<u8>, &(u64, Vec<u8>))| {
            bytes += key.len() + row.len();
            if rows.len() >= scan.rows || (bytes > scan.bytes && !rows.is_empty()) {
                return false;
            }
            rows.push(StoredRow { key: key.clone(), revision: *revision, row: row.clone() });
            true
        };
        let whole = match scan.direction {
            Direction::Forward if scan.start >= scan.end => true,
            Direction::Backward if scan.start <= scan.end => true,
            Direction::Forward => {
                let range = (Included(&scan.start[..]), Excluded(&scan.end[..]));
                table.rows.range::<[u8], _>(range).all(&mut take)
            }
            Direction::Backward => {
                let range = (Excluded(&scan.end[..]), Included(&scan.start[..]));
                table.rows.range::<[u8], _>(range).rev().all(&mut take)
            }
        };
        Ok((rows, !whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_contract_holds() {
        crate::store::conformance::tables::run(&MemoryTables::new(), true).await;
    }
}
