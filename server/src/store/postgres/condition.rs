//! How the store is doing, as readiness and metrics tell it. Decides nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tracing::info;

use super::PgDb;
use crate::store::{Health, StoreError};

/// Between two tries to store something while that does not work.
const PAUSE: Duration = Duration::from_secs(1);

/// After so long without a commit something is stored, to see whether that works: requests that fail in a read say nothing of it, and
/// to a server that nobody asks nothing happens.
const SILENCE: Duration = Duration::from_secs(2);

/// How long such a try may take. `/ready` says what became of it within 5 s.
const TRY: Duration = Duration::from_secs(2);

/// Kept up by commits and such tries.
#[derive(Debug, Default)]
pub(super) struct PgCondition {
    state: Mutex<PgConditionState>,
    refused: AtomicU64,
    /// That there is trouble.
    in_trouble: Notify,
}

#[derive(Debug, Default)]
struct PgConditionState {
    trouble: Option<Arc<str>>,
    last_commit: Option<Instant>,
}

impl PgCondition {
    /// A commit was stored.
    pub(super) fn committed(&self) {
        *self.state() = PgConditionState { trouble: None, last_commit: Some(Instant::now()) };
    }

    /// A commit was refused, or its outcome was not learnt.
    pub(super) fn refused(&self, why: &StoreError) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.state().trouble = Some(why.to_string().into());
        self.in_trouble.notify_one();
    }

    /// All of it.
    pub(super) fn health(&self) -> Health {
        let state = self.state();
        Health {
            trouble: state.trouble.clone(),
            since_commit: state.last_commit.map(|last| last.elapsed()),
            refused_commits: self.refused.load(Ordering::Relaxed),
            ..Health::default()
        }
    }

    /// Stores something whenever nobody else has for a while, and again and again where that does not work.
    pub(super) async fn watch(&self, db: &PgDb) {
        loop {
            // Whether a commit was refused or nothing happened.
            let _ = timeout(SILENCE, self.in_trouble.notified()).await;
            let state = self.health();
            if state.trouble.is_none() && state.since_commit.is_some_and(|since| since < SILENCE) {
                continue;
            }
            while let Err(error) = self.try_to_store(db).await {
                self.state().trouble = Some(error.to_string().into());
                tokio::time::sleep(PAUSE).await;
            }
            if self.state().trouble.take().is_some() {
                info!("the database accepts writes again");
            }
        }
    }

    async fn try_to_store(&self, db: &PgDb) -> Result<(), StoreError> {
        let store = async {
            match db.standby.is_synchronous() {
                // Each other one would leave a session behind that waits for the standby.
                true => db.standby.confirm().await,
                false => store_something(db).await,
            }
        };
        timeout(TRY, store).await.unwrap_or_else(|_| {
            Err(StoreError::unavailable(format!("{} stored nothing within {TRY:?}", db.place())))
        })
    }

    fn state(&self) -> MutexGuard<'_, PgConditionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn store_something(db: &PgDb) -> Result<(), StoreError> {
    let store =
        "INSERT INTO meta (key, value) VALUES ('storable', '') ON CONFLICT (key) DO UPDATE SET value = ''";
    Ok(sqlx::query(store).execute(&mut *db.for_queues().await?).await.map(drop)?)
}
