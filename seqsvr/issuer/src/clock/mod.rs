//! Time for the issuer, as an argument: every rule below takes readings of a [`Clock`], and only
//! [`Clock::system`] asks the machine.
//!
//! A [`Guard`] owns what a process must know about time to issue numbers made of it (S25): the newest
//! millisecond in use, and the *horizon* in a small file, later than which nothing was issued. Snowflakes call
//! it each time they begin a millisecond.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

mod day;
mod file;
mod guard;
mod keeper;
mod options;
mod shared;
mod state;

pub use day::{day, moment};
pub use file::HorizonError;
pub use guard::{ClockHealth, ClockHold, ClockMetrics, Guard, OpenClockError};
pub use options::{BadClockOption, ClockOptions};

/// Where readings come from.
pub trait TimeSource: Send + Sync {
    /// The calendar's time: milliseconds since 1970-01-01 UTC. May jump in both directions.
    fn wall(&self) -> u64;

    /// Milliseconds since the machine was started, suspended time included. Never goes back.
    fn boot(&self) -> u64;

    /// Differs after each start of the machine: readings of `boot` can be compared under one name only.
    fn boot_name(&self) -> String;
}

/// Both clocks of a machine; cheap to clone.
#[derive(Clone)]
pub struct Clock(Arc<dyn TimeSource>);

impl Clock {
    /// A clock that answers with the readings of `source`.
    pub fn new(source: impl TimeSource + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// The machine's clocks.
    pub fn system() -> Self {
        Self::new(System)
    }

    /// Milliseconds since 1970-01-01 UTC.
    pub fn wall(&self) -> u64 {
        self.0.wall()
    }

    /// Milliseconds since the machine was started.
    pub fn boot(&self) -> u64 {
        self.0.boot()
    }

    /// Differs after each start of the machine; empty if the system does not say.
    pub fn boot_name(&self) -> String {
        self.0.boot_name()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

struct System;

impl TimeSource for System {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the issuer's wall-clock time comes in"
    )]
    fn wall(&self) -> u64 {
        // A clock before 1970 reads as 1970: behind every horizon, so it is refused like any other that went back.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
    }

    fn boot(&self) -> u64 {
        seqsvr_core::clock::now().as_nanos() / 1_000_000
    }

    fn boot_name(&self) -> String {
        let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        name.map(|name| name.trim().to_owned()).unwrap_or_default()
    }
}

#[cfg(test)]
pub(super) mod manual {
    //! A clock whose hands the test moves.

    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{Clock, TimeSource};

    /// Shared hands of a clock.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Hands {
        wall: Arc<AtomicU64>,
        boot: Arc<AtomicU64>,
        starts: Arc<AtomicU64>,
    }

    impl Hands {
        pub(crate) fn at(wall: u64) -> Self {
            let hands = Self::default();
            hands.set(wall);
            hands.boot.store(1_000_000, Ordering::SeqCst);
            hands
        }

        pub(crate) fn clock(&self) -> Clock {
            Clock::new(self.clone())
        }

        /// Sets the calendar alone, as an administrator does.
        pub(crate) fn set(&self, wall: u64) {
            self.wall.store(wall, Ordering::SeqCst);
        }

        /// Starts the machine anew: its boot clock begins at 0.
        pub(crate) fn reboot(&self) {
            self.boot.store(0, Ordering::SeqCst);
            self.starts.fetch_add(1, Ordering::SeqCst);
        }

        /// Lets `milliseconds` pass on both clocks.
        pub(crate) fn pass(&self, milliseconds: u64) {
            self.wall.fetch_add(milliseconds, Ordering::SeqCst);
            self.boot.fetch_add(milliseconds, Ordering::SeqCst);
        }
    }

    impl TimeSource for Hands {
        fn wall(&self) -> u64 {
            self.wall.load(Ordering::SeqCst)
        }

        fn boot(&self) -> u64 {
            self.boot.load(Ordering::SeqCst)
        }

        fn boot_name(&self) -> String {
            format!("start {}", self.starts.load(Ordering::SeqCst))
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod system {
    use super::*;

    #[test]
    fn the_system_clock_reads_a_recent_year_and_does_not_stand_still() {
        let clock = Clock::system();
        assert!(day(clock.wall()).as_str() >= "2026-01-01", "{}", day(clock.wall()));
        let (wall, boot) = (clock.wall(), clock.boot());
        while clock.boot() == boot || clock.wall() == wall {
            std::hint::spin_loop();
        }
        assert!(clock.boot() > boot);
    }
}
