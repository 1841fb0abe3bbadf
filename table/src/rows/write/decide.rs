//! A write's effect on a row, without I/O.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{ColumnChange, Existence, MAX_ROW_BYTES, PutColumn, Returns, RowWrite, WriteChange};
use crate::rows::age::{horizon, keep_versions, live};
use crate::rows::capacity::{Consumed, of_cell, of_column, units};
use crate::rows::filter::{passes, versions};
use crate::rows::stored::Columns;
use crate::{Cell, ErrorCode, TableDefinition, TableError, TableOptions, Value};

/// The largest timestamp, exclusive.
const TIMESTAMPS_END: i64 = i64::MAX / 1_000;

/// The result of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The change to store.
    pub effect: Effect,
    /// The columns to answer beside the key.
    pub cells: Vec<Cell>,
    /// The units that it consumes.
    pub consumed: Consumed,
}

/// The change to store.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Nothing changes.
    Nothing,
    /// The row has these columns from now on.
    Store(Columns),
    /// The row is gone.
    Remove,
}

/// A write that is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRefusal {
    /// Why.
    pub error: TableError,
    /// The units that it consumes all the same.
    pub consumed: Consumed,
}

impl From<TableError> for WriteRefusal {
    fn from(error: TableError) -> WriteRefusal {
        let consumed = match error.code {
            ErrorCode::ConditionCheckFail => Consumed::FAILED_CHECK,
            code if code.status() >= 500 => Consumed::default(),
            _ => Consumed { read: 0, write: 1 },
        };
        WriteRefusal { error, consumed }
    }
}

/// The effect of `write` on the row. `stored`: the row as it is stored, if it is there; it is not looked at unless
/// [`RowWrite::needs_row`]. `now` in milliseconds.
pub fn decide(
    definition: &TableDefinition,
    write: &RowWrite,
    stored: Option<Columns>,
    now: i64,
) -> Result<Decided, WriteRefusal> {
    let options = &definition.options;
    // Before the conditions: the update is refused whether they hold or not.
    if matches!(write.change, WriteChange::Update(_)) && !options.allow_update {
        return Err(TableError::invalid("Update operation is not allowed in this table").into());
    }
    let needs_row = write.needs_row(definition);
    let row = stored.filter(|_| needs_row).and_then(|columns| live(columns, options, now));
    if needs_row {
        check(write, row.as_ref())?;
    }
    // Also where another server's clock, or this one before it was set, was ahead: what is written later counts as later.
    let time = row.as_ref().map_or(now, |row| row.written_at.max(now));
    let is_there = row.is_some();
    let cells = row.map_or(Vec::new(), |row| row.cells);
    let (cells, bytes) = match &write.change {
        WriteChange::Delete => {
            let effect = if needs_row && !is_there { Effect::Nothing } else { Effect::Remove };
            return Ok(decided(write, effect, Vec::new(), 0));
        }
        WriteChange::Put(columns) => put(columns, options, time, now)?,
        WriteChange::Update(changes) => {
            let only_deletes = changes.iter().all(|change| {
                matches!(change, ColumnChange::DeleteVersion { .. } | ColumnChange::DeleteAll { .. })
            });
            let (cells, bytes) = update(changes, cells, options, time, now)?;
            if !is_there && only_deletes {
                return Ok(decided(write, Effect::Nothing, Vec::new(), bytes));
            }
            (cells, bytes)
        }
    };
    if !is_there && needs_row && definition.auto_increment().is_some() {
        // Only the store makes values of an auto-increment column.
        return Err(condition_failed().into());
    }
    let size = cells.iter().map(of_cell).sum::<u64>();
    if size > MAX_ROW_BYTES {
        let message =
            format!("The size of the row exceeds the limit, limit size: {MAX_ROW_BYTES}, data size: {size}.");
        return Err(TableError::invalid(message).into());
    }
    let returned = match &write.returns {
        Returns::AfterModify(names) => {
            names.iter().filter_map(|name| versions(&cells, name).first().cloned()).collect()
        }
        Returns::Nothing | Returns::Key => Vec::new(),
    };
    Ok(decided(write, Effect::Store(Columns { written_at: time, cells }), returned, bytes))
}

fn decided(write: &RowWrite, effect: Effect, cells: Vec<Cell>, bytes: u64) -> Decided {
    let key = write.key.size();
    let is_conditional = write.condition.existence != Existence::Ignore || write.condition.column.is_some();
    let read = if is_conditional { units(key) } else { 0 };
    Decided { effect, cells, consumed: Consumed { read, write: units(key + bytes) } }
}

/// The conditions of the write.
fn check(write: &RowWrite, row: Option<&Columns>) -> Result<(), WriteRefusal> {
    let is_met = match write.condition.existence {
        Existence::Ignore => true,
        Existence::ExpectExist => row.is_some(),
        Existence::ExpectNotExist => row.is_none(),
    };
    let cells = row.map_or(&[][..], |row| &row.cells);
    let is_met = is_met
        && write.condition.column.as_ref().is_none_or(|filter| passes(filter, &write.key.with(None), cells));
    if is_met { Ok(()) } else { Err(condition_failed().into()) }
}

fn condition_failed() -> TableError {
    TableError::new(ErrorCode::ConditionCheckFail, "Condition check failed.")
}

