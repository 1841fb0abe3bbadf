//! Calls of `commit` that wait for the committer, and where they are answered.

use tokio::sync::oneshot;

use super::tables::TableCall;
use crate::store::tables::TableOutcome;
use crate::store::{CommitError, Outcome, StoreError, Write};

pub(super) type Reply<T, E = StoreError> = oneshot::Sender<Result<T, E>>;

/// A call of `commit` that waits.
pub(super) struct CommitCall {
    pub(super) writes: Vec<Write>,
    pub(super) reply: Reply<Vec<Outcome>, CommitError>,
}

impl CommitCall {
    /// How many rows and bytes it brings.
    pub(super) fn weight(&self) -> (usize, usize) {
        self.writes.iter().fold((0, 0), |(rows, bytes), write| match write {
            Write::Accept(accept) => {
                let owed = accept.rows.len() + accept.rest.len();
                (rows + accept.rows.len(), bytes + accept.content.body.as_json().len() + 8 * owed + 64)
            }
            Write::Deliver(deliver) => (rows + deliver.rows.len(), bytes + 12 * deliver.rows.len()),
        })
    }
}

/// The most bytes that a row or a copy takes in the journal besides its own.
const FIXED: usize = 256;

/// Calls that share an append.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) messages: Vec<CommitCall>,
    pub(super) tables: Vec<TableCall>,
}

/// Where they are answered.
pub(super) struct Replies {
    pub(super) messages: Vec<Reply<Vec<Outcome>, CommitError>>,
    pub(super) tables: Vec<Reply<Vec<TableOutcome>, CommitError>>,
}

impl Calls {
    /// More bytes than they take in the journal, but for changes of very large groups.
    pub(super) fn most_bytes(&self) -> usize {
        let messages = self.messages.iter().map(CommitCall::weight);
        let weights = messages.chain(self.tables.iter().map(TableCall::weight));
        weights.map(|(rows, bytes)| 2 * bytes + FIXED * (rows + 1)).sum()
    }

    /// Answers that nothing of them is stored.
    pub(super) fn refuse(self, error: &StoreError) {
        let messages = self.messages.into_iter().map(|call| call.reply).collect();
        let tables = self.tables.into_iter().map(|call| call.reply).collect();
        Replies { messages, tables }.refuse(&CommitError::Refused(error.clone()));
    }
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
