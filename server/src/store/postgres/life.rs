//! One life of the data (I14): which cluster wrote last, and the history that this process serves.
//!
//! A standby that takes over without the newest rows, and a database that is restored from a backup, continue an older
//! state. Both are known by where the database is: the system identifier of its cluster, the identity of the table
//! `meta`, the timeline. `meta` has that of whoever wrote last. A process that starts on another one renews the
//! history and moves every head, so that no id that a lost row had is given again. A process that is at work serves
//! nothing more of it: what it has in memory is of the life before. Called by [`PgDb`] for each new connection.
//!
//! The heads themselves are moved, and not a floor beside them, so that a commit stays as it is. A million heads take
//! about a second.

use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::clock::{DbClock, NOW};
use super::options::{connection, place};
use super::{PgDb, PgOpenError, Replication, tables};
use crate::domain::{HistoryId, MessageId};
use crate::log_limit::LogLimit;
use crate::store::StoreError;

/// The keys under which `meta` has the history's name and, below, the last writer.
pub(super) const HISTORY: &str = "history";
/// While an import fills the installation: the checksum of its file, and how many of its records are stored.
pub(super) const IMPORT: &str = "import";
pub(super) const IMPORTED: &str = "imported";
/// The error of an installation that has the former.
pub(super) const UNFINISHED: &str = "an import into it was not finished; run `tidemark import` with the same file again, or empty the database";
const WRITTEN_BY: &str = "written_by";

/// How far every head is moved: more rows than one inbox gets between the moment of a backup and its restore.
const SKIPPED_IDS: u64 = 10_000_000;

/// How often a process that makes no new connection looks: behind a pooler a connection may outlive a failover.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Where a connection leads, as SQL; any role may ask. Stored, must stay stable. The timeline is the last part, and the one that a
/// promotion changes. (`pg_control_checkpoint` tells it too late: after the first checkpoint.)
const HERE: &str = "(SELECT system_identifier FROM pg_control_system()) || '/' || 'meta'::regclass::oid || '/' || \
     left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/// How far its log is safe on its disk, in bytes. That never moves back within a timeline, unless the disk is an older one.
const SAFE_UP_TO: &str = "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint";

/// The last writer is unknown: the next start moves every head.
const OLDER_COPY: &str = "an older copy";

/// The life of the data, as a process knows it.
#[derive(Debug)]
pub(super) struct ServedLife {
    replication: Replication,
    /// Each look tells the time, too.
    clock: Arc<DbClock>,
    /// The served history, once it is known.
    history: OnceLock<String>,
    /// Where a connection led last, and how far the log was safe there.
    seen: Mutex<(String, i64)>,
    /// Why it is over, once it is.
    why: OnceLock<String>,
    over: CancellationToken,
}

/// The state that a connection reports.
pub(super) struct DatabaseLife {
    /// By its clock, in milliseconds.
    pub(super) now: i64,
    here: String,
    safe_up_to: i64,
    written_by: Option<String>,
    history: Option<String>,
    /// An import was begun and is not finished.
    is_unfinished: bool,
}

/// The last writer, seen from a connection.
#[derive(Debug, PartialEq, Eq)]
enum Origin {
    /// The database that is asked.
    Same,
    /// Nobody, as far as is stored.
    Unknown,
    /// A primary which had nothing that this one lacks.
    Followed,
    /// Somebody whose newest rows may be lost.
    Other,
}

impl ServedLife {
    pub(super) fn new(replication: Replication, clock: Arc<DbClock>) -> ServedLife {
        ServedLife {
            replication,
            clock,
            history: OnceLock::new(),
            seen: Mutex::default(),
            why: OnceLock::new(),
            over: CancellationToken::new(),
        }
    }

