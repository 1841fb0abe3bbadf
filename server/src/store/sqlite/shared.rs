//! The state that the store's handle and its committer share.

use std::sync::Arc;

use quick_cache::sync::Cache;

use super::condition::SqliteCondition;
use super::db::Db;
use super::memtable::{MemtableSet, MemtableView};
use super::rows::LiveTables;
use super::{SqliteOptions, lookup};
use crate::domain::{Group, GroupId, IdempotencyKey};
use crate::store::{KeyState, StoreError, Unused};

/// Read by everybody; what is durable is put in by the committer alone.
pub(super) struct SqliteShared {
    pub(super) db: Arc<Db>,
    pub(super) memory: MemtableSet,
    pub(super) options: SqliteOptions,
    pub(super) tables: LiveTables,
    /// Groups as last accepted; some of those that there are.
    groups: Cache<GroupId, Arc<Group>>,
    pub(super) condition: SqliteCondition,
}

impl SqliteShared {
    /// Around what was read at the start.
    pub(super) fn new(
        db: Arc<Db>,
        memory: MemtableSet,
        tables: LiveTables,
        options: SqliteOptions,
    ) -> SqliteShared {
        let groups = Cache::new(options.known_groups.max(1));
        SqliteShared { db, memory, options, tables, groups, condition: SqliteCondition::default() }
    }

    /// The group, if it is known here.
    pub(super) fn group(&self, gid: GroupId) -> Option<Arc<Group>> {
        self.groups.get(&gid)
    }

    /// Shows a group as it is now durable.
    pub(super) fn publish_group(&self, group: Arc<Group>) {
        self.groups.insert(group.gid, group);
    }

    /// Forgets the groups; they are read again when asked for.
    pub(super) fn forget_groups(&self) {
        self.groups.clear();
    }

    /// The states of these keys: memory first, then one statement for the keys that it does not know.
    pub(super) async fn keys(&self, keys: &[IdempotencyKey]) -> Result<Vec<KeyState>, StoreError> {
        // Before the tables are asked: what is committed meanwhile is younger than the proof.
        let view = self.memory.view();
        let unused = KeyState::Unused(Unused { since: Some(view.number) });
        let recent = |key: &IdempotencyKey| view.record(*key).map_or(unused, KeyState::Used);
        let mut states: Vec<KeyState> = keys.iter().map(recent).collect();
        let missing = |(_, state): &(&IdempotencyKey, &KeyState)| matches!(state, KeyState::Unused(_));
        let missing: Vec<IdempotencyKey> =
            keys.iter().zip(&states).filter(missing).map(|(key, _)| *key).collect();
        if missing.is_empty() {
            return Ok(states);
        }
        let mut connection = self.db.service().await?;
        let stored = lookup::records(&mut *connection, missing).await?;
        connection.give_back();
        for (key, state) in keys.iter().zip(&mut states) {
            if let (KeyState::Unused(_), Some(record)) = (&state, stored.get(key)) {
                *state = KeyState::Used(*record);
            }
        }
        Ok(states)
    }
}

impl MemtableView {
    /// Whether memory holds all that was committed since `unused` was made, so that a key which is not in memory is unused still: two
    /// views with at most one freeze between them share a memtable.
    pub(super) fn reaches_back_to(&self, unused: Unused) -> bool {
        unused.since.is_some_and(|since| self.number <= since + 1)
    }
}
