//! Writes of rows: each goes to the writer of its table and first key column, or past the writers to the store (`assigned`).

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use tidemark_table::operations::batch::{self, RowAnswer, TableWrites};
use tidemark_table::operations::write::{self, WriteKind};
use tidemark_table::rows::capacity::Consumed;
use tidemark_table::rows::key::encode;
use tidemark_table::rows::write::RowWrite;
use tidemark_table::{ErrorCode, KeyValue, TableError};

use super::catalog::Table;
use super::error::internal;
use super::job::{Answers, Job, JobWork, refused};
use super::{Caller, TableService, inbox};
use crate::store::tables::TableId;
use crate::workers::{ROW, aside};

/// Rows of a batch that one writer gets together, with their places in the request.
struct WritePart {
    table: Arc<Table>,
    first: KeyValue,
    rows: Vec<RowWrite>,
    places: Vec<(usize, usize)>,
    bytes: usize,
}

impl TableService {
    pub(super) async fn write_row(
        &self,
        caller: &Caller,
        kind: WriteKind,
        body: &[u8],
    ) -> Result<Vec<u8>, TableError> {
        let (name, request) = aside(body.len(), || write::decode(kind, body)).await?;
        let mut is_repeated = false;
        loop {
            let table = self.catalog.find(caller, &name).await?;
            let row = aside(body.len(), || request.checked(&table.definition)).await?;
            if table.is_inbox() {
                let RowAnswer { consumed, outcome } = self.post(caller, &row).await;
                return Ok(write::answer(consumed, outcome?.as_ref()));
            }
            let RowAnswer { consumed, outcome } = if self.goes_at_once(&row) {
                let _room = self.lanes.room(body.len())?;
                self.write_at_once(&table, &row, body.len()).await
            } else {
                let first = row.key.first().clone();
                let work = JobWork::Writes { rows: vec![row], is_atomic: false };
                let job = Job::new(&table, &first, work, body.len());
                let answering = self.lanes.submit(vec![job])?.pop().ok_or_else(internal)?;
                let Answers { mut rows, read } = answering.wait().await;
                // They were read, and most are written again.
                self.meter.count(&caller.key, 2 * read);
                rows.pop().ok_or_else(internal)?
            };
            match outcome {
                // The table was deleted; there may be a new one of its name.
                Err(error) if error.code == ErrorCode::ObjectNotExist && !is_repeated => {
                    self.catalog.forget(&caller.instance, &name);
                    is_repeated = true;
                }
                outcome => return Ok(write::answer(consumed, outcome?.as_ref())),
            }
        }
    }

    pub(super) async fn batch_write_row(&self, caller: &Caller, body: &[u8]) -> Result<Vec<u8>, TableError> {
        let batch = aside(body.len(), || batch::decode_writes(body)).await?;
        self.meter.count(&caller.key, batch.tables.iter().map(|writes| writes.rows.len() * ROW).sum());
        if let ([_, _, ..], true) = (
            &batch.tables[..],
            caller.inbox.is_some() && batch.tables.iter().any(|it| it.table == inbox::NAME),
        ) {
            // Rows of inboxes go another way: what refuses the others could not take them back.
            return Err(TableError::invalid("A batch for the table inbox has rows of no other table."));
        }
        let mut answers: Vec<Vec<Option<RowAnswer>>> = Vec::with_capacity(batch.tables.len());
        let mut parts = BatchParts::default();
        for (at, writes) in batch.tables.iter().enumerate() {
            answers.push(match self.catalog.find(caller, &writes.table).await {
                Ok(table) if table.is_inbox() => {
                    self.post_all(caller, &table, writes, (batch.is_atomic, body.len())).await?
                }
                Ok(table) => aside(body.len(), || parts.add(at, &table, writes, batch.is_atomic)).await?,
                Err(error) if error.code == ErrorCode::ObjectNotExist => {
                    refused(writes.rows.len(), &error).into_iter().map(Some).collect()
                }
                Err(error) => return Err(error),
            });
        }
        let is_atomic = batch.is_atomic;
        let (places, jobs): (Vec<_>, Vec<_>) = parts
            .parts
            .into_iter()
            .map(|WritePart { table, first, rows, places, bytes }| {
                (places, Job::new(&table, &first, JobWork::Writes { rows, is_atomic }, bytes))
            })
            .unzip();
        for (places, answering) in places.into_iter().zip(self.lanes.submit(jobs)?) {
            let Answers { rows, read } = answering.wait().await;
            self.meter.count(&caller.key, 2 * read);
            for ((table, row), answer) in places.into_iter().zip(rows) {
                if answer.outcome.as_ref().is_err_and(|error| error.code == ErrorCode::ObjectNotExist) {
                    self.catalog.forget(&caller.instance, &batch.tables[table].table);
                }
                answers[table][row] = Some(answer);
            }
        }
        let rows =
            |rows: Vec<Option<RowAnswer>>| rows.into_iter().collect::<Option<Vec<_>>>().ok_or_else(internal);
        let answers = answers.into_iter().map(rows).collect::<Result<Vec<_>, _>>()?;
        let names = batch.tables.into_iter().map(|table| table.table);
        Ok(aside(body.len(), || batch::answer_writes(names.zip(answers))).await)
    }
}

