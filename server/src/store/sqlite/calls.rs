//! What the committer is asked; calls of `commit` that wait for it, and where they are answered.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::domain::{Group, GroupId};
use crate::store::tables::{TableId, TableOutcome, TableWrite};
use crate::store::{AcceptanceId, CommitError, Outcome, Pending, StoreError, Write};

pub(super) type Reply<T, E = StoreError> = oneshot::Sender<Result<T, E>>;

/// A call of `commit`: its writes, and the way of the answer.
pub(super) type Call<W, O> = (Vec<W>, Reply<Vec<O>, CommitError>);

/// A request to the committer.
pub(super) enum CommitterRequest {
    Commit(Vec<Write>, Reply<Vec<Outcome>, CommitError>),
    CommitRows(Vec<TableWrite>, Reply<Vec<TableOutcome>, CommitError>),
    /// From now on the table is gone. The answer: the last batch that may have rows of it.
    CloseTable(TableId, Reply<u64>),
    Pending(AcceptanceId, usize, Reply<Vec<Pending>>),
    Group(GroupId, Reply<Option<Arc<Group>>>),
    Close(Reply<()>),
}

/// The most bytes that a row or a copy takes in the journal besides its own.
const FIXED: usize = 256;

/// Calls of `commit` that share an append.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) messages: Vec<Call<Write, Outcome>>,
    pub(super) tables: Vec<Call<TableWrite, TableOutcome>>,
    /// Rows and bytes that they bring.
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

/// Where they are answered.
pub(super) struct Replies {
    pub(super) messages: Vec<Reply<Vec<Outcome>, CommitError>>,
    pub(super) tables: Vec<Reply<Vec<TableOutcome>, CommitError>>,
}

impl Calls {
    /// Takes a call of `commit`; gives back what is none.
    pub(super) fn add(&mut self, ask: CommitterRequest) -> Option<CommitterRequest> {
        let (rows, bytes) = match ask {
            CommitterRequest::Commit(writes, reply) => {
                let weight = weight(&writes);
                self.messages.push((writes, reply));
                weight
            }
            CommitterRequest::CommitRows(writes, reply) => {
                let weight = weight_of_rows(&writes);
                self.tables.push((writes, reply));
                weight
            }
            other => return Some(other),
        };
        self.rows += rows;
        self.bytes += bytes;
        None
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.messages.len() + self.tables.len()
    }

    /// More bytes than they take in the journal, but for changes of very large groups.
    pub(super) fn most_bytes(&self) -> usize {
        2 * self.bytes + FIXED * (self.rows + self.len())
    }

    /// Answers that nothing of them is stored.
    pub(super) fn refuse(self, error: &StoreError) {
        let messages = self.messages.into_iter().map(|(_, reply)| reply).collect();
        let tables = self.tables.into_iter().map(|(_, reply)| reply).collect();
        Replies { messages, tables }.refuse(&CommitError::Refused(error.clone()));
    }
}

/// How many rows and bytes these bring.
fn weight(writes: &[Write]) -> (usize, usize) {
    writes.iter().fold((0, 0), |(rows, bytes), write| match write {
        Write::Accept(accept) => {
            let owed = accept.rows.len() + accept.rest.len();
            (rows + accept.rows.len(), bytes + accept.content.body.as_json().len() + 8 * owed + 64)
        }
        Write::Deliver(deliver) => (rows + deliver.rows.len(), bytes + 12 * deliver.rows.len()),
    })
}

/// The same of writes to tables.
fn weight_of_rows(writes: &[TableWrite]) -> (usize, usize) {
    writes.iter().flat_map(|write| &write.changes).fold((0, 0), |(rows, bytes), change| {
        (rows + 1, bytes + change.key.length() + change.row.as_ref().map_or(0, |row| row.len()))
    })
}

impl Replies {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.messages.len() + self.tables.len()
    }

    /// Answers all with this.
    pub(super) fn refuse(self, error: &CommitError) {
        for reply in self.messages {
            _ = reply.send(Err(error.clone()));
        }
        for reply in self.tables {
            _ = reply.send(Err(error.clone()));
        }
    }
}