    /// Checks a new connection. Returns the reason if it leads to another life than the served one.
    pub(super) async fn check(
        &self,
        connection: &mut PgConnection,
    ) -> Result<Option<&'static str>, sqlx::Error> {
        let Some(served) = self.history.get() else { return Ok(None) };
        // Read before the database is asked, which other connections do meanwhile.
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let asked = self.clock.ask();
        let found = look(connection).await?;
        self.clock.told(asked, found.now);
        if found.history.as_ref() == Some(served) {
            match found.origin(self.replication) {
                Origin::Same | Origin::Followed if found.is_older_than(&seen) => {
                    // A snapshot of the disk was put back, this is a copy beside the original, or the primary that was given up.
                    forget_writer(connection).await?;
                }
                Origin::Same if self.was_led_elsewhere(&found, &seen) => {
                    // A server that takes replication for synchronous went on after a failover, where this one has no such promise.
                    forget_writer(connection).await?;
                }
                Origin::Same => {
                    self.note_seen(&found);
                    return Ok(None);
                }
                Origin::Followed => {
                    note(connection).await?;
                    self.note_seen(&found);
                    info!(from = found.written_by, to = found.here, "a synchronous standby took over");
                    return Ok(None);
                }
                Origin::Unknown | Origin::Other => {}
            }
        }
        if !self.over.is_cancelled() {
            error!(
                here = found.here,
                written_by = found.written_by,
                history = found.history,
                served,
                "the database continues an older state: a standby took over, or a backup was restored"
            );
        }
        self.end(
            "the database continues an older state (a standby took over, or a backup was restored), so what this server has in memory \
             is out of date; start it again",
        );
        Ok(Some("the database continues an older state; start the server again"))
    }

    /// The process must not serve on, because of this.
    pub(super) fn end(&self, why: &str) {
        _ = self.why.set(why.to_owned());
        self.over.cancel();
    }

    /// Whether a standby took over since this process looked last, and rows may be lost.
    fn was_led_elsewhere(&self, found: &DatabaseLife, (here, _): &(String, i64)) -> bool {
        self.replication == Replication::Asynchronous && !here.is_empty() && found.here != *here
    }

    fn note_seen(&self, found: &DatabaseLife) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !found.is_older_than(&seen) {
            *seen = (found.here.clone(), found.safe_up_to);
        }
    }
}

impl DatabaseLife {
    /// Whether the same cluster was further on once: in a later timeline, which only a promotion begins, or safe further on in this one.
    fn is_older_than(&self, (here, safe_up_to): &(String, i64)) -> bool {
        let (Some((cluster, timeline)), Some((seen, newest))) =
            (self.here.rsplit_once('/'), here.rsplit_once('/'))
        else {
            return false;
        };
        // Timelines have eight digits each.
        cluster == seen && (timeline, self.safe_up_to) < (newest, *safe_up_to)
    }

    fn finished(self) -> Result<DatabaseLife, StoreError> {
        if self.is_unfinished { Err(StoreError::unavailable(UNFINISHED)) } else { Ok(self) }
    }

    fn origin(&self, replication: Replication) -> Origin {
        let Some(before) = &self.written_by else { return Origin::Unknown };
        let cluster = |origin: &str| origin.rsplit_once('/').map(|(cluster, _)| cluster.to_owned());
        if *before == self.here {
            Origin::Same
        } else if replication == Replication::Synchronous && cluster(before) == cluster(&self.here) {
            Origin::Followed
        } else {
            Origin::Other
        }
    }
}

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
        _ = self.life.history.set(history);
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
        self.life.over.cancelled().await;
        self.life.why.get().cloned().unwrap_or_default()
    }

    /// Looks now and then, for as long as the process serves: what a new connection is refused for may also come while all are open.
    pub(super) async fn watch_life(&self) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let log = LogLimit::default();
        while !self.life.over.is_cancelled() {
            looks.tick().await;
            let wrong = async { Ok(self.wrong_with(&mut *self.reader().await?).await) };
            // That the database does not answer is told by those who need it.
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

/// Stores that whoever is asked wrote last.
pub(super) async fn note(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let note = format!(
        "INSERT INTO meta (key, value) VALUES ('{WRITTEN_BY}', {HERE}) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    );
    sqlx::raw_sql(AssertSqlSafe(note)).execute(connection).await.map(drop)
}

/// Stores that nobody knows who wrote last.
async fn forget_writer(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let forget = format!("UPDATE meta SET value = '{OLDER_COPY}' WHERE key = '{WRITTEN_BY}'");
    sqlx::raw_sql(AssertSqlSafe(forget)).execute(connection).await.map(drop)
}

/// One round trip, and no prepared statement that a pooler could lose.
pub(super) async fn look(connection: &mut PgConnection) -> Result<DatabaseLife, sqlx::Error> {
    let ask = format!(
        "SELECT {HERE}, (SELECT value FROM meta WHERE key = '{WRITTEN_BY}' AND value <> ''), \
         (SELECT value FROM meta WHERE key = '{HISTORY}'), {SAFE_UP_TO}, EXISTS (SELECT FROM meta WHERE key = '{IMPORT}'), \
         {NOW}"
    );
    let row = sqlx::raw_sql(AssertSqlSafe(ask)).fetch_one(connection).await?;
    Ok(DatabaseLife {
        here: row.try_get(0)?,
        written_by: row.try_get(1)?,
        history: row.try_get(2)?,
        safe_up_to: row.try_get(3)?,
        is_unfinished: row.try_get(4)?,
        now: row.try_get(5)?,
    })
}
