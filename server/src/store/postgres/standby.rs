//! With synchronous replication nothing is answered and nothing is shown that a standby may lack (I14).
//!
//! A commit waits for the standby and is seen by nobody meanwhile. Afterwards it is seen even if the standby does not have it: when
//! the primary crashed during the wait and came back, or when somebody cancelled the wait or ended its session. So what is read is
//! on the standby only if something was committed *and confirmed* since: the log reaches the standby in order. This sees to that:
//!
//! - before a new connection is used, for a crash ends all connections;
//! - before and after any use of a connection, while there is doubt: a commit of this process broke, was not waited for to its end, or was
//!   answered with a warning.
//!
//! One session commits for all who wait, since one that waits for a standby holds its place in the database however long that takes.
//! Where replication is asynchronous nothing of this is done.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use seqsvr_core::postgres_warnings::confirmed;
use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgSeverity};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::{PgOptions, Replication};
use crate::log_limit::LogLimit;
use crate::store::StoreError;

/// Commits something that changes nothing, and that any role may.
const COMMIT: &str = "SELECT pg_logical_emit_message(true, 'tidemark', '')";

/// Said while that is waited for.
pub(super) const WAITS: &str =
    "no synchronous standby has confirmed what this database shows; start the standby";

/// Between two tries to commit.
const PAUSE: Duration = Duration::from_millis(500);

/// How often it is asked whether the session of a commit is still there.
const LOOK_EVERY: Duration = Duration::from_secs(10);

tokio::task_local! {
    /// Whether the work waits for a connection, so that nothing of it was begun.
    static WAITS_FOR_A_CONNECTION: Arc<AtomicBool>;
}

/// The commits that were asked for, and those that are confirmed.
#[derive(Debug)]
pub(super) struct Standby {
    replication: Replication,
    connect: PgConnectOptions,
    /// How long anybody waits.
    patience: Duration,
    /// Numbers those who ask for a commit that begins later.
    asked: AtomicU64,
    /// The newest of them on which everybody waits.
    doubted: AtomicU64,
    /// Up to which number commits are confirmed.
    confirmed: watch::Sender<u64>,
    /// Whether somebody sees to that.
    is_confirming: Mutex<bool>,
}

/// A commit may begin; dropped, it has an unknown outcome, unless it still waits for a connection.
struct Begun<'a> {
    standby: &'a Standby,
    waits: Arc<AtomicBool>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.waits.load(Ordering::SeqCst) {
            self.standby.doubt();
        }
    }
}

impl Standby {
    /// For connections like `connect`.
    pub(super) fn new(options: &PgOptions, connect: PgConnectOptions) -> Standby {
        Standby {
            replication: options.replication,
            connect,
            patience: options.connect_timeout,
            asked: AtomicU64::new(0),
            doubted: AtomicU64::new(0),
            confirmed: watch::Sender::new(0),
            is_confirming: Mutex::new(false),
        }
    }

    pub(super) fn is_synchronous(&self) -> bool {
        self.replication == Replication::Synchronous
    }

    /// A commit may be seen that the standby lacks.
    pub(super) fn doubt(&self) {
        if self.is_synchronous() {
            self.doubted.fetch_max(self.ask(), Ordering::SeqCst);
        }
    }

    /// The same, if that is what `error` means.
    pub(super) fn heard(&self, error: &sqlx::Error) {
        let database =
            error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
        // One of a connection may be that to another node.
        let is_known = |code: &str| code != "40003" && !code.starts_with("08");
        let is_rolled_back =
            database.is_some_and(|error| error.severity() == PgSeverity::Error && is_known(error.code()));
        if !is_rolled_back {
            self.doubt();
        }
    }

    /// Waits for `work`, which may commit.
    ///
    /// # Errors
    /// Those of `work`; [`StoreError::Unavailable`] where it was answered and a standby may lack it.
    pub(super) async fn watch<T>(
        self: &Arc<Standby>,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if !self.is_synchronous() {
            return work.await;
        }
        let waits = Arc::new(AtomicBool::new(false));
        let begun = Begun { standby: self, waits: Arc::clone(&waits) };
        let done = WAITS_FOR_A_CONNECTION.scope(Arc::clone(&waits), confirmed(work)).await;
        let done = done.map_err(StoreError::unavailable)?;
        if !matches!(done, Err(StoreError::Unavailable(_))) {
            waits.store(true, Ordering::SeqCst);
        }
        drop(begun);
        if done.is_ok() {
            // The rows that were read meanwhile may be those that have come into doubt.
            self.settle().await?;
        }
        done
    }

    /// Notes that the work begins to wait for a connection, or has one.
    pub(super) fn waits_for_a_connection(waits: bool) {
        // Outside of a watched piece of work nobody asks.
        _ = WAITS_FOR_A_CONNECTION.try_with(|known| known.store(waits, Ordering::SeqCst));
    }

