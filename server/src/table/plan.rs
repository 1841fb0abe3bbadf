//! The results of the jobs of a batch, without I/O: each row is decided over the rows that earlier jobs of the batch leave.
//!
//! Rows with a placeholder come after all others of the batch: their numbers are not known before the commit, so nobody who asks for a row
//! by its number can mean one of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tidemark_table::operations::batch::RowAnswer;
use tidemark_table::rows::capacity::Consumed;
use tidemark_table::rows::stored::Columns;
use tidemark_table::rows::write::decide::sweep;
use tidemark_table::rows::write::{Decided, Effect, Returns, RowWrite, WriteRefusal, WrittenKey, decide};
use tidemark_table::{Cell, Row, TableError};

use super::error::{internal, not_stored, unreadable};
use super::job::{Answers, Job, JobWork};
use crate::domain::{PartitionKey, Timestamp};
use crate::store::tables::{Expected, RowChange, RowKey, StoredRow, TableId, TableOutcome, TableWrite};

/// A row of a table, by its encoded key.
pub(super) type RowId = (TableId, Vec<u8>);

/// The rows that were read, those that are not there included.
pub(super) type Facts = HashMap<RowId, Option<StoredRow>>;

/// The rows that must be read to decide a job.
pub(super) fn rows_to_read(job: &Job) -> impl Iterator<Item = (TableId, PartitionKey, Vec<u8>)> + '_ {
    let keys: Vec<Vec<u8>> = match &job.work {
        JobWork::Writes { rows, .. } => {
            let read = rows.iter().filter(|row| row.needs_row(&job.table.definition));
            read.map(|row| row.key.encode().0).collect()
        }
        JobWork::Sweep(key) => vec![key.clone()],
    };
    keys.into_iter().map(|key| (job.table.id, job.partition_key, key))
}

/// How a row stands after the jobs so far.
#[derive(Clone)]
struct RowStanding {
    /// The state of the stored row that the first change was decided on.
    expected: Expected,
    columns: Option<Columns>,
    is_changed: bool,
}

/// The rows of one table under one value of its first key column.
struct RowGroup {
    table: TableId,
    partition_key: PartitionKey,
    first: Arc<[u8]>,
    /// Rows that were looked at, by key.
    rows: BTreeMap<Vec<u8>, RowStanding>,
    /// Rows whose keys the store completes, in order, until they are committed.
    assigned: Vec<(RowKey, Columns)>,
    /// Whether it came to a write.
    is_sent: bool,
}

/// The answer to a row; the number of a key that the store completes is not known yet.
struct DecidedRow {
    consumed: Consumed,
    outcome: Result<Option<Returned>, TableError>,
}

/// The row that is asked for; its key stands in the job.
struct Returned {
    cells: Vec<Cell>,
    /// Which of the group's assigned rows it is.
    assigned: Option<usize>,
}

/// See the module.
pub(super) struct BatchPlan {
    now: i64,
    facts: Facts,
    groups: Vec<RowGroup>,
    /// Bytes of the rows that were looked at.
    read: usize,
    answers: Vec<JobAnswer>,
}

/// The answer to a job.
struct JobAnswer {
    group: usize,
    rows: Vec<DecidedRow>,
    read: usize,
}

impl BatchPlan {
    /// Decides the jobs one after the other, on the rows that were read for them.
    pub(super) fn of(jobs: &[Job], facts: Facts, now: Timestamp) -> BatchPlan {
        let answers = Vec::with_capacity(jobs.len());
        let mut plan = BatchPlan { now: now.0, facts, groups: Vec::new(), read: 0, answers };
        let mut groups = HashMap::new();
        for job in jobs {
            let group = *groups.entry((job.table.id, &job.first)).or_insert_with(|| {
                plan.groups.push(RowGroup::of(job));
                plan.groups.len() - 1
            });
            let before = plan.read;
            let rows = match &job.work {
                JobWork::Writes { rows, is_atomic: false } => plan.each(group, job, rows),
                JobWork::Writes { rows, is_atomic: true } => plan.all_or_none(group, job, rows),
                JobWork::Sweep(key) => vec![plan.sweep(group, job, key)],
            };
            plan.answers.push(JobAnswer { group, rows, read: plan.read - before });
        }
        plan
    }

