//! The state that decides about writes to tables: the numbers that come next under each value of a first key column.
//!
//! Pure. The committer, its only owner, asks what a call needs, fetches what is missing, and judges write after write;
//! each moves its counter at once, so that the next one gets the next number. So numbers grow in the order of the
//! journal. After a failed append it is thrown away and learnt anew.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use quick_cache::unsync::Cache;

use super::{CounterKey, RowsRecord};
use crate::store::tables::{LARGEST_ASSIGNED, RowKey, TableOutcome, TableWrite};

/// The counters that are known.
pub(in crate::store::sqlite) struct Counters {
    /// Where those begin that there are none of yet: numbers up to it may have been given in an earlier life of the data.
    floor: i64,
    /// Those of this batch; between two batches they are among the remembered ones.
    known: HashMap<CounterKey, i64>,
    /// The least used counter goes first.
    remembered: Option<Cache<CounterKey, i64>>,
}

impl Counters {
    /// None; those that are not stored continue after `floor`.
    pub(in crate::store::sqlite) fn new(floor: i64) -> Counters {
        Counters { floor, known: HashMap::new(), remembered: None }
    }

    /// After which number a new counter begins.
    pub(in crate::store::sqlite) fn floor(&self) -> i64 {
        self.floor
    }

    /// Adds to `needs` the counter of `write`, if it has to be learnt.
    pub(in crate::store::sqlite) fn needs(&mut self, write: &TableWrite, needs: &mut HashSet<CounterKey>) {
        if !write.changes.iter().any(|change| matches!(change.key, RowKey::Assigned { .. })) {
            return;
        }
        let key = counter_of(write);
        if self.known.contains_key(&key) {
            return;
        }
        match self.remembered.as_ref().and_then(|remembered| remembered.get(&key)) {
            Some(last) => _ = self.known.insert(key, *last),
            None => _ = needs.insert(key),
        }
    }

    /// Learns the latest number of a counter.
    pub(in crate::store::sqlite) fn learn(&mut self, key: CounterKey, last: i64) {
        self.known.insert(key, last);
    }

    /// Decides about a write: the record to store, or why nothing is stored. The counter that it needs must have been learnt.
    pub(in crate::store::sqlite) fn judge(
        &mut self,
        write: TableWrite,
    ) -> (Option<RowsRecord>, TableOutcome) {
        let assigns = |write: &TableWrite| {
            write.changes.iter().filter(|change| matches!(change.key, RowKey::Assigned { .. })).count() as i64
        };
        let assigned = assigns(&write);
        let key = counter_of(&write);
        let mut last = 0;
        if assigned > 0 {
            let known = self.known.entry(key.clone()).or_insert(0);
            last = *known;
            if last > LARGEST_ASSIGNED - assigned {
                let why = format!("a counter of table {} has reached its end", write.table.0);
                return (None, TableOutcome::Rejected(why));
            }
            *known = last + assigned;
        }
        let mut numbers = Vec::with_capacity(write.changes.len());
        let mut changes = Vec::with_capacity(write.changes.len());
        for change in write.changes {
            let is_assigned = matches!(change.key, RowKey::Assigned { .. });
            last += i64::from(is_assigned);
            numbers.push(is_assigned.then_some(last));
            changes.push((change.key.with(last), change.row));
        }
        let outcome = TableOutcome::Stored(numbers);
        if changes.is_empty() {
            return (None, outcome);
        }
        let last_id = (assigned > 0).then_some(last);
        let (table, first) = key;
        (Some(RowsRecord { table, partition_key: write.partition_key, first, last_id, changes }), outcome)
    }

    /// Ends a batch: up to `most` counters are remembered. Forgotten ones are learnt again when they are needed.
    pub(in crate::store::sqlite) fn settle(&mut self, most: usize) {
        if self.known.is_empty() {
            return;
        }
        let remembered = self.remembered.get_or_insert_with(|| Cache::new(most.max(1)));
        for (key, last) in self.known.drain() {
            remembered.insert(key, last);
        }
    }
}

fn counter_of(write: &TableWrite) -> CounterKey {
    (write.table, Arc::clone(&write.first))
}
