//! Why a call of the client failed, for callers ([`CallError`], [`EachError`]) and between the client's parts
//! ([`AttemptError`]). Whether asking again may help is in the type.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use seqsvr_core::error::{NextError, Refusal, Unavailable};
use seqsvr_core::ids::Uid;

/// Why a call handed out nothing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CallError {
    /// Not now: the same call may succeed later.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// No configured Set holds this uid.
    #[error("uid {0} is in none of the configured Sets; add one that holds it to the client configuration")]
    NoSet(Uid),
    /// A count is 0 or more than one call may take.
    #[error("asked for {asked}; ask for 1 to {max} at a time")]
    BadCount {
        /// The requested count.
        asked: usize,
        /// The most that one call may take.
        max: usize,
    },
    /// The line of the uid has no such numbers left: the largest that the cluster hands out is `limit`.
    #[error("numbers end at {limit}, and this request would pass it")]
    Exhausted {
        /// The largest number that may be handed out.
        limit: u64,
    },
    /// The cluster refuses the call for good.
    #[error("refused: {0}")]
    Refused(String),
    /// The cluster answered with a number that is not larger than one that had arrived before the question was sent. The
    /// answer is thrown away: the promise of the service is broken, and an operator must look.
    #[error("uid {uid}: the cluster answered {got} after {known}; the number was not used, see the log")]
    Regression {
        /// The uid of the line.
        uid: Uid,
        /// The number that was answered.
        got: u64,
        /// The number that had been answered before.
        known: u64,
    },
    /// The client was closed.
    #[error("the client was closed")]
    Closed,
}

impl CallError {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    pub(super) fn late(waited: Duration, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Unavailable(Unavailable { waited, reason: reason.into() })
    }
}

impl From<CallError> for NextError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Unavailable(passing) => Self::Retryable(passing),
            CallError::Closed => Self::Final(Refusal::Stopped),
            CallError::Exhausted { limit } => Self::Final(Refusal::Exhausted { limit }),
            lasting => Self::Final(Refusal::Cluster(lasting.to_string())),
        }
    }
}

/// Why a call for many uids did not get a number for each. The numbers that were handed out are here, and nobody else's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{} of {} uids got no number: {first}", numbers.iter().filter(|one| one.is_err()).count(), numbers.len())]
pub struct EachError {
    /// In the order of the call, with the reason where there is none.
    pub numbers: Vec<Result<u64, CallError>>,
    /// The first failure.
    pub first: CallError,
}

impl EachError {
    /// None of `uids` got a number.
    pub(super) fn all(uids: usize, first: CallError) -> Self {
        Self { numbers: vec![Err(first.clone()); uids], first }
    }
}

/// Why one attempt at one process failed.
#[derive(Clone, Debug, Error)]
pub enum AttemptError {
    /// The process does not serve the uid; another one does, or none for now.
    #[error("no process owned the uid")]
    NotOwner,
    /// The owner cannot answer now.
    #[error("{reason}")]
    Unavailable { reason: String, after: Duration },
    /// The connection is not there, ended, or no answer came in time: it may or may not have been carried out.
    #[error("no answer from {addr} ({why})")]
    Lost { addr: Arc<str>, why: Arc<str> },
    /// Too many calls are under way to this process.
    #[error("more than {0} calls were under way to one process")]
    Busy(usize),
    /// The numbers of a uid of the question end at this one.
    #[error("numbers end at {0}")]
    Exhausted(u64),
    /// For good.
    #[error("{0}")]
    Refused(String),
    /// The answer went back.
    #[error("{got} after {known}")]
    Regression { uid: Uid, got: u64, known: u64 },
}

impl AttemptError {
    /// Names the process that could not answer, for people.
    pub(super) fn answered_by(self, addr: &str) -> Self {
        match self {
            Self::Unavailable { reason, after } => {
                Self::Unavailable { reason: format!("{addr} did not serve: {reason}"), after }
            }
            other => other,
        }
    }

    /// As far as it tells about each of several sections that were asked about together: when to come back is one section's matter.
    pub(super) fn of_somebody(self) -> Self {
        match self {
            Self::Unavailable { reason, .. } => Self::Unavailable { reason, after: Duration::ZERO },
            other => other,
        }
    }

    /// The error for the caller, when asking again cannot help.
    pub(super) fn lasting(&self) -> Option<CallError> {
        match self {
            &Self::Exhausted(limit) => Some(CallError::Exhausted { limit }),
            Self::Refused(reason) => Some(CallError::Refused(reason.clone())),
            &Self::Regression { uid, got, known } => Some(CallError::Regression { uid, got, known }),
            _ => None,
        }
    }
}
