//! The client's counters, as plain numbers to be published.

use std::sync::atomic::{AtomicU64, Ordering};

/// A snapshot of the counters since the client was made. None ever decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientMetrics {
    /// Numbers taken.
    pub numbers: u64,
    /// Frames sent; calls that were gathered share one.
    pub frames: u64,
    /// Attempts beyond the first.
    pub retries: u64,
    /// Answers "another process serves it".
    pub not_owner: u64,
    /// Answers "not now".
    pub unavailable: u64,
    /// Questions without an answer: a connection ended, or it took too long.
    pub lost: u64,
    /// Newer routing tables taken over.
    pub tables: u64,
    /// Answers that went back. Anything but 0 is a broken promise of the cluster.
    pub regressions: u64,
}

#[derive(Debug, Default)]
pub struct Counters {
    pub(super) numbers: AtomicU64,
    pub(super) frames: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) not_owner: AtomicU64,
    pub(super) unavailable: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) tables: AtomicU64,
    pub(super) regressions: AtomicU64,
}

impl Counters {
    pub(super) fn snapshot(&self) -> ClientMetrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ClientMetrics {
            numbers: read(&self.numbers),
            frames: read(&self.frames),
            retries: read(&self.retries),
            not_owner: read(&self.not_owner),
            unavailable: read(&self.unavailable),
            lost: read(&self.lost),
            tables: read(&self.tables),
            regressions: read(&self.regressions),
        }
    }
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}
