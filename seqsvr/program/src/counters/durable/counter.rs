//! One counter: the last number that it gave, and the ceiling up to which it may give more (S3). Pure: time is an
//! argument. Held by `book`.

use std::time::Duration;

/// The largest number: clients read numbers as signed ones.
pub(super) const LARGEST: u64 = i64::MAX.unsigned_abs();

/// How many numbers a ceiling lies above need at first. After a kill up to one and a half as many are skipped.
const FIRST: u64 = 16;
/// The most numbers.
const WIDEST: u64 = 1 << 20;
/// Ceilings that are raised more often get further apart.
const OFTEN: Duration = Duration::from_secs(1);
/// Ceilings that are raised less often come closer.
const SELDOM: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    /// The last number that was given; 0: none was.
    pub(super) last: u64,
    /// The ceiling, on the disk.
    pub(super) ceiling: u64,
    /// The largest number that somebody waits for.
    wanted: u64,
    /// How far above need the next ceiling is.
    width: u64,
    /// A higher ceiling is asked for.
    pub(super) asked: bool,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The numbers up to `last` are the caller's; with `ahead`, ask for a higher ceiling now.
    Given { last: u64, ahead: bool },
    /// The ceiling is too low: it must be raised.
    Wait,
    /// No number is left.
    Exhausted,
}

impl Counter {
    /// One that stands at its ceiling, as after a start; 0 for one that is new.
    pub(super) fn at(ceiling: u64) -> Self {
        Self { last: ceiling, ceiling, wanted: 0, width: FIRST, asked: false }
    }

    /// Gives `count` numbers, if they are below the ceiling.
    pub(super) fn take(&mut self, count: u64) -> Outcome {
        let Some(to) = self.last.checked_add(count).filter(|&to| to <= LARGEST) else {
            return Outcome::Exhausted;
        };
        if to > self.ceiling {
            self.wanted = self.wanted.max(to);
            return Outcome::Wait;
        }
        self.last = to;
        Outcome::Given { last: to, ahead: self.ceiling - to < self.width / 2 && self.ceiling < LARGEST }
    }

    /// Says that `count` numbers will be wanted beside those that others wait for; whether that needs a higher ceiling.
    pub(super) fn expect(&mut self, count: u64) -> bool {
        let to = self.wanted.max(self.last).saturating_add(count).min(LARGEST);
        if to <= self.ceiling {
            return false;
        }
        self.wanted = to;
        true
    }

    /// The ceiling to write next, when the one before was written `ago`.
    pub(super) fn target(&mut self, ago: Option<Duration>) -> u64 {
        match ago {
            Some(ago) if ago < OFTEN => self.width = (self.width * 2).min(WIDEST),
            Some(ago) if ago > SELDOM => self.width = (self.width / 2).max(FIRST),
            _ => {}
        }
        let need = self.wanted.max(self.last);
        self.ceiling.max(need.saturating_add(self.width).min(LARGEST))
    }

    /// A ceiling is on the disk.
    pub(super) fn confirm(&mut self, ceiling: u64) {
        self.ceiling = self.ceiling.max(ceiling);
        self.asked = false;
        if self.wanted <= self.ceiling {
            self.wanted = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_given_above_the_ceiling() {
        let mut counter = Counter::at(0);
        assert_eq!(counter.take(1), Outcome::Wait);
        let target = counter.target(None);
        assert_eq!(counter.take(1), Outcome::Wait, "it is not on the disk yet");
        counter.confirm(target);
        for number in 1..=target {
            let Outcome::Given { last, .. } = counter.take(1) else { panic!("{number}") };
            assert_eq!(last, number);
        }
        assert_eq!(counter.take(1), Outcome::Wait);
    }

    #[test]
    fn the_next_ceiling_is_asked_for_before_it_is_needed() {
        let mut counter = Counter::at(0);
        counter.confirm(FIRST);
        let asked: Vec<bool> =
            (0..FIRST).map(|_| matches!(counter.take(1), Outcome::Given { ahead: true, .. })).collect();
        assert_eq!(asked.iter().filter(|&&asked| asked).count() as u64, FIRST / 2);
        assert!(!asked[0] && asked[FIRST as usize - 1]);
    }

    #[test]
    fn a_busy_counter_gets_wide_windows_and_a_quiet_one_small_ones() {
        let mut counter = Counter::at(0);
        assert_eq!(counter.target(None), FIRST);
        for _ in 0..40 {
            counter.target(Some(Duration::from_millis(5)));
        }
        assert_eq!(counter.target(Some(Duration::from_secs(5))), WIDEST);
        for _ in 0..40 {
            counter.target(Some(Duration::from_secs(60)));
        }
        assert_eq!(counter.target(Some(Duration::from_secs(5))), FIRST);
    }

    #[test]
    fn a_large_wish_and_many_that_are_expected_are_covered_by_one_ceiling() {
        let mut counter = Counter::at(5);
        assert_eq!(counter.take(1_000_000_000), Outcome::Wait);
        assert!(counter.target(None) >= 1_000_000_005);
        let mut counter = Counter::at(0);
        assert_eq!(counter.take(1), Outcome::Wait);
        (0..500).for_each(|_| assert!(counter.expect(1)));
        assert_eq!(counter.target(None), 501 + FIRST);
        counter.confirm(501 + FIRST);
        assert!(!counter.expect(1));
    }

    #[test]
    fn numbers_end() {
        let mut counter = Counter::at(LARGEST - 1);
        assert_eq!(counter.take(2), Outcome::Exhausted);
        assert_eq!(counter.take(u64::MAX), Outcome::Exhausted);
        assert_eq!(counter.take(1), Outcome::Wait);
        let target = counter.target(None);
        assert_eq!(target, LARGEST);
        counter.confirm(target);
        assert_eq!(counter.take(1), Outcome::Given { last: LARGEST, ahead: false });
        assert_eq!(counter.take(1), Outcome::Exhausted);
    }
}
