//! The database's clock, for all servers the same: by it sessions, tickets and invitations end, and messages were sent.
//!
//! Nobody asks the database for the time of each request. How far its clock is ahead of a steady one of this process is
//! measured with each new connection and every ten seconds ([`super::life`] looks then anyway). So it does not matter how
//! the clock of this machine is set, or that somebody sets it. An answer that came late says little about the time: it changes
//! only what it contradicts.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use super::PgDb;
use super::life::look;
use crate::domain::{Clock, Timestamp};
use crate::store::StoreError;

/// Milliseconds since 1970, as the database's clock has it; as SQL.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct DbClock {
    own: OnceLock<Clock>,
    /// Milliseconds from this process's steady clock to the database's.
    ahead: AtomicI64,
}

/// A moment of the steady clock before the database was asked for the time; `None` while nobody needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked(Option<i64>);

impl DbClock {
    pub(super) fn ask(&self) -> Asked {
        Asked(self.own.get().map(Clock::steady_ms))
    }

    /// The database answered `now`: somewhere between the question and this moment. That bounds how far it can be ahead, and what is
    /// known stays if it is within the bounds.
    pub(super) fn told(&self, asked: Asked, now: i64) {
        if let (Some(own), Asked(Some(asked))) = (self.own.get(), asked) {
            let answered = own.steady_ms();
            let ahead = self.ahead.load(Ordering::Relaxed);
            if !(now - answered..=now - asked).contains(&ahead) {
                self.ahead.store(now - (asked + (answered - asked) / 2), Ordering::Relaxed);
            }
        }
    }

    fn now(&self) -> Timestamp {
        let steady = self.own.get().map_or(0, Clock::steady_ms);
        Timestamp(steady + self.ahead.load(Ordering::Relaxed))
    }
}

impl PgDb {
    /// The database's clock, kept by the steady time of `own`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn clock(&self, own: &Clock) -> Result<Clock, StoreError> {
        let clock = Arc::clone(&self.clock);
        _ = clock.own.set(own.clone());
        let asked = clock.ask();
        let found = self.limited(async { Ok(look(&mut *self.reader().await?).await?) }).await?;
        clock.told(asked, found.now);
        Ok(Clock::new(move || clock.now()))
    }
}

#[cfg(test)]
mod tests {
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
