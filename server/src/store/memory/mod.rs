//! Storage in memory: the simplest thing that keeps the contract, for tests and as the model of the real ones.
//!
//! One `MemoryState` behind one lock, and every call a few lines on ordered maps. Nothing survives
//! the process. The conformance suite and the random histories of the SQLite tests are run against it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use uuid::Uuid;

use super::*;
use crate::domain::Direction;

mod state;
mod tables;

use state::MemoryState;
pub use tables::MemoryTables;

/// A [`MessageStore`] that forgets everything when it is dropped. Its history is always the nil UUID.
pub struct MemoryStore {
    state: Mutex<MemoryState>,
    history: HistoryId,
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore { state: Mutex::default(), history: HistoryId(Uuid::nil()) }
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl MessageStore for MemoryStore {
    async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
        let mut state = self.state();
        let latest = state.behind(&writes);
        if !latest.is_empty() {
            return Err(CommitError::Behind(Box::new(Behind { writes, latest })));
        }
        let stale = state.stale(&writes);
        if !stale.is_empty() {
            return Err(CommitError::Stale(stale));
        }
        Ok(writes.into_iter().map(|write| state.write(write)).collect())
    }

    fn unasked(&self) -> Option<Unused> {
        Some(Unused { since: None })
    }

    async fn keys(&self, keys: &[IdempotencyKey]) -> Result<Vec<KeyState>, StoreError> {
        let state = self.state();
        let unused = KeyState::Unused(Unused { since: None });
        Ok(keys.iter().map(|key| state.records.get(key).copied().map_or(unused, KeyState::Used)).collect())
    }

    async fn pending(&self, after: PendingKey, limit: usize) -> Result<Vec<Pending>, StoreError> {
        Ok(self.state().pending(after.acceptance, limit))
    }

    async fn newest(&self, of: &[(Uid, String)]) -> Result<Vec<Option<Entry>>, StoreError> {
        let state = self.state();
        Ok(of.iter().map(|(uid, name)| state.keyed(*uid).remove(name)).collect())
    }

    async fn newest_under(
        &self,
        uid: Uid,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        let keyed = self.state().keyed(uid).into_iter();
        Ok(keyed.filter(|(name, _)| name.starts_with(prefix) && **name > *after).take(limit).collect())
    }

    async fn keys_under(&self, uid: Uid, prefix: &str, most: usize) -> Result<usize, StoreError> {
        let keys = self.state().keyed(uid).into_keys();
        Ok(keys.filter(|name| name.starts_with(prefix)).take(most).count())
    }

    async fn copies(&self, key: IdempotencyKey, uids: &[Uid]) -> Result<Vec<Option<MessageId>>, StoreError> {
        let state = self.state();
        let all = (0, MessageId::MAX.get());
        let copy = |uid: &Uid| {
            let mut rows = state.rows(*uid, all, Direction::Forward);
            rows.find(|entry| entry.content.key() == Some(key)).map(|entry| entry.message_id)
        };
        Ok(uids.iter().map(copy).collect())
    }

    async fn forget_rows(&self, uid: Uid, limit: usize) -> Result<Forgotten, StoreError> {
        Ok(self.state().forget_rows(uid, limit))
    }

