//! The layout of Citus (docs/CITUS.md): rows lie with their partition key on several nodes. How a commit is done
//! there stands in the folder `distributed`.

use std::collections::BTreeMap;

use super::PgLayout;
use crate::store::migrations::PostgresSchema;
use crate::store::postgres::Replication;

/// The stored functions that it has besides: the name, and the text that makes it.
pub(in crate::store::postgres) const FUNCTIONS: &[(&str, &str)] =
    include!(concat!(env!("OUT_DIR"), "/distributed.rs"));

/// Functions of the plain layout that it must not have: a server of that layout that still runs would write to several partitions in one
/// transaction.
const PLAIN_ALONE: [&str; 3] = ["commit_changes", "commit_facts", "commit_messages"];

/// See the module.
pub(super) struct Distributed;

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

    fn refuses_early_copies(&self) -> bool {
        true
    }
}

/// Citus joins tables along the key by which they are distributed alone, and reads lists only of nodes that have one of the groups.
const GROUPS: &str = "SELECT wanted.place, now.version, now.settings::text,
         member.uid, member.epoch, member.active, member.standing, member.since
     FROM unnest($1, $2) WITH ORDINALITY AS wanted(gid, known, place)
     JOIN groups AS now ON now.gid = wanted.gid AND now.gid = ANY($1)
     LEFT JOIN members AS member ON member.gid = now.gid AND now.version <> wanted.known
     ORDER BY wanted.place, member.uid";
