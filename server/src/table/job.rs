//! Jobs that wait for a writer: writes to rows of one table under one value of its first key column, with the way back.

use std::sync::Arc;

use tidemark_table::operations::batch::RowAnswer;
use tidemark_table::rows::key::{encode, partition_bytes};
use tidemark_table::rows::write::{RowWrite, WriteRefusal};
use tidemark_table::{KeyValue, TableError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::catalog::Table;
use super::error::timeout;
use crate::domain::PartitionKey;

/// The store completes keys that are encoded here.
const _: () = assert!(crate::store::tables::INTEGER_TAG == tidemark_table::rows::key::INTEGER_TAG);

/// The work of a job.
#[derive(Debug)]
pub(super) enum JobWork {
    /// Writes, one after the other; an atomic one is done whole or not at all.
    Writes { rows: Vec<RowWrite>, is_atomic: bool },
    /// The row of this key loses what is past its TTL.
    Sweep(Vec<u8>),
}

/// The outcome of a job.
#[derive(Debug)]
pub(super) struct Answers {
    /// One for each row, in order.
    pub(super) rows: Vec<RowAnswer>,
    /// Bytes of rows that were read for it.
    pub(super) read: usize,
}

/// A job in its lane.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) table: Arc<Table>,
    /// The encoded first key column.
    pub(super) first: Arc<[u8]>,
    pub(super) partition_key: PartitionKey,
    pub(super) work: JobWork,
    /// How many bytes it came with.
    pub(super) bytes: usize,
    /// Its part of what may wait.
    pub(super) room: Option<OwnedSemaphorePermit>,
    pub(super) reply: oneshot::Sender<Answers>,
}

/// The answers that will come.
pub(super) struct Answering {
    rows: usize,
    answers: oneshot::Receiver<Answers>,
}

impl Job {
    /// Work under `first`, and its answers.
    pub(super) fn new(table: &Arc<Table>, first: &KeyValue, work: JobWork, bytes: usize) -> (Job, Answering) {
        let (reply, answers) = oneshot::channel();
        let partition_key = partition_of(first);
        let (table, first) = (Arc::clone(table), encode([first]).into());
        let job = Job { table, first, partition_key, work, bytes, room: None, reply };
        let rows = job.rows();
        (job, Answering { rows, answers })
    }

    /// How many rows it is about.
    pub(super) fn rows(&self) -> usize {
        match &self.work {
            JobWork::Writes { rows, .. } => rows.len(),
            JobWork::Sweep(_) => 1,
        }
    }

    pub(super) fn answer(self, answers: Answers) {
        // The caller may have given up; ignore the error.
        let _ = self.reply.send(answers);
    }

    /// Refuses all its rows.
    pub(super) fn refuse(self, error: &TableError) {
        let rows = refused(self.rows(), error);
        self.answer(Answers { rows, read: 0 });
    }
}

impl Answering {
    /// Waits for them. A writer that died with the job in hand leaves open what is stored.
    pub(super) async fn wait(self) -> Answers {
        let lost = || Answers { rows: refused(self.rows, &timeout()), read: 0 };
        self.answers.await.unwrap_or_else(|_| lost())
    }
}

/// The partition of rows whose first key column has this value.
pub(super) fn partition_of(first: &KeyValue) -> PartitionKey {
    PartitionKey::of_bytes(&partition_bytes(first))
}

/// The same refusal for so many rows.
pub(super) fn refused(rows: usize, error: &TableError) -> Vec<RowAnswer> {
    let WriteRefusal { error, consumed } = error.clone().into();
    vec![RowAnswer { consumed, outcome: Err(error) }; rows]
}
