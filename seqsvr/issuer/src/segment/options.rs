//! The settings of a segment strategy, each with its default, checked once.

use std::time::Duration;

use super::pace::StepPace;
use crate::repository::MAX_NUMBER;

/// Settings of a [`SegmentStrategy`](super::SegmentStrategy).
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentOptions {
    /// The first number of a new tag: 1 to 2^63 - 1. `None`, the default: 1, and whatever is stored stays. For a tag
    /// that has numbers already it must be what it was, or above the last number taken, where the sequence then goes on.
    pub start: Option<u64>,
    /// No number at or below this one is issued, whatever is stored: for data that has such numbers
    /// already. May change with each start. Default 0.
    pub above: u64,
    /// How many numbers the first segment holds: 1 to `step_max`. Default 1,000.
    pub step: u64,
    /// The smallest step that a slow tag comes down to: 1 to `step`. Default 100.
    pub step_min: u64,
    /// The largest step that a busy tag gets to: at least what is stored. Default 1,000,000.
    pub step_max: u64,
    /// A segment that lasts less doubles the step. Default 15 minutes.
    pub short: Duration,
    /// A segment that lasts longer halves the step. Default 30 minutes.
    pub long: Duration,
    /// Percent of a segment that is used when the next is prepared: 0 to 99. Default 20.
    pub prepare_at: u8,
    /// How long the numbers at hand last at least without the database, once the step follows the rate: while a segment lasts
    /// too short for that, one more is kept behind the next. Up to nine fifths of `short`, with `prepare_at` as it is by
    /// default. Default 20 minutes.
    pub reserve: Duration,
    /// How many segments are taken ahead for this process, noted in its journal, and used when the numbers at hand are used up while the
    /// database is away: up to 1,000. 0, the default: calls are refused then.
    pub ahead: u32,
    /// The largest number ever issued: 1 to 2^63 - 1, which is the default.
    pub limit: u64,
    /// How long a call waits for a segment before it gives a retryable error. Default 2 s.
    pub wait: Duration,
    /// How long one call of the repository may take before its outcome counts as unknown. Default 5 s.
    pub repository_timeout: Duration,
    /// The pause after a first failed attempt to get a segment, doubled with each further failure. Default 10 ms.
    pub retry_first: Duration,
    /// The longest such pause. Default 1 s.
    pub retry_longest: Duration,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self {
            start: None,
            above: 0,
            step: 1_000,
            step_min: 100,
            step_max: 1_000_000,
            short: Duration::from_secs(15 * 60),
            long: Duration::from_secs(30 * 60),
            prepare_at: 20,
            reserve: Duration::from_secs(20 * 60),
            ahead: 0,
            limit: MAX_NUMBER,
            wait: Duration::from_secs(2),
            repository_timeout: Duration::from_secs(5),
            retry_first: Duration::from_millis(10),
            retry_longest: Duration::from_secs(1),
        }
    }
}

impl SegmentOptions {
    /// Looks for values out of their ranges.
    ///
    /// # Errors
    ///
    /// The first one, with what would be right.
    pub fn check(&self) -> Result<(), String> {
        let start = self.start.unwrap_or(1);
        if !(1..=MAX_NUMBER).contains(&self.limit) {
            return Err(format!("limit = {} is not between 1 and 2^63 - 1", self.limit));
        }
        if !(1..=self.limit).contains(&start) {
            return Err(format!("start = {start} is not between 1 and the limit, {}", self.limit));
        }
        if self.above >= self.limit {
            return Err(format!("no numbers are left between {} and the limit, {}", self.above, self.limit));
        }
        if self.step_min == 0 || self.step < self.step_min || self.step_max < self.step {
            let Self { step, step_min, step_max, .. } = self;
            return Err(format!(
                "step_min = {step_min}, step = {step}, step_max = {step_max}: set 1 or more, none smaller than the one before"
            ));
        }
        if self.prepare_at > 99 {
            return Err(format!(
                "prepare_at = {} percent leaves no time to prepare; set 0 to 99",
                self.prepare_at
            ));
        }
        if self.ahead > 1_000 {
            return Err(format!("ahead = {} segments are too many; set 0 to 1,000", self.ahead));
        }
        if self.short > self.long {
            return Err("short is longer than long; set short to at most long".to_owned());
        }
        if self.retry_first.is_zero() || self.retry_first > self.retry_longest {
            return Err("retry_first: set more than zero and at most retry_longest".to_owned());
        }
        Ok(())
    }

    pub(super) fn pace(&self) -> StepPace {
        StepPace { smallest: self.step_min, largest: self.step_max, short: self.short, long: self.long }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_good() {
        assert_eq!(SegmentOptions::default().check(), Ok(()));
    }

    #[test]
    fn each_bad_value_is_named() {
        let default = SegmentOptions::default();
        for (bad, named) in [
            (SegmentOptions { start: Some(0), ..default.clone() }, "start = 0"),
            (SegmentOptions { limit: 0, ..default.clone() }, "limit = 0"),
            (SegmentOptions { above: MAX_NUMBER, ..default.clone() }, "no numbers are left"),
            (SegmentOptions { step: 0, ..default.clone() }, "step = 0"),
            (SegmentOptions { step_max: 10, ..default.clone() }, "step_max = 10"),
            (SegmentOptions { prepare_at: 100, ..default.clone() }, "prepare_at = 100"),
            (SegmentOptions { ahead: 1_001, ..default.clone() }, "ahead = 1001"),
            (SegmentOptions { short: Duration::MAX, ..default.clone() }, "short"),
            (SegmentOptions { retry_first: Duration::ZERO, ..default }, "retry_first"),
        ] {
            let error = bad.check().unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
