//! The calendar day and time of a moment, for logs and errors: pure arithmetic, with years beyond 9999, since the bits
//! of a format may last longer than that.

const DAY: u64 = 24 * 60 * 60 * 1000;

/// The day (UTC) of `unix` milliseconds since 1970-01-01, as `2025-01-31`.
pub fn day(unix: u64) -> String {
    // Counted in eras of 400 years from 0000-03-01, so that a leap day ends a year (after Howard Hinnant).
    let days = unix / DAY + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02}")
}

/// The moment (UTC) of `unix` milliseconds since 1970-01-01, as `2025-01-31T23:59:59.999Z`.
pub fn moment(unix: u64) -> String {
    let (second, milliseconds) = (unix % DAY / 1_000, unix % 1_000);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{}T{hour:02}:{minute:02}:{:02}.{milliseconds:03}Z", day(unix), second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days_are_named() {
        for (unix, name) in [
            (0, "1970-01-01"),
            (DAY - 1, "1970-01-01"),
            (951_782_400_000, "2000-02-29"),
            (1_735_689_600_000, "2025-01-01"),
            (1_735_689_600_000 - 1, "2024-12-31"),
            (4_107_542_400_000, "2100-03-01"),
        ] {
            assert_eq!(day(unix), name);
        }
    }

    #[test]
    fn a_moment_has_its_milliseconds() {
        assert_eq!(moment(1_795_261_438_042), "2026-11-21T11:43:58.042Z");
        assert_eq!(moment(DAY - 1), "1970-01-01T23:59:59.999Z");
    }

    #[test]
    fn days_follow_each_other() {
        let lengths = |leap| [31, 28 + u64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut unix = 0;
        for year in 1970_u64..2410 {
            let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            for (month, length) in (1..).zip(lengths(leap)) {
                for date in 1..=length {
                    assert_eq!(day(unix), format!("{year:04}-{month:02}-{date:02}"));
                    unix += DAY;
                }
            }
        }
    }

    #[test]
    fn the_largest_moment_has_a_day() {
        assert_eq!(day(u64::MAX), "584556019-04-03");
    }
}
