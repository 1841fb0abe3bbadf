//! The one interface through which numbers are taken, whether the allocator is embedded or remote.

use std::time::Duration;

use async_trait::async_trait;

use crate::error::{NextError, TryNextError};
use crate::ids::{Granted, Uid};

/// A source of growing numbers, one independent sequence for each uid (S1).
///
/// Rules that every implementation keeps:
///
/// - For one uid, a number handed out later is larger: across threads, restarts, crashes and changes of
///   owner (I6). Between two numbers there may be a gap of any size, which means nothing (I11).
/// - The numbers of one grant are contiguous and belong to one caller.
/// - A number is handed out only when a ceiling at or above it is durable.
/// - An error hands out nothing. Its type tells whether the same call may work later.
#[async_trait]
pub trait Sequencer: Send + Sync {
    /// Takes `count` numbers for `uid` from memory, without waiting: the hot path.
    ///
    /// # Errors
    ///
    /// [`TryNextError::WouldWait`] when the ceiling has to be raised first; the raise is then already asked
    /// for, and [`next`](Self::next) waits for it. [`TryNextError::Final`] as for `next`.
    fn try_next(&self, uid: Uid, count: u32) -> Result<Granted, TryNextError>;

    /// Takes `count` numbers for `uid`, waiting for a raise of the ceiling if need be, for a bounded time.
    ///
    /// # Errors
    ///
    /// [`NextError::Retryable`] when the ceiling could not be raised in time; [`NextError::Final`] when
    /// asking again cannot help: a `count` of 0 or too large, the limit reached, the sections lost, shut down.
    async fn next(&self, uid: Uid, count: u32) -> Result<Granted, NextError>;

    /// Takes one number for each of `uids`, waiting for raises if need be, for at most `patience`, which counts for all of them
    /// together; the implementation's own bound holds as well. The outcomes stand in the order of `uids`; a uid that is there
    /// twice gets two numbers, the later one larger.
    ///
    /// # Errors
    ///
    /// As for [`next`](Self::next), for each uid by itself: what fails for one leaves the others their numbers.
    async fn next_each(&self, uids: &[Uid], patience: Duration) -> Vec<Result<u64, NextError>>;

    /// An upper bound of what was handed out for `uid` (S2): never smaller than it, and after a restart
    /// perhaps far larger. It is not the newest committed number and must not reach clients (I2).
    ///
    /// # Errors
    ///
    /// As for [`next`](Self::next), where the answer is not in this process.
    async fn current(&self, uid: Uid) -> Result<u64, NextError>;

    /// Makes everything handed out for `uid` from now on larger than `at_least`, durably: for restoring and
    /// importing data. Never lowers anything. All uids of the section share the raised ceiling and jump to
    /// it at the next restart, so implausible values are the caller's to refuse.
    ///
    /// # Errors
    ///
    /// As for [`next`](Self::next); `at_least` beyond the limit is final.
    async fn advance(&self, uid: Uid, at_least: u64) -> Result<(), NextError>;
}
