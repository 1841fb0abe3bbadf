//! Reads of tables: what memory knows, laid over what the keyed tables have.
//!
//! The tables are read at one moment, which is fixed first. Memory is looked at afterwards, and when no flush has begun in
//! between, both fit together: memory has all that is newer than that moment, and the tables have all that memory has
//! let go. A flush that runs meanwhile cannot show a part of a commit.

use std::cmp::Ordering;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::Weighed;
use crate::domain::{Direction, PartitionKey};
use crate::store::StoreError;
use crate::store::sqlite::memtable::{MemtableSet, MemtableView};
use crate::store::sqlite::rows::NewRow;
use crate::store::sqlite::shared::SqliteShared;
use crate::store::tables::{StoredRow, TableId, TableScan};

/// A flush begins every few seconds at most, and the two looks are microseconds apart.
const ATTEMPTS: usize = 1_000;

const FORWARD: &str =
    "SELECT key, row FROM table_rows WHERE table_id = ? AND key >= ? AND key < ? ORDER BY key";
const BACKWARD: &str =
    "SELECT key, row FROM table_rows WHERE table_id = ? AND key <= ? AND key > ? ORDER BY key DESC";
const ONE: &str = "SELECT row FROM table_rows WHERE table_id = ? AND key = ?";

/// Rows by their keys.
pub(super) async fn rows(
    shared: &Arc<SqliteShared>,
    keys: &[(TableId, PartitionKey, Vec<u8>)],
) -> Result<Vec<Option<StoredRow>>, StoreError> {
    let stored = |((_, _, key), row): (&(_, _, Vec<u8>), Option<Vec<u8>>)| {
        row.map(|row| StoredRow { key: key.clone(), revision: 0, row })
    };
    let keys: Vec<_> = keys.iter().map(|key| (shared.tables.contains(key.0), key)).collect();
    let wanted: Vec<_> = keys.iter().filter(|(lives, _)| *lives).map(|(_, key)| (*key).clone()).collect();
    let in_memory: Option<Vec<NewRow>> = shared.memory.view().table_rows(&wanted).into_iter().collect();
    let found: Vec<Option<Vec<u8>>> = match in_memory {
        Some(all) => all.into_iter().map(|row| row.map(|row| row.to_vec())).collect(),
        None => {
            let _place = shared.db.place()?;
            let through = Arc::clone(shared);
            let look = move |connection: &Connection| {
                at_one_moment(connection, &through.memory, |view| {
                    let newer = view.table_rows(&wanted).into_iter();
                    let one = |((table, _, key), newer): (&(TableId, _, Vec<u8>), Option<NewRow>)| match newer
                    {
                        Some(row) => Ok(row.map(|row| row.to_vec())),
                        None => stored_row(connection, *table, key),
                    };
                    wanted.iter().zip(newer).map(one).collect()
                })
            };
            shared.db.scanners().run(look).await?
        }
    };
    let mut found = found.into_iter();
    let of = |(lives, key): (bool, _)| stored((key, if lives { found.next().flatten() } else { None }));
    Ok(keys.into_iter().map(of).collect())
}

fn stored_row(tables: &Connection, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    let mut statement = tables.prepare_cached(ONE)?;
    let row = statement.query_row(params![table.0.cast_signed(), key], |row| row.get(0));
    Ok(row.optional()?)
}

/// A part of a table.
pub(super) async fn scan(
    shared: &Arc<SqliteShared>,
    scan: &TableScan,
) -> Result<(Vec<StoredRow>, bool), StoreError> {
    if !shared.tables.contains(scan.table) {
        return Ok((Vec::new(), false));
    }
    let _place = shared.db.place()?;
    let (through, scan) = (Arc::clone(shared), scan.clone());
    let look = move |connection: &Connection| {
        at_one_moment(connection, &through.memory, |view| {
            let newer = view.table_scan(&scan);
            ScanAnswer::new(&scan).fill(connection, newer, &scan)
        })
    };
    shared.db.scanners().run(look).await
}

/// Lets `look` look at the tables and at memory as they are at one moment.
fn at_one_moment<T>(
    connection: &Connection,
    memory: &MemtableSet,
    look: impl FnOnce(&MemtableView) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    for _ in 0..ATTEMPTS {
        let before = memory.view().number;
        let moment = connection.unchecked_transaction()?;
        // The first reading fixes it.
        let first = "SELECT count(*) FROM (SELECT 1 FROM tables LIMIT 1)";
        moment.query_row(first, (), |_| Ok(()))?;
        let view = memory.view();
        if view.number == before {
            return look(&view);
        }
    }
    Err(StoreError::unavailable("the tables change too fast to be read"))
}

/// The rows of a scan, as far as they have room.
struct ScanAnswer {
    rows: Vec<StoredRow>,
    room: Weighed,
}

impl ScanAnswer {
    fn new(scan: &TableScan) -> ScanAnswer {
        ScanAnswer { rows: Vec::new(), room: Weighed::new(scan.rows, scan.bytes) }
    }

    /// Merges the tables' rows with the newer ones, which come in the order of the scan. Whether there are more behind it.
    fn fill(
        mut self,
        tables: &Connection,
        newer: Vec<(Arc<[u8]>, NewRow)>,
        scan: &TableScan,
    ) -> Result<(Vec<StoredRow>, bool), StoreError> {
        let (sql, before) = match scan.direction {
            Direction::Forward => (FORWARD, Ordering::Less),
            Direction::Backward => (BACKWARD, Ordering::Greater),
        };
        let mut newer = newer.into_iter().peekable();
        let mut statement = tables.prepare_cached(sql)?;
        let mut stored = statement.query(params![scan.table.0.cast_signed(), scan.start, scan.end])?;
        while let Some(row) = stored.next()? {
            let blob = |at| {
                let value = row.get_ref(at).map_err(StoreError::corrupt)?;
                value.as_blob().map_err(StoreError::corrupt)
            };
            let key = blob(0)?;
            while let Some((earlier, row)) = newer.next_if(|(newer, _)| (**newer).cmp(key) == before) {
                if !self.push_newer(&earlier, row) {
                    return Ok((self.rows, true));
                }
            }
            let room = match newer.next_if(|(newer, _)| **newer == *key) {
                Some((key, row)) => self.push_newer(&key, row),
                None => self.push(key, blob(1)?),
            };
            if !room {
                return Ok((self.rows, true));
            }
        }
        let whole = newer.all(|(key, row)| self.push_newer(&key, row));
        Ok((self.rows, !whole))
    }

    fn push_newer(&mut self, key: &[u8], row: NewRow) -> bool {
        // One that is deleted takes no room.
        row.is_none_or(|row| self.push(key, &row))
    }

    fn push(&mut self, key: &[u8], row: &[u8]) -> bool {
        let room = self.room.has_room(key.len() + row.len());
        if room {
            self.rows.push(StoredRow { key: key.to_vec(), revision: 0, row: row.to_vec() });
        }
        room
    }
}
