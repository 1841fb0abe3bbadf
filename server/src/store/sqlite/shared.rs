//! What the store's handle and its committer share.

use std::sync::{Arc, Mutex, PoisonError};

use quick_cache::{sync, unsync};

use super::condition::Condition;
use super::db::Db;
use super::memtable::Memory;
use super::{SqliteOptions, lookup};
use crate::domain::{ClientId, Group, GroupId, Uid};
use crate::store::{Sent, StoreError};

/// Read by everybody; what is durable is put in by the committer alone.
pub(super) struct Shared {
    pub(super) db: Arc<Db>,
    pub(super) memory: Memory,
    pub(super) options: SqliteOptions,
    /// Groups as last accepted; some of those that there are.
    groups: sync::Cache<GroupId, Arc<Group>>,
    /// Names that are in no table, and in memory only if a commit is just putting them there.
    new_names: Mutex<unsync::Cache<(Uid, ClientId), ()>>,
    pub(super) condition: Condition,
}

impl Shared {
    /// Around what was read at the start.
    pub(super) fn new(db: Arc<Db>, memory: Memory, options: SqliteOptions) -> Shared {
        let groups = sync::Cache::new(options.known_groups.max(1));
        let new_names = Mutex::new(unsync::Cache::new(options.known_new_names.max(1)));
        Shared { db, memory, options, groups, new_names, condition: Condition::default() }
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

    /// The idempotency records under these names. Those found to be new are noted, so that the commit which
    /// follows does not ask the tables again.
    pub(super) async fn sent(&self, names: &[(Uid, ClientId)]) -> Result<Vec<Option<Sent>>, StoreError> {
        let before = self.memory.view();
        let mut found: Vec<Option<Sent>> = names.iter().map(|name| before.sent(*name)).collect();
        let missing: Vec<_> =
            names.iter().zip(&found).filter(|(_, sent)| sent.is_none()).map(|(name, _)| *name).collect();
        if missing.is_empty() {
            return Ok(found);
        }
        let stored = lookup::sent(self.db.service(), missing.iter().copied()).await?;
        for (name, sent) in names.iter().zip(&mut found) {
            if sent.is_none() {
                *sent = stored.get(name).copied();
            }
        }
        let new = missing.into_iter().filter(|name| !stored.contains_key(name));
        self.note_new_names(new, before.number);
        Ok(found)
    }

    /// `since`: the view after which the tables were asked. What was committed meanwhile is still in memory
    /// unless two flushes ended; the commit takes its names out of the set only after it put them into memory.
    fn note_new_names(&self, names: impl Iterator<Item = (Uid, ClientId)>, since: u64) {
        let mut known = self.new_names.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.memory.view();
        if now.number > since + 1 {
            return;
        }
        for name in names.filter(|name| now.sent(*name).is_none()) {
            known.insert(name, ());
        }
    }

    /// Whether the name is known to be new, as long as it is not in memory.
    pub(super) fn is_new_name(&self, name: (Uid, ClientId)) -> bool {
        self.new_names.lock().unwrap_or_else(PoisonError::into_inner).get(&name).is_some()
    }

    /// Names that are in memory now.
    pub(super) fn names_taken(&self, names: impl Iterator<Item = (Uid, ClientId)>) {
        let mut known = self.new_names.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            known.remove(&name);
        }
    }

    /// Forgets which names are new.
    pub(super) fn forget_new_names(&self) {
        self.new_names.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
