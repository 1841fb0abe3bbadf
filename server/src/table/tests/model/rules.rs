//! The rules of a table, said plainly: cells in maps, and nothing that the service uses.

use std::collections::BTreeMap;

use super::look::{Look, Shows};

/// A version's value, by column and time.
pub(super) type Cells = BTreeMap<(&'static str, i64), i64>;

/// A row's key: group and id.
pub(super) type RowKey = (&'static str, i64);

#[derive(Clone, Debug)]
struct Row {
    written: i64,
    cells: Cells,
}

/// A table as it should be.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) is_numbered: bool,
    pub(super) versions: usize,
    /// Milliseconds.
    pub(super) ttl: Option<i64>,
    rows: BTreeMap<RowKey, Row>,
}

/// A change to a column.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Set(&'static str, i64, Option<i64>),
    Lose(&'static str),
    LoseOne(&'static str, i64),
    Add(&'static str, i64),
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(Vec<Step>),
    Update(Vec<Step>),
    Delete,
}

/// The latest, or any, version of a column compares so with a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub(super) column: &'static str,
    pub(super) greater: bool,
    pub(super) than: i64,
    pub(super) fails_if_missing: bool,
    pub(super) latest: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Expect {
    Ignore,
    There,
    Missing,
}

/// A write as it is asked for; a key without id has the placeholder.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) group: &'static str,
    pub(super) id: Option<i64>,
    pub(super) change: Change,
    pub(super) expect: Expect,
    pub(super) test: Option<Test>,
}

/// Why a write is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Refused {
    Wrong,
    Condition,
}

impl Test {
    pub(super) fn passes(&self, cells: &Cells) -> bool {
        let versions = cells.range((self.column, i64::MIN)..=(self.column, i64::MAX)).rev();
        let versions: Vec<i64> = versions.map(|(_, value)| *value).collect();
        let holds = |value: &i64| if self.greater { *value > self.than } else { *value <= self.than };
        match versions.first() {
            None => !self.fails_if_missing,
            Some(latest) if self.latest => holds(latest),
            Some(_) => versions.iter().any(holds),
        }
    }
}

impl Model {
    pub(super) fn new(is_numbered: bool, versions: usize, ttl: Option<i64>) -> Model {
        Model { is_numbered, versions, ttl, rows: BTreeMap::new() }
    }

    /// The row's cells, if it is there.
    fn row(&self, key: RowKey, now: i64) -> Option<Cells> {
        let row = self.rows.get(&key)?;
        let Some(ttl) = self.ttl else { return Some(row.cells.clone()) };
        if row.cells.is_empty() {
            return (now - row.written <= ttl).then(Cells::new);
        }
        let young = row.cells.iter().filter(|((_, time), _)| now - time <= ttl);
        let young: Cells = young.map(|(cell, value)| (*cell, *value)).collect();
        (!young.is_empty()).then_some(young)
    }

    /// Whether the write is against the rules whatever is stored.
    pub(super) fn is_wrong(&self, write: &Write) -> bool {
        let only_loses =
            |steps: &[Step]| steps.iter().all(|step| matches!(step, Step::Lose(_) | Step::LoseOne(..)));
        match (&write.change, write.id) {
            (Change::Update(steps), _) if steps.is_empty() => true,
            (Change::Update(steps), None) if only_loses(steps) => true,
            (Change::Delete, None) => true,
            (_, None) => !self.is_numbered || write.expect != Expect::Ignore || write.test.is_some(),
            (_, Some(_)) => self.is_numbered && write.expect == Expect::Missing,
        }
    }

    /// Does a write. `assigned`: the number that the placeholder got.
    pub(super) fn write(&mut self, write: &Write, assigned: Option<i64>, now: i64) -> Result<(), Refused> {
        if self.is_wrong(write) {
            return Err(Refused::Wrong);
        }
        let key = (write.group, write.id.or(assigned).expect("a number"));
        let before = self.row(key, now);
        let is_met = match write.expect {
            Expect::Ignore => true,
            Expect::There => before.is_some(),
            Expect::Missing => before.is_none(),
        };
        let cells = before.clone().unwrap_or_default();
        if !is_met || write.test.is_some_and(|test| !test.passes(&cells)) {
            return Err(Refused::Condition);
        }
        let (steps, mut cells, is_new) = match &write.change {
            Change::Delete => {
                self.rows.remove(&key);
                return Ok(());
            }
            Change::Put(steps) => (steps, Cells::new(), true),
            Change::Update(steps) => (steps, cells, false),
        };
        let makes = is_new || steps.iter().any(|step| matches!(step, Step::Set(..) | Step::Add(..)));
        if before.is_none() && !makes {
            return Ok(());
        }
        if before.is_none() && self.is_numbered && write.id.is_some() {
            return Err(Refused::Condition);
        }
        for step in steps {
            match *step {
                Step::Set(column, value, time) => _ = cells.insert((column, time.unwrap_or(now)), value),
                Step::Lose(column) => cells.retain(|(name, _), _| *name != column),
                Step::LoseOne(column, time) => _ = cells.remove(&(column, time)),
                Step::Add(column, by) => {
                    let latest = cells.range((column, i64::MIN)..=(column, i64::MAX)).next_back();
                    let (time, value) = latest.map_or((now, 0), |((_, time), value)| (*time, *value));
                    cells.insert((column, time.max(now)), value + by);
                }
            }
        }
        let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
        let newest: Vec<_> = cells.keys().rev().copied().collect();
        for cell in newest {
            let count = kept.entry(cell.0).or_default();
            *count += 1;
            if *count > self.versions {
                cells.remove(&cell);
            }
        }
        self.rows.insert(key, Row { written: now, cells });
        Ok(())
    }

    /// The cells that a read shows of a row: column, time and value, versions newest first.
    pub(super) fn shown(&self, key: RowKey, look: &Look, now: i64) -> Option<Vec<(&'static str, i64, i64)>> {
        let mut cells = self.row(key, now)?;
        cells.retain(|(name, time), _| look.asks_for(name, *time));
        let (mut shown, mut left): (Vec<_>, Cells) = (Vec::new(), Cells::new());
        for name in ["a", "b", "c"] {
            let found = cells
                .range((name, i64::MIN)..=(name, i64::MAX))
                .rev()
                .take(look.versions.unwrap_or(usize::MAX));
            for (cell, value) in found {
                shown.push((name, cell.1, *value));
                left.insert(*cell, *value);
            }
        }
        if !look.columns.is_empty() && shown.is_empty() {
            return None;
        }
        match &look.shows {
            Shows::If(condition) if !condition.passes(&left) => return None,
            Shows::Columns(from, count) => {
                let mut columns: Vec<_> = shown.iter().map(|(name, ..)| *name).collect();
                columns.dedup();
                let page: Vec<_> = columns.into_iter().skip(*from).take(*count).collect();
                shown.retain(|(name, ..)| page.contains(name));
            }
            Shows::If(_) | Shows::Everything => {}
        }
        Some(shown)
    }

    /// The newest version of each of these columns, as they were written.
    pub(super) fn newest(&self, key: RowKey, columns: &[&'static str]) -> Vec<(&'static str, i64, i64)> {
        let cells = self.rows.get(&key).map(|row| row.cells.clone()).unwrap_or_default();
        let newest = |column: &&'static str| {
            let found = cells.range((*column, i64::MIN)..=(*column, i64::MAX)).next_back();
            found.map(|((name, time), value)| (*name, *time, *value))
        };
        columns.iter().filter_map(newest).collect()
    }

    /// The keys from `start` on, up to and without `end`; downward if `end` is smaller.
    pub(super) fn keys(&self, start: RowKey, end: RowKey) -> Vec<RowKey> {
        let all = self.rows.keys().copied();
        if start <= end {
            all.filter(|key| (start..end).contains(key)).collect()
        } else {
            all.rev().filter(|key| *key <= start && *key > end).collect()
        }
    }
}
