//! When somebody was online last, as coarsely as others are told.

use super::Timestamp;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// When somebody was online last, as others are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastSeen {
    /// Within the last 24 hours: the minute, rounded down.
    Minute(Timestamp),
    /// Before that: midnight of the day, in UTC.
    Day(Timestamp),
}

impl LastSeen {
    /// What is told at `now` of somebody who was there at `at`.
    pub fn of(at: Timestamp, now: Timestamp) -> LastSeen {
        match now.0.saturating_sub(at.0) < DAY {
            true => LastSeen::Minute(Timestamp(at.0 - at.0.rem_euclid(MINUTE))),
            false => LastSeen::Day(Timestamp(at.0 - at.0.rem_euclid(DAY))),
        }
    }

    /// RFC 3339: a time, or a date alone.
    pub fn to_text(self) -> String {
        match self {
            LastSeen::Minute(at) => at.to_rfc3339(),
            LastSeen::Day(at) => at.to_rfc3339().chars().take_while(|c| *c != 'T').collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minute_is_told_for_a_day_and_then_the_day_alone() {
        let at = Timestamp(1_795_261_438_042);
        let told = |after: i64| LastSeen::of(at, Timestamp(at.0 + after)).to_text();
        assert_eq!(at.to_rfc3339(), "2026-11-21T11:43:58.042Z");
        assert_eq!(told(0), "2026-11-21T11:43:00Z");
        assert_eq!(told(-5), "2026-11-21T11:43:00Z", "clocks of servers differ");
        assert_eq!(told(DAY - 1), "2026-11-21T11:43:00Z");
        assert_eq!(told(DAY), "2026-11-21");
    }
}
