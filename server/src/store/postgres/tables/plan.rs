//! The arguments with which a commit of rows calls `commit_rows` (migrations/postgres/functions), which explains them.
//! Pure.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::domain::PartitionKey;
use crate::store::tables::{Expected, RowKey, TableId, TableOutcome, TableWrite};

/// Where a row or a counter stands in the call, from 0.
type CallPlace = usize;

/// For a change whose number a counter gives: the counter's place, from 0, and how much further on the number is.
type Assigned = Option<(CallPlace, i64)>;

/// A counter: the partition, the table, the encoded first key column.
type CounterKey<'a> = (&'a str, i64, &'a [u8]);

/// Which row, where its key is known.
type RowName<'a> = (&'a str, i64, &'a [u8]);

/// The writes of a call, as arguments.
#[derive(Debug, Default)]
pub(super) struct RowsPlan<'a> {
    pub(super) tables: BTreeSet<i64>,
    pub(super) counters: Vec<(CounterKey<'a>, i64)>,
    pub(super) rows: Vec<PlannedRow<'a>>,
    /// By place: the write that changes the row first.
    first_writes: Vec<usize>,
    /// The changes of each write that is in the call.
    assigned: Vec<Option<Vec<Assigned>>>,
}

/// A row, each once.
#[derive(Debug)]
pub(super) struct PlannedRow<'a> {
    pub(super) partition: &'a str,
    pub(super) table: i64,
    pub(super) before: &'a [u8],
    /// From 1; 0: the key is whole.
    pub(super) counter: i32,
    pub(super) plus: i64,
    pub(super) after: &'a [u8],
    pub(super) expected: Option<i64>,
    pub(super) row: Option<&'a [u8]>,
}

impl<'a> RowsPlan<'a> {
    /// Of those writes that have no outcome yet.
    pub(super) fn of(writes: &'a [TableWrite], outcomes: &[Option<TableOutcome>]) -> RowsPlan<'a> {
        let mut plan = RowsPlan::default();
        let (mut counters, mut names) = (BTreeMap::new(), BTreeMap::new());
        for (at, write) in writes.iter().enumerate() {
            let assigned = outcomes[at].is_none().then(|| plan.add(at, write, &mut counters, &mut names));
            plan.assigned.push(assigned);
        }
        plan
    }

    fn add(
        &mut self,
        at: usize,
        write: &'a TableWrite,
        counters: &mut BTreeMap<CounterKey<'a>, CallPlace>,
        names: &mut BTreeMap<RowName<'a>, CallPlace>,
    ) -> Vec<Assigned> {
        let (partition, table) = (write.partition_key.as_str(), write.table.0.cast_signed());
        self.tables.insert(table);
        let mut assigned = Vec::with_capacity(write.changes.len());
        for change in &write.changes {
            let row = change.row.as_deref();
            let planned = match &change.key {
                RowKey::Whole(key) => {
                    assigned.push(None);
                    if let Some(known) = names.get(&(partition, table, &key[..])) {
                        self.rows[*known].row = row;
                        continue;
                    }
                    names.insert((partition, table, &key[..]), self.rows.len());
                    let expected = match change.expected {
                        Expected::Anything => None,
                        Expected::Absent => Some(0),
                        Expected::Revision(revision) => Some(revision.cast_signed()),
                    };
                    let (counter, plus) = (0, 0);
                    PlannedRow { partition, table, before: key, counter, plus, after: &[], expected, row }
                }
                RowKey::Assigned { .. } => {
                    let (before, after) = change.key.around_number();
                    let key = (partition, table, &write.first[..]);
                    let place = *counters.entry(key).or_insert_with(|| {
                        self.counters.push((key, 0));
                        self.counters.len() - 1
                    });
                    self.counters[place].1 += 1;
                    let plus = self.counters[place].1;
                    assigned.push(Some((place, plus)));
                    let (counter, expected) = (place as i32 + 1, None);
                    PlannedRow { partition, table, before, counter, plus, after, expected, row }
                }
            };
            self.rows.push(planned);
            self.first_writes.push(at);
        }
        assigned
    }

    /// Whether it stores nothing. Whether its tables are there is asked all the same.
    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Sets the outcomes of the writes of a call that stored them; `last`: the latest number of each counter before.
    pub(super) fn stored(&self, last: &[i64], outcomes: &mut [Option<TableOutcome>]) -> Option<()> {
        for (assigned, outcome) in self.assigned.iter().zip(outcomes) {
            let Some(assigned) = assigned else { continue };
            let number = |assigned: &Assigned| match assigned {
                None => Some(None),
                Some((place, plus)) => last.get(*place).map(|last| Some(last + plus)),
            };
            let numbers: Option<Vec<Option<i64>>> = assigned.iter().map(number).collect();
            *outcome = Some(TableOutcome::Stored(numbers?));
        }
        Some(())
    }

    /// The writes that change the rows at these places (from 1) first.
    pub(super) fn writes_of_rows(&self, places: &[i64]) -> HashSet<usize> {
        places
            .iter()
            .filter_map(|place| self.first_writes.get(usize::try_from(place - 1).ok()?).copied())
            .collect()
    }

    /// The first write for each of the counters at these places (from 1) that comes beyond its end, if the counter can give so few numbers.
    pub(super) fn writes_of_counters(&self, places: &[i64]) -> HashSet<usize> {
        let concerned =
            |assigned: &Assigned| assigned.is_some_and(|(place, _)| places.contains(&(place as i64 + 1)));
        // The last one of each: those before it may still have room.
        let mut last = BTreeMap::new();
        for (at, assigned) in self.assigned.iter().enumerate() {
            for (place, _) in assigned.iter().flatten().filter(|assigned| concerned(assigned)).flatten() {
                last.insert(*place, at);
            }
        }
        last.into_values().collect()
    }
}

/// Marks these writes with `outcome`, and as stale those after them that change the same rows.
pub(super) fn lose(
    writes: &[TableWrite],
    outcomes: &mut [Option<TableOutcome>],
    lost: &HashSet<usize>,
    outcome: impl Fn(&TableWrite) -> TableOutcome,
) {
    let mut rows: HashSet<(TableId, PartitionKey, &[u8])> = HashSet::new();
    for (at, write) in writes.iter().enumerate().filter(|(at, _)| outcomes[*at].is_none()).collect::<Vec<_>>()
    {
        let whole = || {
            write.changes.iter().filter_map(|change| match &change.key {
                RowKey::Whole(key) => Some((write.table, write.partition_key, &key[..])),
                RowKey::Assigned { .. } => None,
            })
        };
        if lost.contains(&at) {
            outcomes[at] = Some(outcome(write));
        } else if whole().any(|row| rows.contains(&row)) {
            outcomes[at] = Some(TableOutcome::Stale);
        } else {
            continue;
        }
        rows.extend(whole());
    }
}
