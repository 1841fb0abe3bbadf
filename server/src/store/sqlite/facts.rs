//! Look-ups of the queues before they decide, for a whole batch at once: memory first, then one statement on
//! connections of their own.

use super::lookup;
use super::shared::SqliteShared;
use crate::domain::{Content, Conversation, Direction, Entry, IdempotencyKey, MessageId, Uid};
use crate::store::StoreError;

impl SqliteShared {
    /// The latest ids of these users, in order.
    pub(super) async fn latest_ids(&self, uids: &[Uid]) -> Result<Vec<MessageId>, StoreError> {
        let view = self.memory.view();
        let recent: Vec<Option<MessageId>> = uids.iter().map(|uid| view.latest_id(*uid)).collect();
        let missing: Vec<Uid> = missing(uids, &recent);
        if missing.is_empty() {
            return Ok(recent.into_iter().flatten().collect());
        }
        let mut connection = self.db.service().await?;
        let stored = lookup::latest_ids(&mut *connection, missing).await?;
        connection.give_back();
        let latest = |(uid, recent): (&Uid, Option<MessageId>)| {
            recent.or_else(|| stored.get(uid).copied()).unwrap_or_default()
        };
        Ok(uids.iter().zip(recent).map(latest).collect())
    }

    /// These rows, in order.
    pub(super) async fn entries(&self, rows: &[(Uid, MessageId)]) -> Result<Vec<Option<Entry>>, StoreError> {
        let view = self.memory.view();
        let mut found: Vec<Option<Entry>> = rows.iter().map(|&(uid, id)| view.row(uid, id)).collect();
        let mut missing = missing(rows, &found);
        missing.retain(|(uid, id)| view.base(*uid).is_none_or(|base| *id <= base));
        if !missing.is_empty() {
            let mut connection = self.db.service().await?;
            let stored = lookup::entries(&mut *connection, &missing).await?;
            connection.give_back();
            for (row, found) in rows.iter().zip(&mut found) {
                if found.is_none() {
                    *found = stored.get(row).cloned();
                }
            }
        }
        let now = |row: Option<Entry>| row.and_then(|row| view.changes(row.receiver).show(row));
        Ok(found.into_iter().map(now).collect())
    }

    /// The newest rows under these compaction keys, in order.
    pub(super) async fn newest(&self, of: &[(Uid, String)]) -> Result<Vec<Option<Entry>>, StoreError> {
        let view = self.memory.view();
        let recent = |(uid, name): &(Uid, String)| view.row(*uid, view.newest(*uid, name)?);
        let mut found: Vec<Option<Entry>> = of.iter().map(recent).collect();
        let missing: Vec<&(Uid, String)> =
            of.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(of, _)| of).collect();
        if !missing.is_empty() {
            let mut connection = self.db.service().await?;
            let stored = lookup::newest(&mut *connection, &missing).await?;
            connection.give_back();
            let empty = found.iter_mut().filter(|found| found.is_none());
            empty.zip(stored).for_each(|(place, stored)| *place = stored);
        }
        Ok(found)
    }

    /// The ids of these users' copies of what was accepted under `key`, in order.
    pub(super) async fn copies(
        &self,
        key: IdempotencyKey,
        uids: &[Uid],
    ) -> Result<Vec<Option<MessageId>>, StoreError> {
        let view = self.memory.view();
        let mut copies: Vec<_> = uids.iter().map(|uid| view.copy(*uid, key)).collect();
        let missing = missing(uids, &copies);
        if !missing.is_empty() {
            let stored = lookup::copies(&mut *self.db.reader().await?, key, &missing).await?;
            for (uid, copy) in uids.iter().zip(&mut copies) {
                *copy = copy.or_else(|| stored.get(uid).copied());
            }
        }
        Ok(copies)
    }

    /// How far these users have read, in order.
    pub(super) async fn read_markers(
        &self,
        of: &[(Uid, Conversation)],
    ) -> Result<Vec<MessageId>, StoreError> {
        if of.is_empty() {
            return Ok(Vec::new());
        }
        // Memory holds the read markers of some time only, so the tables are always asked.
        let view = self.memory.view();
        let mut connection = self.db.service().await?;
        let stored = lookup::of_conversations(&mut *connection, "read_to", of).await?;
        connection.give_back();
        let recent = |(uid, conversation): &(Uid, Conversation)| view.read_marker(*uid, *conversation);
        Ok(of.iter().zip(stored).map(|(of, stored)| recent(of).unwrap_or_default().max(stored)).collect())
    }

    pub(super) async fn have_messages(&self, of: &[(Uid, Conversation)]) -> Result<Vec<bool>, StoreError> {
        if of.is_empty() {
            return Ok(Vec::new());
        }
        let view = self.memory.view();
        let mut connection = self.db.service().await?;
        let stored = lookup::of_conversations(&mut *connection, "last_id", of).await?;
        connection.give_back();
        let is_recent = |uid: Uid, conversation: Conversation| {
            let is_shown =
                |content: &Content| content.is_shown() && content.conversation(uid) == conversation;
            !view.filtered(uid, (0, MessageId::MAX.get()), Direction::Backward, 1, is_shown).is_empty()
        };
        let has = |((uid, conversation), stored): (&(Uid, Conversation), MessageId)| {
            stored > MessageId::ZERO || is_recent(*uid, *conversation)
        };
        Ok(of.iter().zip(stored).map(has).collect())
    }

    /// Whether these people have written to `uid`, in order.
    pub(super) async fn heard_from(&self, uid: Uid, others: &[Uid]) -> Result<Vec<bool>, StoreError> {
        let mut heard = self.memory.view().heard_from(uid, &others.iter().copied().collect());
        let missing: Vec<Uid> = others.iter().copied().filter(|other| !heard.contains(other)).collect();
        if !missing.is_empty() {
            heard.extend(lookup::heard_from(&mut *self.db.reader().await?, uid, &missing).await?);
        }
        Ok(others.iter().map(|other| heard.contains(other)).collect())
    }
}

/// The keys for which nothing was found.
fn missing<K: Copy, V>(keys: &[K], found: &[Option<V>]) -> Vec<K> {
    keys.iter().zip(found).filter(|(_, found)| found.is_none()).map(|(key, _)| *key).collect()
}
