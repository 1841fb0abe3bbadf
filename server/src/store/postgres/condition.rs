//! How the store is doing, as readiness and metrics tell it. Decides nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::info;

use super::PgDb;
use crate::store::{Health, StoreError};

/// Between two tries to store something, where a commit could not.
const PAUSE: Duration = Duration::from_secs(1);

/// Kept up by commits and such tries.
#[derive(Debug, Default)]
pub(super) struct Condition {
    state: Mutex<State>,
    refused: AtomicU64,
    /// That there is trouble.
    in_trouble: Notify,
}

#[derive(Debug, Default)]
struct State {
    trouble: Option<Arc<str>>,
    last_commit: Option<Instant>,
}

impl Condition {
    /// A commit was stored.
    pub(super) fn committed(&self) {
        *self.state() = State { trouble: None, last_commit: Some(Instant::now()) };
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

    /// Tries, whenever there is trouble, to store something until it is stored: nobody sends to a server that is not ready, so no commit
    /// would find out.
    pub(super) async fn watch(&self, db: &PgDb) {
        loop {
            self.in_trouble.notified().await;
            while self.state().trouble.is_some() {
                tokio::time::sleep(PAUSE).await;
                match store_something(db).await {
                    Ok(()) => {
                        self.state().trouble = None;
                        info!("the database stores again");
                    }
                    Err(error) => self.state().trouble = Some(error.to_string().into()),
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn store_something(db: &PgDb) -> Result<(), StoreError> {
    let store =
        "INSERT INTO meta (key, value) VALUES ('storable', '') ON CONFLICT (key) DO UPDATE SET value = ''";
    db.limited(async { Ok(sqlx::query(store).execute(&mut *db.for_queues().await?).await.map(drop)?) }).await
}
