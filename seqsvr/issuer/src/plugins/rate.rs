//! How many numbers go, and how fast, for each tag.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Plugin;
use crate::error::NextError;
use crate::strategy::Issued;
use crate::tag::Tag;

/// The seconds that a rate looks back over; the one under way does not count.
const WINDOW: usize = 60;

/// The figures of one tag.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateOf {
    /// Calls that got numbers.
    pub calls: u64,
    /// Numbers that they got.
    pub numbers: u64,
    /// Calls that got none.
    pub failures: u64,
    /// Numbers a second, over the last minute.
    pub per_second: f64,
}

/// A [`Plugin`] that counts. Its memory is bounded by the number of tags.
#[derive(Debug)]
pub struct Rate {
    origin: Instant,
    tags: Mutex<BTreeMap<Tag, Counts>>,
}

#[derive(Debug)]
struct Counts {
    calls: u64,
    numbers: u64,
    failures: u64,
    /// Numbers in each of the last seconds, by second modulo the length, and the second they are of.
    seconds: [(u64, u64); WINDOW + 1],
}

impl Default for Counts {
    fn default() -> Self {
        Self { calls: 0, numbers: 0, failures: 0, seconds: [(0, 0); WINDOW + 1] }
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self { origin: Instant::now(), tags: Mutex::default() }
    }
}

impl Rate {
    /// Counts from now on.
    pub fn new() -> Self {
        Self::default()
    }

    /// The figures of `tag`.
    pub fn of(&self, tag: &Tag) -> RateOf {
        let elapsed = self.origin.elapsed();
        let tags = self.lock();
        let Some(counts) = tags.get(tag) else { return RateOf::default() };
        let second = elapsed.as_secs();
        let recent = counts.seconds.iter().filter(|(of, _)| *of < second && *of + WINDOW as u64 >= second);
        let recent: u64 = recent.map(|(_, numbers)| numbers).sum();
        let over = second.clamp(1, WINDOW as u64);
        let Counts { calls, numbers, failures, .. } = *counts;
        RateOf { calls, numbers, failures, per_second: recent as f64 / over as f64 }
    }

    fn count(&self, tag: &Tag, count: impl FnOnce(&mut Counts, Duration)) {
        let elapsed = self.origin.elapsed();
        let mut tags = self.lock();
        match tags.get_mut(tag) {
            Some(counts) => count(counts, elapsed),
            None => count(tags.entry(tag.clone()).or_default(), elapsed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Tag, Counts>> {
        // Whole at any moment.
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plugin for Rate {
    fn name(&self) -> &str {
        "rate"
    }

    fn after(&self, tag: &Tag, issued: &mut Issued) -> Result<(), String> {
        let numbers = issued.count();
        self.count(tag, |counts, elapsed| {
            counts.calls += 1;
            counts.numbers += numbers;
            let second = elapsed.as_secs();
            let slot = &mut counts.seconds[(second % (WINDOW as u64 + 1)) as usize];
            *slot = (second, if slot.0 == second { slot.1 + numbers } else { numbers });
        });
        Ok(())
    }

    fn on_error(&self, tag: &Tag, _error: &NextError) {
        self.count(tag, |counts, _| counts.failures += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::Range;

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_that_of_the_last_minute() {
        let (rate, tag) = (Rate::new(), Tag::new("order").unwrap());
        let issue = || rate.after(&tag, &mut Issued::new(vec![Range { first: 1, last: 30 }]));
        for _ in 0..10 {
            issue().unwrap();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let figures = rate.of(&tag);
        assert_eq!((figures.calls, figures.numbers, figures.per_second), (10, 300, 30.0));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(rate.of(&tag).per_second, 7.5);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(rate.of(&tag).per_second, 0.0);
        assert_eq!(rate.of(&Tag::new("other").unwrap()), RateOf::default());
    }
}
