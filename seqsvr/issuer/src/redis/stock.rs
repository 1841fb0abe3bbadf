//! The segments of this process: the one that it is taking from the database, and those that it has for itself, from
//! which numbers come while Redis is away. Owned by the worker.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::range::Range;
use crate::segment::{SegmentOptions, Source, Supply};
use crate::strategy::IssueError;

type Job<T> = JoinHandle<Result<T, IssueError>>;

pub(super) struct Stock {
    pub(super) source: Arc<Mutex<Source>>,
    options: SegmentOptions,
    taking: Option<Taking>,
    /// When taking failed last.
    failed_at: Option<Instant>,
    own: VecDeque<Own>,
    /// The database is being told what it missed, apart from callers, whom Redis may still serve.
    catching_up: Option<Job<()>>,
}

/// A segment that is being taken, for Redis in this life, or for this process.
struct Taking {
    life: Option<String>,
    job: Job<Supply>,
}

/// A segment, and how many numbers it had.
struct Own {
    left: Range,
    size: u64,
}

impl Stock {
    pub(super) fn new(source: Source, options: SegmentOptions) -> Self {
        let source = Arc::new(Mutex::new(source));
        Self { source, options, taking: None, failed_at: None, own: VecDeque::new(), catching_up: None }
    }

    /// Begins to take a segment of `count` numbers or more, unless one is on the way that will do. `life`: the life of
    /// Redis that it is to follow in, for which it must have been asked for in that life; `lasted`: how long a segment did.
    pub(super) fn take(&mut self, count: u64, life: Option<String>, lasted: Option<Duration>) {
        if self.taking.as_ref().is_some_and(|taking| life.is_none() || taking.life == life) {
            return;
        }
        // With ranges ahead one comes at a time, so that Redis gets each of them.
        let count = if life.is_some() && self.options.ahead > 0 { 1 } else { count };
        let source = Arc::clone(&self.source);
        let job = tokio::spawn(async move { source.lock().await.next(count, lasted).await });
        // A segment that was on the way before still comes, and becomes a gap.
        self.taking = Some(Taking { life, job });
    }

    /// Waits for what is being taken, and says for which life; for ever when nothing is. May be dropped and called again.
    pub(super) async fn taken(&mut self) -> (Result<Supply, IssueError>, Option<String>) {
        let Some(taking) = &mut self.taking else { return std::future::pending().await };
        let supply = ended((&mut taking.job).await);
        let life = self.taking.take().and_then(|taking| taking.life);
        self.failed_at = supply.is_err().then(Instant::now);
        (supply, life)
    }

    /// Keeps numbers for this process, and forgets those that others have passed.
    pub(super) fn keep(&mut self, segments: impl IntoIterator<Item = Range>, floor: u64) {
        self.forget(floor);
        self.own.extend(segments.into_iter().map(|left| Own { size: left.count(), left }));
    }

    /// A whole segment of this process's own, above `floor`.
    pub(super) fn give(&mut self, floor: u64) -> Option<Range> {
        self.forget(floor);
        self.own.pop_front().map(|own| own.left)
    }

    /// Up to `count` of this process's own numbers, above `floor`; the next segment is taken when this one is used as
    /// far as configured.
    pub(super) fn split(&mut self, count: u64, floor: u64) -> Option<Range> {
        self.forget(floor);
        let Own { left, size } = self.own.pop_front()?;
        let (part, left) = split(left, count);
        if let Some(left) = left {
            self.own.push_front(Own { left, size });
        }
        let keep = u128::from(size) * u128::from(100 - self.options.prepare_at) / 100;
        let failed = self.failed_at.is_some_and(|at| at.elapsed() < self.options.retry_longest);
        if u128::from(self.left()) <= keep && !failed {
            self.take(1, None, None);
        }
        Some(part)
    }

    /// How many numbers this process has for itself.
    pub(super) fn left(&self) -> u64 {
        self.own.iter().map(|own| own.left.count()).sum()
    }

    /// Drops segments that are not above `floor`: numbers would go back.
    fn forget(&mut self, floor: u64) {
        self.own.retain(|own| own.left.first > floor);
    }

    /// Sees to it that the database learns what it missed, and that ranges are taken ahead. Once that has been tried: what
    /// it came to.
    pub(super) async fn catch_up(&mut self) -> Option<Result<(), IssueError>> {
        if self.catching_up.as_ref().is_some_and(JoinHandle::is_finished) {
            return Some(ended(self.catching_up.take()?.await));
        }
        // Locked: a segment is being taken, which tells the database, too.
        if self.catching_up.is_none() && self.source.try_lock().is_ok_and(|source| source.lags()) {
            let source = Arc::clone(&self.source);
            let catch_up = async move { source.lock().await.catch_up().await };
            self.catching_up = Some(tokio::spawn(catch_up));
        }
        None
    }

    /// Waits until nothing is under way.
    pub(super) async fn finish(&mut self) {
        if self.taking.is_some() {
            // Numbers that come now are a gap.
            let _ = self.taken().await;
        }
        if let Some(catching_up) = self.catching_up.take()
            && let Err(error) = ended(catching_up.await)
        {
            tracing::warn!(%error, "numbers taken from Redis were not reported to the database");
        }
    }
}

fn ended<T>(joined: Result<Result<T, IssueError>, tokio::task::JoinError>) -> Result<T, IssueError> {
    joined.unwrap_or_else(|error| Err(IssueError::Retryable(error.to_string())))
}

/// The first `count` numbers of a range, and the rest.
pub(super) fn split(range: Range, count: u64) -> (Range, Option<Range>) {
    if range.count() <= count {
        return (range, None);
    }
    let last = range.first + count - 1;
    (Range { first: range.first, last }, Some(Range { first: last + 1, last: range.last }))
}
