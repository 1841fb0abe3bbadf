//! Looking rows of tables up in memory: the memtables of a [`MemtableView`] seen as one.
//!
//! Reads look at all memtables under their locks, so that they see a commit whole or not at all.

use std::iter::Peekable;
use std::ops::Bound::{self, Excluded, Included};
use std::sync::Arc;

use super::Weighed;
use crate::domain::{Direction, PartitionKey};
use crate::store::sqlite::memtable::MemtableView;
use crate::store::sqlite::rows::{CounterKey, MemtableRows, NewRow, UnlockedRows};
use crate::store::tables::{TableId, TableScan};

impl MemtableView {
    /// The latest number of a counter, if it is in memory.
    pub(in crate::store::sqlite) fn table_counter(&self, key: &CounterKey) -> Option<i64> {
        let of = |state: &UnlockedRows| state.counters.get(key).map(|(_, last)| *last);
        self.memtables.iter().rev().find_map(|memtable| of(&memtable.tables.read()))
    }

    /// These rows, as far as memory knows what became of them. All at one moment.
    pub(in crate::store::sqlite) fn table_rows(
        &self,
        keys: &[(TableId, PartitionKey, Vec<u8>)],
    ) -> Vec<Option<NewRow>> {
        let states: Vec<_> = self.memtables.iter().rev().map(|memtable| memtable.tables.read()).collect();
        let newest = |(table, _, key): &(TableId, PartitionKey, Vec<u8>)| {
            states.iter().find_map(|state| Some(state.tables.get(table)?.get(&key[..])?.1.clone()))
        };
        keys.iter().map(newest).collect()
    }

    /// The rows that memory has of a part of a table, in the order of the scan, all at one moment: as many as the answer can need.
    pub(in crate::store::sqlite) fn table_scan(&self, scan: &TableScan) -> Vec<(Arc<[u8]>, NewRow)> {
        let states: Vec<_> = self.memtables.iter().rev().map(|memtable| memtable.tables.read()).collect();
        let range = match scan.direction {
            Direction::Forward if scan.start < scan.end => {
                (Included(&scan.start[..]), Excluded(&scan.end[..]))
            }
            Direction::Backward if scan.end < scan.start => {
                (Excluded(&scan.end[..]), Included(&scan.start[..]))
            }
            _ => return Vec::new(),
        };
        let parts = states.iter().filter_map(|state| state.tables.get(&scan.table));
        let mut parts: Vec<_> = parts.map(|rows| in_order(rows, range, scan.direction).peekable()).collect();
        let (mut merged, mut answer) = (Vec::new(), Weighed::new(scan.rows, scan.bytes));
        while let Some((key, row)) = next_of(&mut parts, scan.direction) {
            let is_row = row.as_ref().map(|row| key.len() + row.len());
            merged.push((key, row));
            // Behind a row that has no room any more nothing can be needed.
            if is_row.is_some_and(|weight| !answer.has_room(weight)) {
                break;
            }
        }
        merged
    }
}

fn in_order<'a>(
    rows: &'a MemtableRows,
    range: (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
) -> Box<dyn Iterator<Item = (&'a Arc<[u8]>, &'a NewRow)> + 'a> {
    let range = rows.range::<[u8], _>(range).map(|(key, (_, row))| (key, row));
    match direction {
        Direction::Forward => Box::new(range),
        Direction::Backward => Box::new(range.rev()),
    }
}

/// The next row of the parts, newest first, that have one; older states of it are passed over.
fn next_of<'a>(
    parts: &mut [Peekable<impl Iterator<Item = (&'a Arc<[u8]>, &'a NewRow)>>],
    direction: Direction,
) -> Option<(Arc<[u8]>, NewRow)> {
    let heads = parts.iter_mut().filter_map(|part| part.peek().map(|(key, _)| *key));
    let next = match direction {
        Direction::Forward => heads.min(),
        Direction::Backward => heads.max(),
    };
    let next = Arc::clone(next?);
    let mut states = parts.iter_mut().filter_map(|part| part.next_if(|(key, _)| **key == next));
    let newest = states.next().map(|(_, row)| row.clone());
    states.for_each(drop);
    newest.map(|row| (next, row))
}
