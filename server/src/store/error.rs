//! How storage fails, split by what a caller may do about it. How a commit fails stands beside its outcomes.

use std::sync::Arc;

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
