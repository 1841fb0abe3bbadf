//! Rates that callers share over all servers, in PostgreSQL: of each caller the time at which its allowance is whole again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Row as _};

use super::PgDb;
use crate::store::{SharedRates, StoreError};

/// After so many calls some callers are forgotten whose allowance is whole: more than were added, so that they do not pile up.
const FORGET_EVERY: u32 = 32;
const FORGOTTEN_AT_ONCE: i64 = 64;

/// Microseconds since 1970, as the database's clock has it.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}

/// See the module.
pub struct PgRates {
    db: Arc<PgDb>,
    calls: AtomicU32,
}

impl PgRates {
    /// The rates in this database.
    pub fn new(db: Arc<PgDb>) -> PgRates {
        PgRates { db, calls: AtomicU32::new(0) }
    }

    /// A statement of its own, which waits for no lock.
    async fn forget(&self) -> Result<(), StoreError> {
        let forget = AssertSqlSafe(format!(
            "DELETE FROM rates WHERE caller IN (SELECT caller FROM rates WHERE whole_at <= {NOW} ORDER BY whole_at LIMIT $1 \
             FOR UPDATE SKIP LOCKED)"
        ));
        let forget = sqlx::query(forget).bind(FORGOTTEN_AT_ONCE);
        self.db.limited(async { Ok(forget.execute(&mut *self.db.reader().await?).await.map(drop)?) }).await
    }
}

#[async_trait]
impl SharedRates for PgRates {
    async fn take(
        &self,
        caller: &[u8; 32],
        interval: Duration,
        burst: Duration,
    ) -> Result<Option<Duration>, StoreError> {
        if self.calls.fetch_add(1, Ordering::Relaxed) % FORGET_EVERY == FORGET_EVERY - 1 {
            self.forget().await?;
        }
        let take = AssertSqlSafe(format!(
            "WITH here AS (SELECT {NOW} AS now), taken AS (
                 INSERT INTO rates AS r (caller, whole_at) SELECT $1, now + $2 FROM here
                 ON CONFLICT (caller) DO UPDATE SET whole_at = greatest(r.whole_at, (SELECT now FROM here)) + $2
                     WHERE greatest(r.whole_at, (SELECT now FROM here)) + $2 - (SELECT now FROM here) <= $3
                 RETURNING true
             )
             SELECT EXISTS (SELECT FROM taken) AS is_taken,
                 (SELECT whole_at - now FROM rates, here WHERE caller = $1) AS ahead"
        ));
        let take = sqlx::query(take).bind(caller.to_vec()).bind(micros(interval)).bind(micros(burst));
        let taken = async { Ok(take.fetch_one(&mut *self.db.reader().await?).await?) };
        let row = self.db.limited(taken).await?;
        if row.try_get("is_taken")? {
            return Ok(None);
        }
        // The statement does not see a row that another server added a moment ago.
        let ahead: Option<i64> = row.try_get("ahead")?;
        let ahead = Duration::from_micros(ahead.map_or(0, |ahead| ahead.max(0).cast_unsigned()));
        let wait = (ahead + interval).saturating_sub(burst);
        Ok(Some(if wait.is_zero() { interval.min(Duration::from_secs(1)) } else { wait }))
    }

    async fn give_back(&self, caller: &[u8; 32], interval: Duration) -> Result<(), StoreError> {
        // One whose allowance is whole and who is forgotten has it back already.
        let give = sqlx::query("UPDATE rates SET whole_at = whole_at - $2 WHERE caller = $1");
        let give = give.bind(caller.to_vec()).bind(micros(interval));
        self.db.limited(async { Ok(give.execute(&mut *self.db.reader().await?).await.map(drop)?) }).await
    }
}

#[cfg(test)]
mod tests {
    use tidemark_test_support::servers::postgres::durable_database;

    use super::super::PgOptions;
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    async fn servers() -> [PgRates; 2] {
        let url = durable_database().await;
        let open = async || PgRates::new(PgDb::open(&url, &PgOptions::default()).await.expect("opened"));
        [open().await, open().await]
    }

    #[tokio::test]
    async fn servers_that_are_asked_at_the_same_time_let_one_burst_through() {
        let [one, other] = servers().await;
        let ask = async |rates: &PgRates| {
            let mut passed = 0;
            for _ in 0..10 {
                match rates.take(&[1; 32], MINUTE, 10 * MINUTE).await.expect("asked") {
                    None => passed += 1,
                    Some(wait) => assert!(wait > Duration::ZERO && wait <= MINUTE, "{wait:?}"),
                }
            }
            passed
        };
        let (first, second) = tokio::join!(ask(&one), ask(&other));
        assert_eq!(first + second, 10);
        assert_eq!(one.take(&[2; 32], MINUTE, 10 * MINUTE).await.expect("asked"), None, "another caller");
    }

    #[tokio::test]
    async fn who_may_not_run_ahead_waits_for_the_rest_of_the_interval() {
        let [one, other] = servers().await;
        let second = Duration::from_secs(1);
        let mut wait = None;
        // The first is taken; on a slow machine more of them are.
        while wait.is_none() {
            one.take(&[1; 32], second, second).await.expect("asked");
            wait = other.take(&[1; 32], second, second).await.expect("asked");
        }
        assert!(wait.is_some_and(|wait| wait > Duration::ZERO && wait < second), "{wait:?}");
    }

    #[tokio::test]
    async fn what_is_given_back_can_be_taken_again_at_any_server() {
        let [one, other] = servers().await;
        assert_eq!(one.take(&[1; 32], 3 * MINUTE, 4 * MINUTE).await.expect("asked"), None);
        assert!(other.take(&[1; 32], 2 * MINUTE, 4 * MINUTE).await.expect("asked").is_some());
        other.give_back(&[1; 32], 3 * MINUTE).await.expect("given back");
        other.give_back(&[2; 32], MINUTE).await.expect("somebody who has taken nothing");
        assert_eq!(other.take(&[1; 32], 4 * MINUTE, 4 * MINUTE).await.expect("asked"), None);
    }

    #[tokio::test]
    async fn time_gives_the_allowance_back_and_the_whole_are_forgotten() {
        let [one, other] = servers().await;
        let short = Duration::from_micros(1);
        for n in 0..FORGET_EVERY {
            assert_eq!(one.take(&[n as u8; 32], short, short).await.expect("asked"), None);
        }
        // Its time is over by now.
        assert_eq!(other.take(&[0; 32], short, short).await.expect("asked"), None);
        one.forget().await.expect("forgotten");
        let left = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM rates");
        let mut connection = one.db.reader().await.expect("connected");
        assert_eq!(left.fetch_one(&mut *connection).await.expect("counted"), 0);
    }
}
