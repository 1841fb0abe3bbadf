//! What goes because it is old.

use std::sync::Arc;

use super::MemoryState;
use crate::domain::{Conversation, Direction, Entry, IdempotencyKey, KEEPS, Kind, MessageId, Timestamp, Uid};
use crate::store::expiry::{Expiry, INBOXES_AT_ONCE};
use crate::store::{Expired, Forgotten, Keeping};

impl MemoryState {
    /// Up to which id `uid` has expired.
    pub(in crate::store::memory) fn expired_to(&self, uid: Uid) -> MessageId {
        self.expired_to.get(&uid).copied().unwrap_or_default()
    }

    fn all_rows(&self, uid: Uid, direction: Direction) -> impl Iterator<Item = Entry> {
        self.rows(uid, (0, MessageId::MAX.get()), direction)
    }

    /// The inboxes after `after`.
    fn inboxes_after(&self, after: Option<Uid>) -> Vec<Uid> {
        let place = |uid: Uid| (uid.partition_key(), uid);
        let mut uids: Vec<Uid> = self.latest_ids.keys().copied().collect();
        uids.retain(|uid| after.is_none_or(|after| place(*uid) > place(after)));
        uids.sort_unstable_by_key(|uid| place(*uid));
        uids
    }

    /// Removes old rows.
    pub(in crate::store::memory) fn expire_rows(
        &mut self,
        after: Option<Uid>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Expired {
        let (mut after, mut room) = (after, limit);
        for uid in self.inboxes_after(after) {
            let ids = (self.expired_to(uid).get() + 1, MessageId::MAX.get());
            let rows = self.rows(uid, ids, Direction::Forward);
            let rows: Vec<Entry> = rows.filter(|row| !row.content.kind.is_lasting()).take(room).collect();
            let expiry = self.expire(uid, &rows, sent_before);
            if expiry.through > MessageId::ZERO {
                self.expired_to.insert(uid, expiry.through);
            }
            let is_done = expiry.is_over || rows.len() < room;
            room -= expiry.len();
            if !is_done {
                return Expired { removed: (limit - room) as u64, after, is_done: false };
            }
            after = Some(uid);
        }
        Expired { removed: (limit - room) as u64, after, is_done: true }
    }

    /// Those of the next inboxes in which somebody has said for how long messages are kept.
    pub(in crate::store::memory) fn keeping(&self, after: Option<Uid>) -> Keeping {
        let has_some = |uid: Uid| {
            let mut keys =
                self.all_rows(uid, Direction::Forward).filter_map(|row| row.content.compaction_key(uid));
            keys.any(|key| key.starts_with(KEEPS))
        };
        let next = self.inboxes_after(after).into_iter().take(INBOXES_AT_ONCE);
        Keeping::of(next.map(|uid| (uid, has_some(uid))).collect(), after)
    }

    /// Removes old rows of one conversation.
    pub(in crate::store::memory) fn expire_conversation(
        &mut self,
        uid: Uid,
        of: Conversation,
        sent_before: Timestamp,
        limit: usize,
    ) -> Forgotten {
        let rows = self.all_rows(uid, Direction::Forward).filter(|row| row.conversation() == of);
        let rows = rows.filter(|row| !row.content.kind.is_lasting() && !row.content.is_shell());
        let rows: Vec<Entry> = rows.take(limit).collect();
        let expiry = self.expire(uid, &rows, sent_before);
        Forgotten { removed: expiry.len() as u64, more: !expiry.is_over && rows.len() == limit }
    }

    /// Removes old idempotency records.
    pub(in crate::store::memory) fn expire_records(
        &mut self,
        after: Option<IdempotencyKey>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Expired<IdempotencyKey> {
        let place = |(uid, client_id): IdempotencyKey| (uid.partition_key(), uid, client_id);
        let mut keys: Vec<IdempotencyKey> = self.records.keys().copied().collect();
        keys.retain(|key| after.is_none_or(|after| place(*key) > place(after)));
        keys.sort_unstable_by_key(|key| place(*key));
        keys.truncate(limit);
        let (last, is_done) = (keys.last().copied().or(after), keys.len() < limit);
        keys.retain(|key| self.records.get(key).is_some_and(|record| record.sent_at < sent_before));
        keys.iter().for_each(|key| _ = self.records.remove(key));
        Expired { removed: keys.len() as u64, after: last, is_done }
    }

    /// Removes those of these rows of an inbox that are old, in their order up to the first that is not.
    fn expire(&mut self, uid: Uid, rows: &[Entry], sent_before: Timestamp) -> Expiry {
        let newest = |conversation: Conversation| {
            let mut shown = self.all_rows(uid, Direction::Backward);
            let newest = shown.find(|row| row.content.is_shown() && row.conversation() == conversation);
            newest.map(|row| row.message_id).unwrap_or_default()
        };
        let expiry = Expiry::of(rows, sent_before, newest);
        for (id, shell) in &expiry.emptied {
            self.rows.insert((uid, *id), Arc::new(shell.clone()));
        }
        self.rows.retain(|(owner, id), row| {
            let is_shell = || {
                let first = expiry.shown.get(&row.conversation(uid));
                row.kind == Kind::Deleted && first.is_some_and(|first| id < first)
            };
            let is_mark = || row.compaction_key(uid).is_some_and(|key| expiry.marks.contains(&key));
            *owner != uid || !(expiry.gone.contains(id) || is_shell() || is_mark())
        });
        expiry
    }
}