    fn each(&mut self, group: usize, job: &Job, rows: &[RowWrite]) -> Vec<DecidedRow> {
        let answer = |row| {
            let answer = self.write(group, job, row);
            answer.unwrap_or_else(|WriteRefusal { error, consumed }| DecidedRow {
                consumed,
                outcome: Err(error),
            })
        };
        rows.iter().map(answer).collect()
    }

    fn all_or_none(&mut self, group: usize, job: &Job, rows: &[RowWrite]) -> Vec<DecidedRow> {
        let before = (self.groups[group].rows.clone(), self.groups[group].assigned.len());
        let answers: Result<Vec<_>, _> = rows.iter().map(|row| self.write(group, job, row)).collect();
        answers.unwrap_or_else(|WriteRefusal { error, consumed }| {
            self.groups[group].rows = before.0;
            self.groups[group].assigned.truncate(before.1);
            rows.iter().map(|_| DecidedRow { consumed, outcome: Err(error.clone()) }).collect()
        })
    }

    fn write(&mut self, group: usize, job: &Job, write: &RowWrite) -> Result<DecidedRow, WriteRefusal> {
        let definition = &job.table.definition;
        let (key, after) = write.key.encode();
        let needs_row = write.needs_row(definition);
        let standing = match &after {
            Some(_) => RowStanding::unread(),
            None => self.standing(group, &key, needs_row)?,
        };
        let stored = standing.columns.clone().filter(|_| needs_row);
        let Decided { effect, cells, consumed } = decide(definition, write, stored, self.now)?;
        let group = &mut self.groups[group];
        let mut assigned = None;
        match (after, effect) {
            (Some(after), Effect::Store(columns)) => {
                assigned = Some(group.assigned.len());
                group.assigned.push((RowKey::assigned(&key, &after), columns));
            }
            (Some(_), Effect::Nothing | Effect::Remove) => {}
            (None, effect) => group.stand(key, standing, effect),
        }
        let returned = match write.returns {
            Returns::Nothing => None,
            Returns::Key | Returns::AfterModify(_) => Some(Returned { cells, assigned }),
        };
        Ok(DecidedRow { consumed, outcome: Ok(returned) })
    }

    fn sweep(&mut self, group: usize, job: &Job, key: &[u8]) -> DecidedRow {
        let outcome = self.standing(group, key, true).map(|standing| {
            if let Some(columns) = standing.columns.clone() {
                let effect = sweep(&job.table.definition.options, columns, self.now);
                self.groups[group].stand(key.to_vec(), standing, effect);
            }
            None
        });
        DecidedRow { consumed: Consumed::default(), outcome }
    }

    /// How a row stands now. One that need not be read may not have been.
    fn standing(&mut self, group: usize, key: &[u8], needs_row: bool) -> Result<RowStanding, TableError> {
        let group = &self.groups[group];
        match group.rows.get(key) {
            Some(standing) => Ok(standing.clone()),
            None if needs_row => {
                let fact = self.facts.get(&(group.table, key.to_vec())).ok_or_else(internal)?;
                self.read += fact.as_ref().map_or(0, |row| row.row.len());
                RowStanding::of(fact.as_ref())
            }
            None => Ok(RowStanding::unread()),
        }
    }

    /// The writes to commit; asked for once.
    pub(super) fn writes(&mut self) -> Vec<TableWrite> {
        self.groups.iter_mut().filter(|group| group.is_changed()).map(RowGroup::write).collect()
    }

