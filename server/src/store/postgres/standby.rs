//! With synchronous replication nothing is answered and nothing is shown that a standby may lack (I14).
//!
//! A commit waits for the standby and is seen by nobody meanwhile. Afterwards it is seen even if the standby does not have it: when
//! the primary crashed during the wait and came back, or when somebody cancelled the wait or ended its session. So what is read is
//! on the standby only if something was committed *and confirmed* since: the log reaches the standby in order. This asks for that:
//!
//! - with each new connection, for a crash ends all connections;
//! - before the next use of any connection after a commit whose outcome this process does not know: one that broke, that nobody waited
//!   for to its end, or that was answered with a warning.
//!
//! Where replication is asynchronous it does nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use seqsvr_core::store::postgres_warnings::confirmed;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use sqlx::{Executor as _, PgConnection};
use tokio::sync::Mutex;

use super::Replication;
use crate::store::StoreError;

/// Commits something that changes nothing, and that any role may.
const COMMIT: &str = "SELECT pg_logical_emit_message(true, 'tidemark', '')";

/// What is said while that is waited for.
pub(super) const WAITS: &str =
    "no synchronous standby has confirmed what this database shows; start the standby";

/// What is known of it.
#[derive(Debug)]
pub(super) struct Standby {
    replication: Replication,
    /// Commits of unknown outcome so far.
    doubts: AtomicU64,
    /// Of those, how many were followed by a confirmed commit.
    settled: AtomicU64,
    /// One such commit at a time.
    turn: Mutex<()>,
}

/// A commit may begin; dropped, it has an unknown outcome.
struct Begun<'a>(&'a Standby);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.doubt();
    }
}

impl Standby {
    pub(super) fn new(replication: Replication) -> Standby {
        Standby { replication, doubts: AtomicU64::new(0), settled: AtomicU64::new(0), turn: Mutex::new(()) }
    }

    /// A commit may be seen that the standby lacks.
    pub(super) fn doubt(&self) {
        if self.replication == Replication::Synchronous {
            self.doubts.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The same, if that is what `error` means.
    pub(super) fn heard(&self, error: &sqlx::Error) {
        let database =
            error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
        let is_rolled_back = database
            .is_some_and(|error| error.severity() == PgSeverity::Error && !matches!(error.code(), "40003"));
        if !is_rolled_back {
            self.doubt();
        }
    }

    /// Waits for `work`, which may commit.
    ///
    /// # Errors
    /// Those of `work`; [`StoreError::Unavailable`] where it was answered and a standby may lack it.
    pub(super) async fn watch<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if self.replication == Replication::Asynchronous {
            return work.await;
        }
        let begun = Begun(self);
        let done = confirmed(work).await.map_err(StoreError::unavailable)?;
        if !matches!(done, Err(StoreError::Unavailable(_))) {
            std::mem::forget(begun);
        }
        done
    }

    /// Sees to it that what `connection` shows is confirmed, after whatever is in doubt.
    ///
    /// # Errors
    /// When it is not.
    pub(super) async fn confirm(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        if self.is_settled() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        let doubts = self.doubts.load(Ordering::SeqCst);
        if !self.is_settled() {
            commit(connection).await?;
            self.settled.fetch_max(doubts, Ordering::SeqCst);
        }
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::SeqCst) >= self.doubts.load(Ordering::SeqCst)
    }

    /// The same for a new connection, whatever is in doubt.
    ///
    /// # Errors
    /// When it is not.
    pub(super) async fn confirm_new(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        match self.replication {
            Replication::Asynchronous => Ok(()),
            Replication::Synchronous => commit(connection).await,
        }
    }
}

async fn commit(connection: &mut PgConnection) -> Result<(), StoreError> {
    confirmed(connection.execute(COMMIT)).await.map_err(StoreError::unavailable)??;
    Ok(())
}