    async fn expire_rows(
        &self,
        after: Option<Uid>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired, StoreError> {
        Ok(self.state().expire_rows(after, sent_before, limit))
    }

    async fn expire_records(
        &self,
        after: Option<IdempotencyKey>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired<IdempotencyKey>, StoreError> {
        Ok(self.state().expire_records(after, sent_before, limit))
    }

    async fn keeping(&self, after: Option<Uid>) -> Result<Keeping, StoreError> {
        Ok(self.state().keeping(after))
    }

    async fn expire_conversation(
        &self,
        uid: Uid,
        of: Conversation,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Forgotten, StoreError> {
        Ok(self.state().expire_conversation(uid, of, sent_before, limit))
    }

    async fn expired_to(&self, uid: Uid) -> Result<MessageId, StoreError> {
        Ok(self.state().expired_to(uid))
    }

    async fn latest_ids(&self, uids: &[Uid]) -> Result<Vec<MessageId>, StoreError> {
        let state = self.state();
        Ok(uids.iter().map(|uid| state.latest_id(*uid)).collect())
    }

    async fn watermark(&self, uid: Uid) -> Result<MessageId, StoreError> {
        Ok(self.state().latest_id(uid))
    }

    fn tail(&self, uid: Uid, cursor: MessageId, _: MessageId, limit: PageLimit) -> Option<Page> {
        let ids = (cursor.get() + 1, MessageId::MAX.get());
        Some(Page::filled(self.state().rows(uid, ids, Direction::Forward), limit))
    }

    async fn range(&self, uid: Uid, query: RangeQuery) -> Result<Page, StoreError> {
        let Some(ids) = query.ids() else { return Ok(Page::default()) };
        Ok(Page::filled(self.state().rows(uid, ids, query.direction()), query.page()))
    }

    async fn entries(&self, rows: &[(Uid, MessageId)]) -> Result<Vec<Option<Entry>>, StoreError> {
        let state = self.state();
        let one =
            |&(uid, id): &(Uid, MessageId)| state.rows(uid, (id.get(), id.get()), Direction::Forward).next();
        Ok(rows.iter().map(one).collect())
    }

    async fn conversations(
        &self,
        uid: Uid,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError> {
        Ok(self.state().conversations(uid, before, limit))
    }

    async fn conversation(
        &self,
        uid: Uid,
        conversation: Conversation,
        query: RangeQuery,
    ) -> Result<Page, StoreError> {
        let Some(ids) = query.ids() else { return Ok(Page::default()) };
        let state = self.state();
        let rows = state
            .rows(uid, ids, query.direction())
            .filter(|entry| !entry.content.kind.is_state() && entry.conversation() == conversation);
        Ok(Page::filled(rows, query.page()))
    }

    async fn have_messages(&self, of: &[(Uid, Conversation)]) -> Result<Vec<bool>, StoreError> {
        let state = self.state();
        let has = |(uid, conversation): &(Uid, Conversation)| {
            let mut rows = state.rows(*uid, (0, MessageId::MAX.get()), Direction::Backward);
            rows.any(|entry| entry.content.is_shown() && entry.conversation() == *conversation)
        };
        Ok(of.iter().map(has).collect())
    }

    async fn heard_from(&self, uid: Uid, others: &[Uid]) -> Result<Vec<bool>, StoreError> {
        let state = self.state();
        let has = |other: &Uid| {
            let with = Conversation::User(*other);
            let rows = state.rows(uid, (0, MessageId::MAX.get()), Direction::Backward);
            let mut newest = rows.filter(|entry| entry.conversation() == with).take(HEARD_AMONG);
            newest.any(|entry| entry.content.is_said_by(*other))
        };
        Ok(others.iter().map(has).collect())
    }

    async fn read_markers(&self, of: &[(Uid, Conversation)]) -> Result<Vec<MessageId>, StoreError> {
        let state = self.state();
        Ok(of.iter().map(|(uid, conversation)| state.read_to(*uid, *conversation)).collect())
    }

    async fn groups(&self, gids: &[GroupId]) -> Result<Vec<Option<Arc<Group>>>, StoreError> {
        let state = self.state();
        Ok(gids.iter().map(|gid| state.groups.get(gid).cloned()).collect())
    }

    async fn inboxes(
        &self,
        from: (&str, i64),
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Uid>, StoreError> {
        Ok(self.state().inboxes(from, direction, limit))
    }

    async fn largest_group_id(&self) -> Result<GroupId, StoreError> {
        Ok(self.state().groups.keys().max().copied().unwrap_or(GroupId(0)))
    }

    async fn history(&self) -> Result<HistoryId, StoreError> {
        Ok(self.history)
    }

    fn health(&self) -> Health {
        Health::default()
    }

    async fn close(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::Made;

    async fn make() -> Made {
        Made::new(MemoryStore::new())
    }

    crate::message_store_conformance!(make);
}
