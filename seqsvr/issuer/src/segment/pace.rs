//! How large segments are, and how long numbers last: arithmetic without state, I/O or time.

use std::time::Duration;

/// The limits within which a step follows the rate of issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepPace {
    /// The smallest step, 1 or more.
    pub(crate) smallest: u64,
    /// The largest step, `smallest` or more.
    pub(crate) largest: u64,
    /// A segment that lasted less lets the step double.
    pub(crate) short: Duration,
    /// A segment that lasted longer lets it halve.
    pub(crate) long: Duration,
}

impl StepPace {
    /// The step after `step`, once a segment lasted this long.
    pub(crate) fn next(&self, step: u64, lasted: Option<Duration>) -> u64 {
        let next = match lasted {
            Some(lasted) if lasted < self.short => step.saturating_mul(2),
            Some(lasted) if lasted > self.long => step / 2,
            _ => step,
        };
        next.clamp(self.smallest, self.largest)
    }
}

/// How long `left` numbers last when `used` went in `elapsed`; `None`: nothing was used, so there is no rate.
pub(crate) fn lasts(left: u64, used: u64, elapsed: Duration) -> Option<Duration> {
    if used == 0 || elapsed.is_zero() {
        return None;
    }
    let seconds = left as f64 * (elapsed.as_secs_f64() / used as f64);
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACE: StepPace = StepPace {
        smallest: 100,
        largest: 10_000,
        short: Duration::from_secs(15 * 60),
        long: Duration::from_secs(30 * 60),
    };

    #[test]
    fn a_short_segment_doubles_the_step_and_a_long_one_halves_it() {
        let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
        assert_eq!(PACE.next(1_000, minutes(14)), 2_000);
        assert_eq!(PACE.next(1_000, minutes(15)), 1_000);
        assert_eq!(PACE.next(1_000, minutes(30)), 1_000);
        assert_eq!(PACE.next(1_000, minutes(31)), 500);
        assert_eq!(PACE.next(1_000, None), 1_000);
    }

    #[test]
    fn what_is_left_lasts_as_long_as_the_rate_says() {
        assert_eq!(lasts(500, 100, Duration::from_secs(60)), Some(Duration::from_secs(300)));
        assert_eq!(lasts(500, 0, Duration::from_secs(60)), None);
        assert_eq!(lasts(0, 100, Duration::from_secs(60)), Some(Duration::ZERO));
    }

    proptest! {
        #[test]
        fn a_step_stays_within_its_limits(step: u64, lasted in proptest::option::of(0_u64..1 << 40)) {
            let next = PACE.next(step, lasted.map(Duration::from_millis));
            prop_assert!((PACE.smallest..=PACE.largest).contains(&next));
        }

        #[test]
        fn asking_how_long_numbers_last_never_panics(left: u64, used: u64, elapsed: u64) {
            let _ = lasts(left, used, Duration::from_nanos(elapsed));
        }
    }
}
