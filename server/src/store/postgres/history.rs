//! The history that a process serves (I14): a start continues the one that is there, or begins another life of the data,
//! and while the process serves it looks whether that life goes on.
//!
//! Another life has another history, and every head is moved, so that no id that a lost row had is given again. The heads
//! themselves are moved, and not a floor beside them, so that a commit stays as it is. A million heads take about a second.

use std::pin::pin;
use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use tokio::time::timeout;
use tracing::warn;

use super::life::{HISTORY, Origin, WRITTEN_BY, look, note};
use super::options::{connection, place};
use super::{PgDb, PgOpenError, tables};
use crate::domain::{HistoryId, MessageId};
use crate::log_limit::LogLimit;
use crate::store::StoreError;

/// How far every head is moved: more rows than one inbox gets between the moment of a backup and its restore.
const SKIPPED_IDS: u64 = 10_000_000;

/// How often a process that makes no new connection looks: behind a pooler a connection may outlive a failover.
const LOOK_EVERY: Duration = Duration::from_secs(10);

impl PgDb {
    /// Whether the rows may continue an older state, and nobody has seen to that yet. If so, the caller skips numbers of users,
    /// groups and invitations, and says so to `begin_life`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn is_of_another_life(&self) -> Result<bool, StoreError> {
        let found = look(&mut *self.reader().await?).await?;
        Ok(found.origin(self.life.replication) == Origin::Other)
    }

    /// Sees to it that the history is that of this life of the data, and serves it from now on. `new_history` is its name if there is
    /// none, or if the data continue an older state. Of several servers that start at a time one renews it. `skipped`: numbers were
    /// skipped for that; without it the history is not renewed.
    pub(super) async fn begin_life(&self, new_history: HistoryId, skipped: bool) -> Result<(), StoreError> {
        self.measure_time().await?;
        let mut connection = self.reader().await?;
        let found = look(&mut connection).await?.finished()?;
        let known = found.history.filter(|_| found.written_by.as_ref() == Some(&found.here));
        let history = match known {
            // A role without the right to write is enough to look.
            Some(history) => history,
            None => {
                self.standby.watch(pin!(self.renew(&mut connection, new_history, skipped, false))).await?
            }
        };
        self.life.serve(history);
        Ok(())
    }

    /// Begins another life by hand, after a restore that cannot be noticed: devices start over, and ids go on beyond all that were
    /// given. Servers that are at work all the same end themselves.
    ///
    /// # Errors
    /// When the database does not answer; then nothing is changed.
    pub async fn begin_another_life(&self, new_history: HistoryId) -> Result<(), StoreError> {
        let mut connection = self.reader().await?;
        self.standby.watch(pin!(self.renew(&mut connection, new_history, true, true))).await.map(drop)
    }

    /// Returns the history that counts from now on.
    async fn renew(
        &self,
        connection: &mut PgConnection,
        new_history: HistoryId,
        skipped: bool,
        by_hand: bool,
    ) -> Result<String, StoreError> {
        let mut tx = connection.begin().await?;
        // As long as it takes.
        sqlx::raw_sql("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
            .execute(&mut *tx)
            .await?;
        let wanted = new_history.to_string();
        for (key, value) in [(WRITTEN_BY, ""), (HISTORY, &wanted)] {
            sqlx::query("INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING")
                .bind(key)
                .bind(value)
                .execute(&mut *tx)
                .await?;
        }
        // One at a time; the others then see what it stored.
        sqlx::query("SELECT FROM meta WHERE key = $1 FOR UPDATE").bind(WRITTEN_BY).execute(&mut *tx).await?;
        let found = look(&mut tx).await?.finished()?;
        let origin = found.origin(self.life.replication);
        if origin == Origin::Other && !skipped {
            let why = "the database has begun to continue an older state while this started; start again";
            return Err(StoreError::unavailable(why));
        }
        if by_hand || origin == Origin::Other {
            let heads = move_heads(&mut tx, by_hand).await?;
            tables::skip_numbers(&mut tx, SKIPPED_IDS).await?;
            sqlx::query("UPDATE meta SET value = $2 WHERE key = $1")
                .bind(HISTORY)
                .bind(&wanted)
                .execute(&mut *tx)
                .await?;
            warn!(
                here = found.here,
                written_by = found.written_by,
                heads,
                history = wanted,
                "the data continue an older state: devices start over, and ids skip ahead"
            );
        }
        note(&mut tx).await?;
        let history = look(&mut tx).await?.history;
        tx.commit().await?;
        history.ok_or_else(|| StoreError::corrupt("the history has no name"))
    }

    /// Whether `url` leads to the same tables.
    ///
    /// # Errors
    /// [`PgOpenError::Elsewhere`], or why that cannot be told.
    pub async fn is_also_at(&self, url: &str) -> Result<(), PgOpenError> {
        let options = connection(url)?;
        let place = place(&options);
        let failed = |source| PgOpenError::Connect { place: place.clone(), source };
        let unreadable = |source: StoreError| PgOpenError::Unreadable { place: place.clone(), source };
        let there = timeout(self.connect_timeout, PgConnection::connect_with(&options)).await;
        let mut there = there.map_err(|_| PgOpenError::Silent { place: place.clone() })?.map_err(failed)?;
        let found = match look(&mut there).await {
            Ok(found) => found.here,
            // No table of that name.
            Err(sqlx::Error::Database(_)) => String::new(),
            Err(error) => return Err(unreadable(error.into())),
        };
        _ = there.close().await;
        let here = async { Ok(look(&mut *self.reader().await?).await?.here) };
        match self.limited(here).await.map_err(unreadable)? == found {
            true => Ok(()),
            false => Err(PgOpenError::Elsewhere { place }),
        }
    }

    /// Waits until the process must not serve on, and says why: the database has begun another life, or is too new for the program.
    pub async fn must_end(&self) -> String {
        self.life.ended().await
    }

    /// Looks now and then, for as long as the process serves: what a new connection is refused for may also come while all are open.
    pub(super) async fn watch_life(&self) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let log = LogLimit::default();
        while !self.life.is_over() {
            looks.tick().await;
            let wrong = async { Ok(self.wrong_with(&mut *self.reader().await?).await) };
            // Callers that need the database report that it does not answer.
            if let Ok(Some(wrong)) = self.limited(wrong).await
                && let Some(left_out) = log.pass()
            {
                warn!(wrong, left_out, "the database can no longer be used");
            }
        }
    }
}

