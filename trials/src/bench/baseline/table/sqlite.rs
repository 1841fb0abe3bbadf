//! The bare SQLite loop of tables: the same rows and counters straight into the same tables, with the same durability.
//!
//! No network, no queue, no checks: one thread, one connection, prepared statements, each batch sorted by key.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, params};

use super::{First, TABLE_ID, WRITTEN_AT};
use crate::Result;
use crate::bench::baseline::sqlite;
use crate::bench::tables;

/// A fresh database with all tables.
pub(crate) struct BareTable {
    connection: Connection,
    firsts: BTreeMap<usize, First>,
}

impl BareTable {
    pub(crate) fn open(folder: &Path) -> Result<BareTable> {
        Ok(BareTable { connection: sqlite::open(folder)?, firsts: BTreeMap::new() })
    }

    /// Stores a row with a text of `bytes` under each of `firsts`, so many in a durable transaction; rows a second.
    pub(crate) fn store(&mut self, firsts: &[usize], batch: usize, bytes: usize) -> Result<f64> {
        for first in firsts {
            self.firsts.entry(*first).or_insert_with(|| First::new(*first));
        }
        let row = tables::stored_row(bytes, WRITTEN_AT);
        let began = Instant::now();
        for firsts in firsts.chunks(batch) {
            self.store_batch(firsts, &row)?;
        }
        Ok(firsts.len() as f64 / began.elapsed().as_secs_f64())
    }

    fn store_batch(&mut self, firsts: &[usize], row: &[u8]) -> Result<()> {
        let mut keys = Vec::with_capacity(firsts.len());
        for at in firsts {
            let Some(first) = self.firsts.get_mut(at) else { continue };
            keys.push((first.next_key(), *at));
        }
        keys.sort_unstable();
        let mut moved: Vec<usize> = keys.iter().map(|(_, at)| *at).collect();
        // Of one value all are together: the order of the keys is that of the values.
        moved.dedup();
        let transaction = self.connection.transaction()?;
        let mut insert = transaction.prepare_cached("INSERT INTO table_rows VALUES (?, ?, ?, ?)")?;
        for (key, at) in &keys {
            insert.execute(params![TABLE_ID, key, self.firsts[at].partition_key, row])?;
        }
        let mut count = transaction.prepare_cached(
            "INSERT INTO table_counters VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET last_id = excluded.last_id",
        )?;
        for at in moved {
            let First { encoded, partition_key, last_id, .. } = &self.firsts[&at];
            count.execute(params![TABLE_ID, encoded, partition_key, last_id])?;
        }
        drop((insert, count));
        Ok(transaction.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_stores_rows_and_counters() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bare = BareTable::open(folder.path()).expect("opens");
        bare.store(&[1, 1, 2, 1], 3, 10).expect("stored");
        bare.store(&[2], 3, 10).expect("stored");
        let one =
            |sql: &str| -> i64 { bare.connection.query_row(sql, [], |row| row.get(0)).expect("counted") };
        assert_eq!(one("SELECT count(*) FROM table_rows"), 5);
        assert_eq!(one("SELECT count(*) FROM table_counters"), 2);
        assert_eq!(one("SELECT max(last_id) FROM table_counters"), 3);
    }
}