    /// Answers the jobs, and returns those that must be decided again. `outcomes`: one for each write, in order.
    pub(super) fn answer(self, jobs: Vec<Job>, outcomes: Vec<TableOutcome>) -> Vec<Job> {
        let mut outcomes = outcomes.into_iter();
        let outcome_of = |group: &RowGroup| match group.is_sent {
            true => match outcomes.next().unwrap_or(TableOutcome::Stale) {
                TableOutcome::Stored(numbers) => {
                    TableOutcome::Stored(numbers.into_iter().skip(group.changed().count()).collect())
                }
                other => other,
            },
            false => TableOutcome::Stored(Vec::new()),
        };
        let outcomes: Vec<TableOutcome> = self.groups.iter().map(outcome_of).collect();
        let mut again = Vec::new();
        for (job, JobAnswer { group, rows, read }) in jobs.into_iter().zip(self.answers) {
            match &outcomes[group] {
                TableOutcome::Stored(numbers) => {
                    let key = |at: usize| match &job.work {
                        JobWork::Writes { rows, .. } => rows.get(at).map(|row| &row.key),
                        JobWork::Sweep(_) => None,
                    };
                    let rows = rows.into_iter().enumerate();
                    let rows = rows.map(|(at, answer)| answer.with(key(at), numbers)).collect();
                    job.answer(Answers { rows, read });
                }
                TableOutcome::Stale => again.push(job),
                outcome => job.refuse(&not_stored(outcome)),
            }
        }
        again
    }
}

impl RowStanding {
    fn unread() -> RowStanding {
        RowStanding { expected: Expected::Anything, columns: None, is_changed: false }
    }

    fn of(fact: Option<&StoredRow>) -> Result<RowStanding, TableError> {
        let Some(row) = fact else {
            return Ok(RowStanding { expected: Expected::Absent, columns: None, is_changed: false });
        };
        let columns = Columns::decode(&row.row).map_err(|error| unreadable(&error))?;
        let expected = Expected::Revision(row.revision);
        Ok(RowStanding { expected, columns: Some(columns), is_changed: false })
    }
}

impl RowGroup {
    fn of(job: &Job) -> RowGroup {
        RowGroup {
            table: job.table.id,
            partition_key: job.partition_key,
            first: Arc::clone(&job.first),
            rows: BTreeMap::new(),
            assigned: Vec::new(),
            is_sent: false,
        }
    }

    fn stand(&mut self, key: Vec<u8>, before: RowStanding, effect: Effect) {
        let RowStanding { expected, columns, is_changed } = before;
        let standing = match effect {
            Effect::Nothing => RowStanding { expected, columns, is_changed },
            Effect::Store(columns) => RowStanding { expected, columns: Some(columns), is_changed: true },
            Effect::Remove => RowStanding { expected, columns: None, is_changed: true },
        };
        self.rows.insert(key, standing);
    }

    fn is_changed(&self) -> bool {
        !self.assigned.is_empty() || self.changed().next().is_some()
    }

    fn changed(&self) -> impl Iterator<Item = (&Vec<u8>, &RowStanding)> {
        self.rows.iter().filter(|(_, row)| row.is_changed)
    }

    /// Rows with whole keys come first: if one of them deletes the key that the store then assigns, the new row stays.
    fn write(&mut self) -> TableWrite {
        self.is_sent = true;
        let assigned = std::mem::take(&mut self.assigned).into_iter().map(|(key, columns)| RowChange {
            key,
            expected: Expected::Anything,
            row: Some(columns.encode().into()),
        });
        let whole = self.changed().map(|(key, row)| RowChange {
            key: RowKey::Whole(key[..].into()),
            expected: row.expected,
            row: row.columns.as_ref().map(|columns| columns.encode().into()),
        });
        TableWrite {
            table: self.table,
            partition_key: self.partition_key,
            first: Arc::clone(&self.first),
            changes: whole.chain(assigned).collect(),
        }
    }
}

impl DecidedRow {
    /// The answer for the row of this key, now that the numbers of the group's assigned rows are known.
    fn with(self, key: Option<&WrittenKey>, numbers: &[Option<i64>]) -> RowAnswer {
        let row = |Returned { cells, assigned }| {
            let number = assigned.and_then(|place| numbers.get(place).copied().flatten());
            key.map(|key| Row { key: key.with(number), cells })
        };
        RowAnswer { consumed: self.consumed, outcome: self.outcome.map(|returned| returned.and_then(row)) }
    }
}