    /// Waits until nothing is in doubt that was when it was called.
    ///
    /// # Errors
    /// When that takes too long.
    pub(super) async fn settle(self: &Arc<Standby>) -> Result<(), StoreError> {
        match self.doubted.load(Ordering::SeqCst) {
            doubted if doubted <= *self.confirmed.borrow() => Ok(()),
            doubted => self.until_confirmed(doubted).await,
        }
    }

    /// Waits for a confirmed commit that begins now or later.
    ///
    /// # Errors
    /// When that takes too long.
    pub(super) async fn confirm(self: &Arc<Standby>) -> Result<(), StoreError> {
        let number = self.ask();
        self.until_confirmed(number).await
    }

    fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::SeqCst) + 1
    }

    async fn until_confirmed(self: &Arc<Standby>, number: u64) -> Result<(), StoreError> {
        let mut confirmed = self.confirmed.subscribe();
        {
            let mut is_confirming = self.is_confirming.lock().unwrap_or_else(PoisonError::into_inner);
            if !std::mem::replace(&mut *is_confirming, true) {
                tokio::spawn(see_to_it(Arc::downgrade(self)));
            }
        }
        match timeout(self.patience, confirmed.wait_for(|confirmed| *confirmed >= number)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(StoreError::unavailable(WAITS)),
        }
    }

    /// Whether all who have asked have their commit; then nobody sees to it any more.
    fn is_done(&self, confirmed: u64) -> bool {
        self.confirmed.send_replace(confirmed);
        let mut is_confirming = self.is_confirming.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: who asks later finds that nobody does.
        *is_confirming = self.asked.load(Ordering::SeqCst) > confirmed;
        !*is_confirming
    }
}

/// Commits until all who have asked are confirmed, or nobody is left to ask.
async fn see_to_it(standby: Weak<Standby>) {
    let (mut session, log) = (None, LogLimit::default());
    while let Some(this) = standby.upgrade() {
        let asked = this.asked.load(Ordering::SeqCst);
        let (connect, patience) = (this.connect.clone(), this.patience);
        // A commit may take as long as the standby is away.
        drop(this);
        let done = StandbySession::commit(&mut session, &connect, patience).await;
        let Some(this) = standby.upgrade() else { return };
        match done {
            Ok(()) if this.is_done(asked) => return,
            Ok(()) => {}
            Err(error) => {
                session = None;
                if let Some(left_out) = log.pass() {
                    warn!(%error, left_out, "a commit for the synchronous standby is tried again");
                }
                drop(this);
                sleep(PAUSE).await;
            }
        }
    }
}

/// A connection, and how the database knows it.
struct StandbySession {
    connection: PgConnection,
    pid: i32,
    began: String,
}

impl StandbySession {
    async fn open(connect: &PgConnectOptions) -> Result<StandbySession, sqlx::Error> {
        let mut connection = PgConnection::connect_with(connect).await?;
        let name = "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()";
        let (pid, began) = sqlx::query_as(name).fetch_one(&mut connection).await?;
        Ok(StandbySession { connection, pid, began })
    }

    /// Commits in the session that is there, or in a new one.
    async fn commit(
        open: &mut Option<StandbySession>,
        connect: &PgConnectOptions,
        patience: Duration,
    ) -> Result<(), StoreError> {
        let session = match open {
            Some(session) => session,
            None => open.insert(in_time(patience, StandbySession::open(connect)).await?),
        };
        let StandbySession { connection, pid, began } = session;
        let committed = async {
            confirmed(connection.execute(COMMIT)).await.map_err(StoreError::unavailable)??;
            Ok(())
        };
        tokio::select! {
            done = committed => done,
            () = until_gone(connect, patience, *pid, began) => Err(StoreError::unavailable("the session of a commit is gone")),
        }
    }
}

/// Waits until the database says that it has no such session: a machine that lost its power says nothing by itself.
async fn until_gone(connect: &PgConnectOptions, patience: Duration, pid: i32, began: &str) {
    let is_there = async || {
        let mut beside = PgConnection::connect_with(connect).await?;
        let there =
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2)";
        let there: bool = sqlx::query_scalar(there).bind(pid).bind(began).fetch_one(&mut beside).await?;
        _ = beside.close().await;
        Ok(there)
    };
    loop {
        sleep(LOOK_EVERY).await;
        if let Ok(false) = in_time(patience, is_there()).await {
            return;
        }
    }
}

async fn in_time<T>(
    limit: Duration,
    asked: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StoreError> {
    let silent = |_| StoreError::unavailable("the database does not answer");
    Ok(timeout(limit, asked).await.map_err(silent)??)
}
