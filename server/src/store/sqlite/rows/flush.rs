//! The flush of tables: rows in the order of their keys, then counters, so many in a transaction.

use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use rusqlite::{Connection, params};

use super::{CounterKey, TableRows};
use crate::domain::PartitionKey;
use crate::store::StoreError;
use crate::store::sqlite::db::Db;
use crate::store::tables::TableId;

/// Bytes of rows that one transaction writes; its first row always goes.
const MOST_BYTES: usize = 4 << 20;

/// A row for the tables.
pub(in crate::store::sqlite) type FlushedRow = (TableId, Arc<[u8]>, PartitionKey, Arc<[u8]>);

/// A counter for the tables.
pub(in crate::store::sqlite) type FlushedCounter = (CounterKey, PartitionKey, i64);

/// How far a flush has come with what a frozen memtable has of tables.
pub(in crate::store::sqlite) struct RowsFlush {
    tables: Vec<TableId>,
    /// The table whose rows come next, and the last one that is written.
    next: (usize, Option<Arc<[u8]>>),
    counters: Vec<FlushedCounter>,
    next_counter: usize,
    rows_done: usize,
    all_rows: usize,
}

impl RowsFlush {
    /// Plans it.
    pub(in crate::store::sqlite) fn new(rows: &TableRows) -> RowsFlush {
        let state = rows.read();
        let counters = state.counters.iter().map(|(key, (partition, last))| (key.clone(), *partition, *last));
        let mut counters: Vec<FlushedCounter> = counters.collect();
        counters.sort_unstable();
        RowsFlush {
            tables: state.tables.keys().copied().collect(),
            next: (0, None),
            counters,
            next_counter: 0,
            rows_done: 0,
            all_rows: state.tables.values().map(|rows| rows.len()).sum(),
        }
    }

    /// How many rows and counters are written, and how many there are.
    pub(in crate::store::sqlite) fn progress(&self) -> (usize, usize) {
        (self.rows_done + self.next_counter, self.all_rows + self.counters.len())
    }

    /// Writes the next ones, `chunk` at most, in a transaction. `false`: there were none.
    pub(in crate::store::sqlite) async fn step(
        &mut self,
        rows: &TableRows,
        db: &Db,
        chunk: usize,
    ) -> Result<bool, StoreError> {
        if let Some(&table) = self.tables.get(self.next.0) {
            let (puts, deleted) = self.next_rows(rows, table, chunk);
            db.write_bulk(move |connection| {
                write_rows(connection, &puts)?;
                delete(connection, table, &deleted)
            })
            .await?;
            return Ok(true);
        }
        let end = self.counters.len().min(self.next_counter + chunk);
        let some = self.counters[self.next_counter..end].to_vec();
        if some.is_empty() {
            return Ok(false);
        }
        db.write_bulk(move |connection| write_counters(connection, &some)).await?;
        self.next_counter = end;
        Ok(true)
    }

    /// The next rows of `table`, and the keys of those that are deleted.
    fn next_rows(
        &mut self,
        rows: &TableRows,
        table: TableId,
        chunk: usize,
    ) -> (Vec<FlushedRow>, Vec<Arc<[u8]>>) {
        let (mut puts, mut deleted, mut bytes) = (Vec::new(), Vec::new(), 0);
        let state = rows.read();
        let from = self.next.1.take().map_or(Unbounded, Excluded);
        let mut later =
            state.tables.get(&table).into_iter().flat_map(|rows| rows.range((from.clone(), Unbounded)));
        let mut last = None;
        for (key, (partition, row)) in later.by_ref() {
            last = Some(Arc::clone(key));
            match row {
                Some(row) => {
                    bytes += key.len() + row.len();
                    puts.push((table, Arc::clone(key), *partition, Arc::clone(row)));
                }
                None => deleted.push(Arc::clone(key)),
            }
            if puts.len() + deleted.len() >= chunk || bytes >= MOST_BYTES {
                break;
            }
        }
        self.rows_done += puts.len() + deleted.len();
        self.next = if later.next().is_some() { (self.next.0, last) } else { (self.next.0 + 1, None) };
        (puts, deleted)
    }
}

/// Writes rows of tables, in their order.
pub(in crate::store::sqlite) fn write_rows(
    connection: &Connection,
    rows: &[FlushedRow],
) -> Result<(), StoreError> {
    // Nothing refers to a row, so that one in its place is the same as a change of it, for half the searching.
    let mut put = connection
        .prepare_cached("REPLACE INTO table_rows (table_id, key, partition_key, row) VALUES (?, ?, ?, ?)")?;
    for (table, key, partition, row) in rows {
        put.execute(params![table.0.cast_signed(), &key[..], partition.as_str(), &row[..]])?;
    }
    Ok(())
}

/// Writes counters, in their order; one that has come further stays.
pub(in crate::store::sqlite) fn write_counters(
    connection: &Connection,
    counters: &[FlushedCounter],
) -> Result<(), StoreError> {
    let mut put = connection.prepare_cached(
        "INSERT INTO table_counters (table_id, first, partition_key, last_id) VALUES (?, ?, ?, ?)
         ON CONFLICT (table_id, first) DO UPDATE SET last_id = max(last_id, excluded.last_id)",
    )?;
    for ((table, first), partition, last) in counters {
        put.execute(params![table.0.cast_signed(), &first[..], partition.as_str(), last])?;
    }
    Ok(())
}

fn delete(connection: &Connection, table: TableId, keys: &[Arc<[u8]>]) -> Result<(), StoreError> {
    let mut delete = connection.prepare_cached("DELETE FROM table_rows WHERE table_id = ? AND key = ?")?;
    for key in keys {
        delete.execute(params![table.0.cast_signed(), &key[..]])?;
    }
    Ok(())
}
