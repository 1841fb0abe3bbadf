//! How long polls took, by what they were of.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// The bounds between which polls are counted, in seconds; the last count is of those beyond.
pub(crate) const BOUNDS: [f64; 10] =
    [0.000_25, 0.000_5, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128];

/// All that there are: of each route, each operation on tables, and a few kinds of tasks.
static ALL: RwLock<BTreeMap<Box<str>, &Times>> = RwLock::new(BTreeMap::new());

/// How many polls took how long.
#[derive(Debug, Default)]
pub(crate) struct Times {
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Times {
    /// Those of this name, which is one of few.
    pub(super) fn of(name: &str) -> &'static Times {
        if let Some(known) = ALL.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return known;
        }
        let mut all = ALL.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(name.into()).or_insert_with(|| Box::leak(Box::default()))
    }

    pub(super) fn add(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        self.counts[BOUNDS.partition_point(|bound| *bound < seconds)].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The polls up to each of the [`BOUNDS`] and above the one before, and those beyond the last.
    pub(crate) fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        self.counts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// How long all took together.
    pub(crate) fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }
}

/// All times so far, in the order of their names.
pub(crate) fn times() -> Vec<(String, &'static Times)> {
    let all = ALL.read().unwrap_or_else(PoisonError::into_inner);
    all.iter().map(|(name, times)| (name.to_string(), *times)).collect()
}
