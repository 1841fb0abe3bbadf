//! The allocator's counters, as plain numbers to be published. Counting numbers handed out costs the hot path nothing: the count is read
//! off the slots.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::Refusal;

/// The upper bounds, in seconds, of the buckets of [`Metrics::raise_buckets`]; the last bucket has none.
pub const RAISE_BUCKETS: [f64; 7] = [0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1.0];

/// A snapshot of the counters since the allocator was opened. None ever decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Numbers handed out (`seqsvr_allocated_total`).
    pub allocated: u64,
    /// Ceilings that the store confirmed (`seqsvr_raises_total`).
    pub raises: u64,
    /// Ceilings that the store did not confirm, by any error.
    pub raises_failed: u64,
    /// Calls of the store to raise ceilings, and the time that they took together: `seqsvr_raise_seconds`.
    pub raise_calls: u64,
    /// Time spent in these calls.
    pub raise_time: Duration,
    /// How many of these calls took up to [`RAISE_BUCKETS`], each call counted in one bucket.
    pub raise_buckets: [u64; RAISE_BUCKETS.len() + 1],
    /// Calls that gave up waiting for a raise (`seqsvr_refusals_total{reason}`, as all that follow).
    pub refused_unavailable: u64,
    /// Calls refused at the limit.
    pub refused_exhausted: u64,
    /// Calls refused for their count.
    pub refused_count: u64,
    /// Calls refused because another owner took over.
    pub refused_fenced: u64,
    /// Calls refused after shutdown.
    pub refused_stopped: u64,
}

/// The counters of section groups.
#[derive(Debug, Default)]
pub struct Counters {
    raises: AtomicU64,
    raises_failed: AtomicU64,
    raise_calls: AtomicU64,
    raise_nanoseconds: AtomicU64,
    raise_buckets: [AtomicU64; RAISE_BUCKETS.len() + 1],
    unavailable: AtomicU64,
    exhausted: AtomicU64,
    count: AtomicU64,
    fenced: AtomicU64,
    stopped: AtomicU64,
}

impl Counters {
    pub(super) fn raise_call(&self, took: Duration, confirmed: usize, failed: usize) {
        self.raises.fetch_add(confirmed as u64, Ordering::Relaxed);
        self.raises_failed.fetch_add(failed as u64, Ordering::Relaxed);
        self.raise_calls.fetch_add(1, Ordering::Relaxed);
        self.raise_nanoseconds.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        let bucket = RAISE_BUCKETS.iter().take_while(|&&bound| took.as_secs_f64() > bound).count();
        self.raise_buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, refusal: &Refusal) {
        let counter = match refusal {
            Refusal::Exhausted { .. } => &self.exhausted,
            Refusal::BadCount { .. } => &self.count,
            Refusal::Fenced { .. } => &self.fenced,
            Refusal::Stopped => &self.stopped,
            Refusal::Cluster(_) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn gave_up(&self) {
        self.unavailable.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts now, with what was `allocated`.
    pub fn snapshot(&self, allocated: u64) -> Metrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Metrics {
            allocated,
            raises: read(&self.raises),
            raises_failed: read(&self.raises_failed),
            raise_calls: read(&self.raise_calls),
            raise_time: Duration::from_nanos(read(&self.raise_nanoseconds)),
            raise_buckets: std::array::from_fn(|bucket| read(&self.raise_buckets[bucket])),
            refused_unavailable: read(&self.unavailable),
            refused_exhausted: read(&self.exhausted),
            refused_count: read(&self.count),
            refused_fenced: read(&self.fenced),
            refused_stopped: read(&self.stopped),
        }
    }
}
