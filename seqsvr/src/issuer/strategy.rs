//! How numbers are made: the seam at which one way (segments, snowflakes, a program's own) is chosen for each
//! tag. Called by the issuer's service, which has checked the count before.

use async_trait::async_trait;
use thiserror::Error;

/// Adjacent numbers from `first` to `last`, both included; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest.
    pub first: u64,
    /// The largest, `first` or above.
    pub last: u64,
}

impl Range {
    /// A single number.
    pub fn one(number: u64) -> Self {
        Self { first: number, last: number }
    }

    /// How many numbers these are: 1 and up; the whole of 64 bits counts as 2^64 - 1.
    pub fn count(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

/// What one call handed out: ranges in increasing order that belong to the caller alone. Usually one; a count
/// that spans two segments gives two or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    ranges: Vec<Range>,
}

impl Issued {
    /// What was handed out.
    pub fn new(ranges: Vec<Range>) -> Self {
        Self { ranges }
    }

    /// The ranges, in increasing order.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// How many numbers they hold together.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.count()).sum()
    }

    /// Every number, in increasing order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges.iter().flat_map(|range| range.first..=range.last)
    }
}

/// A way to make numbers for one tag.
///
/// Rules that every implementation keeps:
///
/// - A number is handed out once: across threads, restarts and all processes that share its storage.
/// - Within one process a number handed out later is larger.
/// - An error hands out nothing.
/// - A call ends within a bounded time.
#[async_trait]
pub trait Strategy: Send + Sync {
    /// Makes ready to issue; called once, before the first `issue`, by whoever opens the issuer. A strategy
    /// that can start without its storage does so, and says in the log what it lacks.
    ///
    /// # Errors
    ///
    /// [`IssueError`] when it could not issue anything.
    async fn init(&self) -> Result<(), IssueError>;

    /// Takes one number from memory, without waiting: the hot path.
    ///
    /// # Errors
    ///
    /// [`TryIssueError::WouldWait`] when [`issue`](Self::issue) has to be asked, which is always right, and
    /// what an implementation without a hot path answers.
    fn try_issue(&self) -> Result<u64, TryIssueError> {
        Err(TryIssueError::WouldWait)
    }

    /// Takes `count` numbers, 1 or more, waiting for storage if need be, for a bounded time.
    ///
    /// # Errors
    ///
    /// [`IssueError`]; its type says whether the same call may work later.
    async fn issue(&self, count: u32) -> Result<Issued, IssueError>;
}

/// Why `try_issue` handed out nothing.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TryIssueError {
    /// There is none in memory, or taking it needs more care: call `issue`.
    #[error("no number is at hand; wait with issue()")]
    WouldWait,
}

/// Why `init` or `issue` handed out nothing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IssueError {
    /// The same call may work later: storage is away, or the clock went back. The text says which, and what to do.
    #[error("{0}")]
    Retryable(String),
    /// Asking again cannot help: numbers are used up, or something is configured wrongly.
    #[error("{0}")]
    Final(String),
}