impl TableService {
    /// Puts a row into an inbox.
    async fn post(&self, caller: &Caller, row: &RowWrite) -> RowAnswer {
        match (&self.posts, caller.inbox) {
            (Some(posts), Some(sender)) => posts.write(sender, row, self.clock.now()).await,
            _ => RowAnswer { consumed: Consumed::default(), outcome: Err(internal()) },
        }
    }

    /// Puts the rows of a batch into inboxes, those of one inbox in their order.
    async fn post_all(
        &self,
        caller: &Caller,
        table: &Table,
        writes: &TableWrites,
        (is_atomic, bytes): (bool, usize),
    ) -> Result<Vec<Option<RowAnswer>>, TableError> {
        if is_atomic {
            let message = "Unsupported operation: a batch for the table inbox is not atomic.";
            return Err(TableError::new(ErrorCode::UnsupportedOperation, message));
        }
        let checked = || {
            let rows = writes.rows.iter().map(|row| match row.checked(&table.definition) {
                Err(error) if error.code != ErrorCode::InvalidPK => Err(error),
                checked => Ok(checked),
            });
            rows.collect::<Result<Vec<_>, _>>()
        };
        let rows = aside(bytes, checked).await?;
        // Each enters its queue when it is polled first, which happens in order.
        let answers = rows.iter().map(async |row| match row {
            Ok(row) => Some(self.post(caller, row).await),
            Err(error) => refused(1, error).pop(),
        });
        Ok(join_all(answers).await)
    }
}

/// The parts of a batch, as they come together.
#[derive(Default)]
struct BatchParts {
    parts: Vec<WritePart>,
    /// Where the part of a table and an encoded first key column is.
    places: HashMap<(TableId, Vec<u8>), usize>,
}

impl BatchParts {
    /// Puts the rows of the table at place `at` into their parts, and answers those that are wrong.
    fn add(
        &mut self,
        at: usize,
        table: &Arc<Table>,
        writes: &TableWrites,
        is_atomic: bool,
    ) -> Result<Vec<Option<RowAnswer>>, TableError> {
        let count = writes.rows.len();
        let mut rows = Vec::with_capacity(count);
        for row in &writes.rows {
            match row.checked(&table.definition) {
                Err(error) if error.code != ErrorCode::InvalidPK => return Err(error),
                checked => rows.push(checked.map(|checked| (checked, row.size()))),
            }
        }
        if is_atomic {
            // Each table of an atomic batch is a unit of its own.
            self.places.clear();
            if let Some(error) = no_unit(&rows) {
                return Ok(refused(count, &error).into_iter().map(Some).collect());
            }
        }
        let mut answers = vec![None; count];
        for (place, row) in rows.into_iter().enumerate() {
            match row {
                Ok((row, bytes)) => self.put(table, row, bytes, (at, place)),
                Err(error) => answers[place] = refused(1, &error).pop(),
            }
        }
        Ok(answers)
    }

    fn put(&mut self, table: &Arc<Table>, row: RowWrite, bytes: usize, place: (usize, usize)) {
        let part = *self.places.entry((table.id, encode([row.key.first()]))).or_insert(self.parts.len());
        if part == self.parts.len() {
            let (table, first) = (Arc::clone(table), row.key.first().clone());
            self.parts.push(WritePart { table, first, rows: Vec::new(), places: Vec::new(), bytes: 0 });
        }
        let part = &mut self.parts[part];
        part.rows.push(row);
        part.places.push(place);
        part.bytes += bytes;
    }
}

/// Why the rows of an atomic batch cannot be written as one.
fn no_unit(rows: &[Result<(RowWrite, usize), TableError>]) -> Option<TableError> {
    if let Some(Err(error)) = rows.iter().find(|row| row.is_err()) {
        return Some(error.clone());
    }
    let mut firsts = rows.iter().flatten().map(|(row, _)| row.key.first());
    let first = firsts.next()?;
    firsts.find(|other| *other != first).map(|other| {
        let message = format!(
            "Data out of scope of atomic. Atomic PartKey:{}. Data PartKey:{}",
            shown(first),
            shown(other)
        );
        TableError::new(ErrorCode::DataOutOfRange, message)
    })
}

/// A value as far as an error repeats it.
fn shown(value: &KeyValue) -> String {
    const MOST: usize = 64;
    match value {
        KeyValue::Integer(number) => number.to_string(),
        KeyValue::String(text) => text.chars().take(MOST).collect(),
        KeyValue::Binary(bytes) => bytes.iter().take(MOST).map(|byte| format!("{byte:02x}")).collect(),
    }
}
