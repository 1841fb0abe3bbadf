//! The errors of taking numbers and of opening the allocator. Whether asking again may help is in the type: [`Unavailable`] passes, a
//! [`Refusal`] stays.

use std::borrow::Cow;
use std::time::Duration;

use thiserror::Error;

use crate::ids::Epoch;
use crate::store::StoreError;

/// Why `try_next` handed out nothing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TryNextError {
    /// The ceiling must be raised first, which has been asked for: call `next`, or try again later.
    #[error("the ceiling must be raised first; wait with next()")]
    WouldWait,
    /// Asking again cannot help.
    #[error(transparent)]
    Final(#[from] Refusal),
}

/// Why `next`, `current` or `advance` did nothing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NextError {
    /// The same call may succeed later.
    #[error(transparent)]
    Retryable(#[from] Unavailable),
    /// Asking again cannot help.
    #[error(transparent)]
    Final(#[from] Refusal),
}

/// No number could be had within the time that callers are kept waiting.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("not within {waited:?}: {reason}; try again")]
pub struct Unavailable {
    /// How long the call waited.
    pub waited: Duration,
    /// The reason.
    pub reason: Cow<'static, str>,
}

/// A refusal that repeating the call does not change.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// The sequence of this uid has no such numbers left: the largest that may be handed out is `limit`.
    #[error("numbers end at {limit}, and this request would pass it")]
    Exhausted {
        /// The largest number that may be handed out.
        limit: u64,
    },
    /// `count` is 0 or more than one call may take.
    #[error("asked for {count} numbers; ask for 1 to {max}")]
    BadCount {
        /// The requested count.
        count: u32,
        /// The most that one call may take.
        max: u32,
    },
    /// Another owner took the section over; this one may never hand out its numbers again (I6, I7).
    #[error(
        "epoch {mine} no longer owns this section; restart, and make sure that only one process uses this store"
    )]
    Fenced {
        /// The epoch that has lost the section.
        mine: Epoch,
    },
    /// The allocator was shut down.
    #[error("the allocator was shut down")]
    Stopped,
    /// A cluster refuses the call, or its client does; the text says what to do.
    #[error("{0}")]
    Cluster(String),
}

/// Why the allocator could not be opened.
#[derive(Debug, Error)]
pub enum OpenAllocatorError {
    /// An option is out of its range.
    #[error("option {name}: {problem}")]
    BadOption {
        /// The field of [`Options`](crate::Options).
        name: &'static str,
        /// The problem and how to correct it.
        problem: String,
    },
    /// Several processes may use the store at a time, and this allocator has no lease.
    #[error(
        "several processes may use this store at a time, and an embedded allocator has no lease, so numbers could go back when \
         another one begins; run `seqsvr alloc` over a cluster's stores instead, or use a SQLite file"
    )]
    Shared,
    /// The store refused the claim or could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}