/// A row's columns by name, versions from the newest on.
type ByName = BTreeMap<String, BTreeMap<Reverse<i64>, Value>>;

fn put(
    columns: &[PutColumn],
    options: &TableOptions,
    time: i64,
    now: i64,
) -> Result<(Vec<Cell>, u64), TableError> {
    let (mut cells, mut bytes) = (Vec::with_capacity(columns.len()), 0);
    for column in columns {
        bytes += of_column(&column.name, &column.value);
        let timestamp = timestamp(column, options, time, now)?;
        cells.push(Cell { name: column.name.clone(), value: column.value.clone(), timestamp });
    }
    // Equal cells stay in order: of several values of one version the last one counts.
    cells.sort_by(|one, other| one.name.cmp(&other.name).then(other.timestamp.cmp(&one.timestamp)));
    cells.dedup_by(|later, before| {
        let is_same = later.timestamp == before.timestamp && later.name == before.name;
        if is_same {
            std::mem::swap(later, before);
        }
        is_same
    });
    Ok((kept(cells, options), bytes))
}

fn update(
    changes: &[ColumnChange],
    before: Vec<Cell>,
    options: &TableOptions,
    time: i64,
    now: i64,
) -> Result<(Vec<Cell>, u64), TableError> {
    let (mut by_name, mut bytes) = (ByName::new(), 0);
    for Cell { name, value, timestamp } in before {
        by_name.entry(name).or_default().insert(Reverse(timestamp), value);
    }
    for change in changes {
        match change {
            ColumnChange::Put(column) => {
                bytes += of_column(&column.name, &column.value);
                let timestamp = timestamp(column, options, time, now)?;
                let versions = by_name.entry(column.name.clone()).or_default();
                versions.insert(Reverse(timestamp), column.value.clone());
            }
            ColumnChange::DeleteVersion { name, timestamp } => {
                bytes += name.len() as u64;
                check_timestamp(*timestamp)?;
                if let Some(versions) = by_name.get_mut(name) {
                    versions.remove(&Reverse(*timestamp));
                }
            }
            ColumnChange::DeleteAll { name } => {
                bytes += name.len() as u64;
                by_name.remove(name);
            }
            ColumnChange::Increment { name, by } => {
                bytes += name.len() as u64 + 8;
                increment(by_name.entry(name.clone()).or_default(), name, *by, time)?;
            }
        }
    }
    Ok((cells(by_name, options), bytes))
}

/// The version that a column is put as.
fn timestamp(column: &PutColumn, options: &TableOptions, time: i64, now: i64) -> Result<i64, TableError> {
    let Some(timestamp) = column.timestamp else { return Ok(time) };
    check_timestamp(timestamp)?;
    let deviation = options.deviation_seconds.saturating_mul(1_000);
    let start = now.saturating_sub(deviation).max(horizon(options, now));
    let end = now.saturating_add(deviation);
    if (start..end).contains(&timestamp) {
        return Ok(timestamp);
    }
    Err(TableError::invalid(format!(
        "The timestamp of column: '{}' must be in range: [{start}, {end}), it is {timestamp}.",
        column.name
    )))
}

fn check_timestamp(timestamp: i64) -> Result<(), TableError> {
    if (0..TIMESTAMPS_END).contains(&timestamp) {
        return Ok(());
    }
    Err(TableError::invalid("Timestamp must be in range [0, INT64_MAX/1000)."))
}

fn increment(
    versions: &mut BTreeMap<Reverse<i64>, Value>,
    name: &str,
    by: i64,
    time: i64,
) -> Result<(), TableError> {
    let (latest, before) = match versions.first_key_value() {
        None => (time, 0),
        Some((Reverse(latest), Value::Integer(before))) => (*latest, *before),
        Some(_) => {
            let message = format!("Column '{name}' is not an integer and cannot be incremented.");
            return Err(TableError::invalid(message));
        }
    };
    let Some(sum) = before.checked_add(by) else {
        let message =
            format!("Column '{name}' would exceed 64 bits: it is {before}, and {by} would be added.");
        return Err(TableError::invalid(message));
    };
    // The sum is the latest version, also where the one before lies in the future.
    versions.insert(Reverse(latest.max(time)), Value::Integer(sum));
    Ok(())
}

fn cells(by_name: ByName, options: &TableOptions) -> Vec<Cell> {
    let column = |(name, versions): (String, BTreeMap<Reverse<i64>, Value>)| {
        versions.into_iter().map(move |(Reverse(timestamp), value)| Cell {
            name: name.clone(),
            value,
            timestamp,
        })
    };
    kept(by_name.into_iter().flat_map(column).collect(), options)
}

/// As many versions as the table keeps.
fn kept(mut cells: Vec<Cell>, options: &TableOptions) -> Vec<Cell> {
    keep_versions(&mut cells, usize::try_from(options.max_versions).unwrap_or(1));
    cells
}

/// The effect of a sweep on a row: the row loses versions past the TTL, and versions beyond those that the table keeps.
pub fn sweep(options: &TableOptions, stored: Columns, now: i64) -> Effect {
    let count = stored.cells.len();
    match live(stored, options, now) {
        None => Effect::Remove,
        Some(left) if left.cells.len() < count => Effect::Store(left),
        Some(_) => Effect::Nothing,
    }
}
