//! The database is asked for the time, and by it a commit has a deadline until which it may begin: after that a lost
//! answer hides nothing that may still come. Called by commits.

use std::sync::Arc;
use std::time::Duration;

use sqlx::AssertSqlSafe;
use tokio::time::sleep;

use super::PgDb;
use super::clock::NOW;
use super::life::look;
use crate::domain::Clock;
use crate::store::StoreError;

/// How long a call may be on its way to the database.
const ON_THE_WAY: Duration = Duration::from_secs(1);

/// How often it is asked whether a deadline has passed.
const MOST_LOOKS: usize = 3;

/// Until when a commit may begin, in milliseconds since 1970, as the database's clock has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(pub(super) i64);

impl Deadline {
    /// Waits until no commit with this deadline begins any more.
    ///
    /// # Errors
    /// When the database does not answer, or its clock stands far behind what is known of it.
    pub(super) async fn passed(self, db: &PgDb) -> Result<(), StoreError> {
        let mut left = self.0 - db.clock.by_machine() + 1;
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
        clock.keep_by(own);
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
        Deadline(self.clock.by_machine() + limit.as_millis() as i64)
    }
}
