//! The layout in which the tables are distributed over the nodes of Citus (docs/CITUS.md): no transaction writes to two
//! partitions.
//!
//! A sender's writes are accepted in the sender's partition, with the copies for others owed (`commit`). Then each
//! receiver's copies are delivered in the receiver's partition, and then they are owed no more (`deliver`). A copy that
//! fails in between stays owed (`owed`); the queues deliver it later. Groups have partitions of their own (`groups`).
//! `calls` are the stored functions. Nothing but [`PgLayout`] calls this folder.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::PgConnection;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::layout::PgLayout;
use super::{PgDb, PostgresStore, Replication};
use crate::store::migrations::PostgresSchema;
use crate::store::{CommitError, Outcome, Pending, PendingKey, StoreError, Write};
use commit::Commit;

mod calls;
mod commit;
mod deliver;
mod groups;
mod owed;

/// The stored functions that it has besides: the name, and the text that makes it.
pub(super) const FUNCTIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/distributed.rs"));

/// Functions of the plain layout that it must not have: a server of that layout that still runs would write to several partitions in one
/// transaction.
const PLAIN_ALONE: [&str; 3] = ["commit_changes", "commit_facts", "commit_messages"];

/// How often changes of groups are looked for that nobody accepts.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// See the module.
pub(super) struct Distributed;

#[async_trait]
impl PgLayout for Distributed {
    fn refusal(&self, replication: Replication) -> Option<String> {
        let why = "are distributed, and a failover of a worker that loses rows is not noticed: replicate all nodes synchronously and set \
                   [storage] replication to \"synchronous\"";
        (replication == Replication::Asynchronous).then(|| why.to_owned())
    }

    fn only_plain(&self, what: &str) -> Option<String> {
        Some(format!(
            "are distributed, and {what} does not work on them yet; import before they are distributed, and back up with the tools of \
             PostgreSQL"
        ))
    }

    fn functions(&self, program: &PostgresSchema) -> BTreeMap<&'static str, &'static str> {
        let common = program.functions.iter().filter(|(name, _)| !PLAIN_ALONE.contains(name));
        common.chain(FUNCTIONS).copied().collect()
    }

    /// Citus takes no limit in a subquery that is asked once for each key; there the planner of each node has to find the keys by itself.
    /// Only where the subquery itself names the keys as constants, the nodes that have none of them are not asked: without that, one node
    /// that is down would stop everybody.
    fn look_up(&self, sql: &str) -> String {
        sql.replace(" LIMIT 1)", ")")
            .replace("partition_key = wanted.key", "partition_key = wanted.key AND partition_key = ANY($1)")
    }

    fn groups(&self) -> &'static str {
        GROUPS
    }

    async fn commit(&self, store: &PostgresStore, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
        Commit::new(&store.db, &writes).run().await
    }

    async fn pending(
        &self,
        connection: &mut PgConnection,
        after: PendingKey,
        limit: usize,
    ) -> Result<Vec<Pending>, StoreError> {
        owed::pending(connection, after, limit).await
    }

    fn refuses_early_copies(&self) -> bool {
        true
    }

    /// Accepts the changes of groups whose servers have died in between.
    async fn watch(&self, db: &PgDb) {
        let (mut looks, mut seen) = (interval(LOOK_EVERY), HashSet::new());
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if let Err(error) = groups::accept_changes(db, &mut seen).await {
                warn!(%error, "changes of groups cannot be accepted yet; trying again");
            }
        }
    }
}

/// Citus joins tables along the key by which they are distributed alone, and reads lists only of nodes that have one of the groups.
const GROUPS: &str = "SELECT wanted.place, now.version, now.settings::text,
         member.uid, member.epoch, member.active, member.standing, member.since
     FROM unnest($1, $2) WITH ORDINALITY AS wanted(gid, known, place)
     JOIN groups AS now ON now.gid = wanted.gid AND now.gid = ANY($1)
     LEFT JOIN members AS member ON member.gid = now.gid AND now.version <> wanted.known
     ORDER BY wanted.place, member.uid";
