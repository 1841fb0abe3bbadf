//! The settings of the clock guard, and their ranges.

use std::time::Duration;

use thiserror::Error;

/// Settings of a [`Guard`](super::Guard).
#[derive(Clone, Debug)]
pub struct ClockOptions {
    /// How far the clock may go back and be waited out instead of refused: up to 1 s. Default 5 ms.
    pub tolerance: Duration,
    /// How far ahead of the clock the horizon is written: 100 ms to 1 h. A run that was cut off leaves up to
    /// this long to wait at the next start. Default 2 s, hence about one sync a second.
    pub ahead: Duration,
    /// How long after the last number the horizon is still moved, so that an occasional number need not wait for
    /// a sync. Default 60 s.
    pub idle: Duration,
}

impl Default for ClockOptions {
    fn default() -> Self {
        Self {
            tolerance: Duration::from_millis(5),
            ahead: Duration::from_secs(2),
            idle: Duration::from_secs(60),
        }
    }
}

/// A setting of the clock guard that is out of its range.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("clock option {name}: {value:?} is not between {least:?} and {most:?}")]
pub struct BadClockOption {
    name: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
}

impl ClockOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    ///
    /// [`BadClockOption`] names the first setting that is out of its range.
    pub fn check(&self) -> Result<(), BadClockOption> {
        let ranges = [
            ("tolerance", self.tolerance, Duration::ZERO, Duration::from_secs(1)),
            ("ahead", self.ahead, Duration::from_millis(100), Duration::from_secs(3_600)),
            ("idle", self.idle, Duration::ZERO, Duration::from_secs(86_400)),
        ];
        for (name, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(BadClockOption { name, value, least, most });
            }
        }
        Ok(())
    }
}
