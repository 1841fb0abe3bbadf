//! The decisions about time, pure: how far behind a clock is, whether to wait that out, and when to move the horizon. Times are
//! milliseconds since 1970-01-01 UTC, lengths are milliseconds.

/// The times that decide a caller's request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockTimes {
    /// The newest millisecond that was begun, or the horizon that the last run left.
    pub latest: u64,
    /// The horizon that the last run left; 0 when there was none.
    pub floor: u64,
    /// How far the clock may be behind without an alarm.
    pub tolerance: u64,
    /// How far the horizon is kept ahead of the clock.
    pub ahead: u64,
}

impl ClockTimes {
    /// How far behind the newest millisecond `now` is.
    pub(super) fn behind(&self, now: u64) -> u64 {
        self.latest.saturating_sub(now)
    }

    /// Whether a clock that is `behind` needs somebody's attention.
    ///
    /// Until the first issue, the newest millisecond is only the horizon of the last run, which lies ahead of its
    /// last issue: being behind it by less than that distance means that the run was cut off a moment ago.
    pub(super) fn is_alarming(&self, behind: u64) -> bool {
        let usual = if self.latest == self.floor { self.tolerance.max(self.ahead) } else { self.tolerance };
        behind > usual
    }
}

/// Where to move the horizon, if it is time: once half of the distance is used up, and only while numbers were
/// wanted within the last `idle`, so that an idle process does not write.
pub(super) fn target(now: u64, horizon: u64, ahead: u64, wanted_at: u64, idle: u64) -> Option<u64> {
    let wanted = now.saturating_sub(wanted_at) <= idle;
    let used = horizon < now.saturating_add(ahead / 2);
    (wanted && used).then(|| now.saturating_add(ahead))
}

/// A wall clock that is this much further than the boot clock says has jumped. Time services correct less at once, or at a start.
const JUMP: u64 = 60_000;

/// A clock that has stood there for so long by the boot clock was set, and is believed.
const BELIEVED: u64 = 60_000;

/// How the wall clock goes beside the boot clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockPace {
    /// Both at the same moment, when the wall clock was last believed and furthest.
    wall: u64,
    boot: u64,
    /// Since when, by the boot clock, it has been ahead.
    jumped: Option<u64>,
}

impl ClockPace {
    pub(super) fn new(wall: u64, boot: u64) -> Self {
        Self { wall, boot, jumped: None }
    }

    /// Takes note of both clocks; `Some`: the wall clock jumped ahead by so much, and is not believed yet.
    pub(super) fn ahead(&mut self, wall: u64, boot: u64) -> Option<u64> {
        let expected = self.wall.saturating_add(boot.saturating_sub(self.boot));
        let ahead = wall.saturating_sub(expected);
        let is_set = |since: u64| boot.saturating_sub(since) >= BELIEVED;
        if ahead > JUMP && !self.jumped.is_some_and(is_set) {
            self.jumped.get_or_insert(boot);
            return Some(ahead);
        }
        self.jumped = None;
        if wall >= expected {
            (self.wall, self.boot) = (wall, boot);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RUNNING: ClockTimes = ClockTimes { latest: 10_000, floor: 9_000, tolerance: 5, ahead: 2_000 };

    #[test]
    fn a_few_milliseconds_are_waited_out_and_more_is_an_alarm() {
        assert_eq!(RUNNING.behind(10_000), 0);
        assert_eq!(RUNNING.behind(12_000), 0);
        for (now, alarming) in [(9_999, false), (9_995, false), (9_994, true), (0, true)] {
            assert_eq!(RUNNING.is_alarming(RUNNING.behind(now)), alarming, "{now}");
        }
    }

    #[test]
    fn a_run_that_was_cut_off_is_waited_out_to_its_horizon() {
        let restarted = ClockTimes { floor: 10_000, ..RUNNING };
        for (now, alarming) in [(9_999, false), (8_000, false), (7_999, true)] {
            assert_eq!(restarted.is_alarming(restarted.behind(now)), alarming, "{now}");
        }
    }

    #[test]
    fn the_horizon_moves_once_half_is_used() {
        assert_eq!(target(1_000, 0, 2_000, 1_000, 60_000), Some(3_000));
        assert_eq!(target(1_999, 3_000, 2_000, 1_999, 60_000), None);
        assert_eq!(target(2_001, 3_000, 2_000, 2_001, 60_000), Some(4_001));
    }

    #[test]
    fn nothing_is_written_while_nobody_asks() {
        assert_eq!(target(90_000, 3_000, 2_000, 30_000, 60_000), Some(92_000));
        assert_eq!(target(90_001, 3_000, 2_000, 30_000, 60_000), None);
    }

    #[test]
    fn a_clock_that_jumps_ahead_is_believed_once_it_has_stood_there_for_a_minute() {
        let mut pace = ClockPace::new(1_000_000, 500);
        assert_eq!(pace.ahead(1_060_010, 510), None, "a correction");
        assert_eq!(pace.ahead(9_000_000, 520), Some(9_000_000 - 1_060_020));
        assert_eq!(pace.ahead(1_060_030, 530), None, "it was a moment");
        assert_eq!(pace.ahead(9_000_000, 70_000), Some(9_000_000 - 1_060_030 - 69_470), "and begins anew");
        assert_eq!(pace.ahead(9_059_999, 129_999), Some(9_000_000 - 1_060_030 - 69_470));
        assert_eq!(pace.ahead(9_060_000, 130_000), None);
        assert_eq!(pace.ahead(9_060_001, 130_001), None);
    }

    #[test]
    fn a_clock_that_went_back_for_a_moment_does_not_jump_when_it_returns() {
        let mut pace = ClockPace::new(1_000_000, 500);
        assert_eq!(pace.ahead(100, 510), None);
        assert_eq!(pace.ahead(1_000_020, 520), None);
        assert_eq!(pace.ahead(1_700_020, 700_520), None, "a machine that was suspended");
    }

    proptest! {
        #[test]
        fn the_horizon_only_ever_moves_up(now: u64, horizon: u64, ahead in 2_u64..100_000, idle: u64) {
            if let Some(target) = target(now, horizon, ahead, now, idle) {
                prop_assert!(target > horizon || target == u64::MAX);
                prop_assert!(target >= now);
            }
        }

        #[test]
        fn a_clock_at_or_after_the_newest_millisecond_is_never_behind(latest: u64, later: u64) {
            let known = ClockTimes { latest, ..RUNNING };
            prop_assert_eq!(known.behind(latest.saturating_add(later)), 0);
        }
    }
}
