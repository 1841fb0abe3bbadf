//! One life of the data (I14): which cluster wrote last, and the history that this process serves.
//!
//! A standby that takes over without the newest rows, and a database that is restored from a backup, continue an older
//! state. Both are known by where the database is: the system identifier of its cluster, the identity of the table
//! `meta`, the timeline. `meta` has that of whoever wrote last. A process that starts on another one begins another life
//! (`history`). A process that is at work serves nothing more of it: what it has in memory is of the life before. Called by
//! `PgDb` for each new connection.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sqlx::{AssertSqlSafe, PgConnection, Row as _};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::Replication;
use super::clock::{DbClock, NOW};
use crate::store::StoreError;

/// The keys under which `meta` has the history's name and, below, the last writer.
pub(super) const HISTORY: &str = "history";
/// While an import fills the installation: the checksum of its file, and how many of its records are stored.
pub(super) const IMPORT: &str = "import";
pub(super) const IMPORTED: &str = "imported";
/// The error of an installation that has the former.
pub(super) const UNFINISHED: &str = "an import into it was not finished; run `tidemark import` with the same file again, or empty the database";
pub(super) const WRITTEN_BY: &str = "written_by";

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
    pub(super) replication: Replication,
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
    pub(super) here: String,
    safe_up_to: i64,
    pub(super) written_by: Option<String>,
    pub(super) history: Option<String>,
    /// An import was begun and is not finished.
    is_unfinished: bool,
}

/// The last writer, seen from a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Origin {
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
        if !self.is_over() {
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

    /// From now on this history is served.
    pub(super) fn serve(&self, history: String) {
        _ = self.history.set(history);
    }

    /// The process must not serve on, because of this.
    pub(super) fn end(&self, why: &str) {
        _ = self.why.set(why.to_owned());
        self.over.cancel();
    }

    /// Whether that is so.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Waits until it is so, and says why.
    pub(super) async fn ended(&self) -> String {
        self.over.cancelled().await;
        self.why.get().cloned().unwrap_or_default()
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

    /// Itself, unless an import into it is not finished.
    pub(super) fn finished(self) -> Result<DatabaseLife, StoreError> {
        if self.is_unfinished { Err(StoreError::unavailable(UNFINISHED)) } else { Ok(self) }
    }

    /// Whose writing it continues.
    pub(super) fn origin(&self, replication: Replication) -> Origin {
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
