//! The database's clock, for all servers the same: by it sessions, tickets and invitations end, and messages were sent.
//!
//! Nobody asks the database for the time of each request. How far its clock is ahead of a steady one of this process is
//! measured with each new connection and every ten seconds ([`super::life`] looks then anyway). So it does not matter how
//! the clock of this machine is set, or that somebody sets it. An answer that came late says little about the time: it changes
//! only what it contradicts. Deadlines of commits ([`super::deadline`]) are kept by the machine's own steady clock, which no
//! test sets.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use crate::domain::{Clock, Timestamp};

/// Milliseconds since 1970, as the database's clock has it; as SQL.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The database's clock, as far as it is known.
#[derive(Debug)]
pub(super) struct DbClock {
    /// Tells the time.
    own: OnceLock<Clock>,
    own_ahead: Ahead,
    /// For deadlines.
    since: Instant,
    machine_ahead: Ahead,
}

/// Milliseconds from a steady clock of this process to the database's.
#[derive(Debug, Default)]
struct Ahead(AtomicI64);

/// A moment before the database was asked for the time, by the steady clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// `None` while nobody needs it.
    own: Option<i64>,
    machine: i64,
}

impl Ahead {
    /// The database answered `now`: somewhere between the question and the answer. That bounds how far it can be ahead, and what is
    /// known stays if it is within the bounds.
    fn told(&self, asked: i64, answered: i64, now: i64) {
        if !(now - answered..=now - asked).contains(&self.get()) {
            self.0.store(now - (asked + (answered - asked) / 2), Ordering::Relaxed);
        }
    }

    fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for DbClock {
    fn default() -> DbClock {
        DbClock {
            own: OnceLock::new(),
            own_ahead: Ahead::default(),
            since: Instant::now(),
            machine_ahead: Ahead::default(),
        }
    }
}

impl DbClock {
    pub(super) fn ask(&self) -> Asked {
        Asked { own: self.own.get().map(Clock::steady_ms), machine: self.machine() }
    }

    /// The database answered `now` to a question.
    pub(super) fn told(&self, asked: Asked, now: i64) {
        self.machine_ahead.told(asked.machine, self.machine(), now);
        if let (Some(own), Some(asked)) = (self.own.get(), asked.own) {
            self.own_ahead.told(asked, own.steady_ms(), now);
        }
    }

    /// Is kept by the steady time of `own` from now on.
    pub(super) fn keep_by(&self, own: &Clock) {
        _ = self.own.set(own.clone());
    }

    pub(super) fn now(&self) -> Timestamp {
        let steady = self.own.get().map_or(0, Clock::steady_ms);
        Timestamp(steady + self.own_ahead.get())
    }

    /// The same in milliseconds, by the machine's steady clock: for deadlines.
    pub(super) fn by_machine(&self) -> i64 {
        self.machine() + self.machine_ahead.get()
    }

    fn machine(&self) -> i64 {
        self.since.elapsed().as_millis() as i64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn clock_of(own: &Arc<AtomicI64>) -> DbClock {
        let read = Arc::clone(own);
        let clock = DbClock::default();
        _ = clock.own.set(Clock::new(move || Timestamp(read.load(Ordering::Relaxed))));
        clock
    }

    #[test]
    fn the_time_is_that_of_the_database_whatever_the_own_clock_says() {
        let own = Arc::new(AtomicI64::new(1_000));
        let unused = DbClock::default();
        unused.told(unused.ask(), 77);
        assert_eq!(unused.now(), Timestamp(0), "nobody needs it");
        let clock = clock_of(&own);
        let asked = clock.ask();
        own.store(1_010, Ordering::Relaxed);
        clock.told(asked, 5_000_000);
        assert_eq!(clock.now(), Timestamp(5_000_005), "the answer was made half-way");
        own.store(1_110, Ordering::Relaxed);
        assert_eq!(clock.now(), Timestamp(5_000_105));
    }

    #[test]
    fn an_answer_that_came_late_changes_only_what_it_contradicts() {
        let own = Arc::new(AtomicI64::new(1_000));
        let clock = clock_of(&own);
        clock.told(clock.ask(), 5_000_000);
        for (now, says) in [(5_000_000, "at once"), (5_060_000, "at the end")] {
            own.store(1_000, Ordering::Relaxed);
            let asked = clock.ask();
            own.store(61_000, Ordering::Relaxed);
            clock.told(asked, now);
            assert_eq!(clock.now(), Timestamp(5_060_000), "it was made {says}");
        }
        own.store(1_000, Ordering::Relaxed);
        let asked = clock.ask();
        own.store(1_100, Ordering::Relaxed);
        clock.told(asked, 5_000_101);
        assert_eq!(clock.now(), Timestamp(5_000_151), "the database's clock has gone on faster");
    }
}
