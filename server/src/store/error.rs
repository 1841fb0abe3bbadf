//! How storage fails, split by what a caller may do about it.

use std::sync::Arc;

use super::Write;
use crate::domain::{MessageId, Uid};

/// A read, or a small write outside the queues, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database does not answer now: busy, full, gone, closing. Trying again may help.
    #[error("storage is unavailable: {0}")]
    Unavailable(Arc<str>),
    /// Too many reads wait already. Trying again in a moment helps.
    #[error("too many reads are waiting")]
    Busy,
    /// Stored data cannot be read in its expected form. Trying again does not help.
    #[error("storage holds something unreadable: {0}")]
    Corrupt(Arc<str>),
}

impl StoreError {
    /// Storage does not answer now.
    pub fn unavailable(why: impl std::fmt::Display) -> StoreError {
        StoreError::Unavailable(why.to_string().into())
    }

    /// Storage holds something unreadable.
    pub fn corrupt(why: impl std::fmt::Display) -> StoreError {
        StoreError::Corrupt(why.to_string().into())
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, StoreError::Unavailable(_) | StoreError::Busy)
    }
}

/// A commit did not return its outcomes.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// Nothing of it is stored, and nothing will be.
    #[error("nothing was stored: {0}")]
    Refused(StoreError),
    /// Nothing of it is stored: ids are not larger than the latest in their inboxes, so the sequence is behind the rows.
    #[error("nothing was stored: the sequence is behind the rows of {} users", .0.latest.len())]
    Behind(Box<Behind>),
    /// Nothing of it is stored: another process has changed what these writes (places in the call, at least one) were decided on.
    /// Decide again, on facts read anew.
    #[error("nothing was stored: the facts behind {} of the writes have changed", .0.len())]
    Stale(Vec<usize>),
    /// It may or may not be stored. The store has reopened; look before you write again.
    #[error("the outcome of a commit is unknown: {0}")]
    Unknown(StoreError),
}

/// A commit whose ids came from a sequence that is behind the rows.
#[derive(Clone, Debug)]
pub struct Behind {
    /// The writes of the commit, which need new ids.
    pub writes: Vec<Write>,
    /// The latest id of each inbox that the new ids must come after.
    pub latest: Vec<(Uid, MessageId)>,
}
