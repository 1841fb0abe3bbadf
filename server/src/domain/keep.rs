//! For how long messages of a conversation are kept: the administrators of a group choose it, or either of two people. `keep_rows` has the rows
//! that say so. What goes depends on them alone, so the server and all devices come to the same end, whenever each of them looks.

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// Seconds for which messages are kept, at least: what is younger may be on its way.
pub const LEAST_KEEP: u32 = 60;

/// Seconds for which messages are kept, at most, where they are not kept for good: a year.
pub const LONGEST_KEEP: u32 = 365 * 86_400;

/// For how long messages of a conversation are kept. As JSON it is stored in settings of groups and in bodies; must stay stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Seconds; 0: for good.
    pub seconds: u32,
    /// What was sent before this time is gone, whatever holds now: milliseconds since 1970 UTC.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone_before: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Keep {
    /// Whether it may be chosen: for good, or [`LEAST_KEEP`] to [`LONGEST_KEEP`] seconds.
    pub fn is_offered(seconds: u32) -> bool {
        seconds == 0 || (LEAST_KEEP..=LONGEST_KEEP).contains(&seconds)
    }

    /// Rows that were sent before this time go.
    pub fn goes_before(self, now: Timestamp) -> Timestamp {
        let old = now.0.saturating_sub(i64::from(self.seconds) * 1_000);
        Timestamp(if self.seconds == 0 { self.gone_before } else { old.max(self.gone_before) })
    }

    /// The same with another time from `now` on. A longer one brings nothing back.
    #[must_use]
    pub fn changed(self, seconds: u32, now: Timestamp) -> Keep {
        Keep { seconds, gone_before: self.goes_before(now).0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_time_takes_what_is_there_and_a_longer_one_brings_nothing_back() {
        let (now, day) = (Timestamp(1_000_000_000), 86_400);
        assert_eq!(Keep::default().goes_before(now), Timestamp(0));
        let short = Keep::default().changed(day, now);
        assert_eq!((short.gone_before, short.goes_before(now)), (0, Timestamp(1_000_000_000 - 86_400_000)));
        let later = Timestamp(now.0 + 500);
        for seconds in [0, 7 * day] {
            let long = short.changed(seconds, later);
            assert_eq!(long.goes_before(later), short.goes_before(later), "{seconds}");
        }
        assert!([0, LEAST_KEEP, LONGEST_KEEP].map(Keep::is_offered).iter().all(|is| *is));
        assert!(![1, LEAST_KEEP - 1, LONGEST_KEEP + 1].map(Keep::is_offered).iter().any(|is| *is));
    }
}