/// Moves every inbox on, also those without a row so far: the lost rows may have been their first. Returns how many. `with_rows`: rows
/// that somebody put there beside the servers count as well, which takes longer.
async fn move_heads(connection: &mut PgConnection, with_rows: bool) -> Result<u64, StoreError> {
    // Commits that are under way end first; none begins before the transaction has ended, and none holds a head that is moved.
    sqlx::raw_sql("LOCK TABLE heads IN EXCLUSIVE MODE").execute(&mut *connection).await?;
    sqlx::raw_sql(
        "INSERT INTO heads (partition_key, receiver, last_id) SELECT left(md5(uid::text), 4), uid, 0 FROM accounts ON CONFLICT DO NOTHING",
    )
    .execute(&mut *connection)
    .await?;
    if with_rows {
        sqlx::raw_sql(
            "UPDATE heads SET last_id = newest.last_id FROM (SELECT partition_key, receiver, (SELECT max(message_id) FROM entries
                 WHERE entries.partition_key = heads.partition_key AND entries.receiver = heads.receiver) AS last_id FROM heads) AS newest
             WHERE heads.partition_key = newest.partition_key AND heads.receiver = newest.receiver
                 AND heads.last_id < newest.last_id",
        )
        .execute(&mut *connection)
        .await?;
    }
    let moved = sqlx::query("UPDATE heads SET last_id = least(last_id + $1, $2)")
        .bind(SKIPPED_IDS.cast_signed())
        .bind(MessageId::MAX.get().cast_signed())
        .execute(&mut *connection)
        .await?;
    Ok(moved.rows_affected())
}
