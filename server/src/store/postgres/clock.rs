//! The database's clock, for all servers the same: by it sessions, tickets and invitations end, and messages were sent.
//!
//! Nobody asks the database for the time of each request. How far its clock is ahead of a steady one of this process is
//! measured with each new connection and every ten seconds ([`super::life`] looks then anyway). So it does not matter how
//! the clock of this machine is set, or that somebody sets it. An answer that came late says little about the time: it changes
//! only what it contradicts. Deadlines of commits are kept by the machine's own steady clock, which no test sets.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use sqlx::AssertSqlSafe;
use tokio::time::sleep;

use super::PgDb;
use super::life::look;
use crate::domain::{Clock, Timestamp};
use crate::store::StoreError;

/// Milliseconds since 1970, as the database's clock has it; as SQL.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// How long a call may be on its way to the database.
const ON_THE_WAY: Duration = Duration::from_secs(1);

/// How often it is asked whether a deadline has passed.
const MOST_LOOKS: usize = 3;

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

    fn now(&self) -> Timestamp {
        let steady = self.own.get().map_or(0, Clock::steady_ms);
        Timestamp(steady + self.own_ahead.get())
    }

    fn machine(&self) -> i64 {
        self.since.elapsed().as_millis() as i64
    }
}

/// Until when a commit may begin, in milliseconds since 1970, as the database's clock has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(pub(super) i64);

impl Deadline {
    /// Waits until no commit with this deadline begins any more.
    ///
    /// # Errors
    /// When the database does not answer, or its clock stands far behind what is known of it.
    pub(super) async fn passed(self, db: &PgDb) -> Result<(), StoreError> {
        let mut left = self.0 - db.clock.machine() - db.clock.machine_ahead.get() + 1;
        for _ in 0..MOST_LOOKS {
            sleep(Duration::from_millis(left.max(0).unsigned_abs())).await;
            let ask = format!("SELECT $1 - {NOW} + 1");
            let ask = sqlx::query_scalar(AssertSqlSafe(ask)).bind(self.0);
            left = db.limited(async { Ok(ask.fetch_one(&mut *db.for_queues().await?).await?) }).await?;
            if left <= 0 {
                return Ok(());
            }
        }
        Err(StoreError::unavailable("the clock of the database stands still, or was set back"))
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
        self.measure_time().await?;
        Ok(Clock::new(move || clock.now()))
    }

    /// Asks the database for the time.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) async fn measure_time(&self) -> Result<(), StoreError> {
        let asked = self.clock.ask();
        let found = self.limited(async { Ok(look(&mut *self.for_queues().await?).await?) }).await?;
        self.clock.told(asked, found.now);
        Ok(())
    }

    /// Until when a commit may begin that is called now: as long as it may wait for two locks, and a moment.
    pub(super) fn deadline(&self) -> Deadline {
        let limit = self.lock_timeout * 2 + ON_THE_WAY;
        Deadline(self.clock.machine() + self.clock.machine_ahead.get() + limit.as_millis() as i64)
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
