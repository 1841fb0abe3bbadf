//! Commits where the tables are distributed over the nodes of Citus (docs/CITUS.md): no transaction writes to two
//! partitions.
//!
//! A sender's writes are accepted in the sender's partition, with the copies for others owed (`commit`). Then each
//! receiver's copies are delivered in the receiver's partition, and then they are owed no more (`deliver`). A copy that
//! fails in between stays owed (`owed`); the queues deliver it later. Groups have partitions of their own (`groups`).
//! `calls` are the stored functions. Nothing but `protocol` calls this folder.

use std::collections::HashSet;
use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::PgDb;
use crate::store::{CommitError, Outcome, Pending, PendingKey, StoreError, Write};
use commit::Commit;

mod calls;
mod commit;
mod deliver;
mod groups;
mod owed;

/// How often changes of groups are looked for that nobody accepts.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Makes writes durable.
pub(super) async fn commit(db: &PgDb, writes: &[Write]) -> Result<Vec<Outcome>, CommitError> {
    Commit::new(db, writes).run().await
}

/// Acceptances after `after` with copies owed, at most `limit`.
pub(super) async fn pending(
    connection: &mut PgConnection,
    after: PendingKey,
    limit: usize,
) -> Result<Vec<Pending>, StoreError> {
    owed::pending(connection, after, limit).await
}

/// Accepts the changes of groups whose servers have died in between, for as long as the process serves.
pub(super) async fn watch(db: &PgDb) {
    let (mut looks, mut seen) = (interval(LOOK_EVERY), HashSet::new());
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if let Err(error) = groups::accept_changes(db, &mut seen).await {
            warn!(%error, "changes of groups cannot be accepted yet; trying again");
        }
    }
}
