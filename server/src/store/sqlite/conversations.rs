//! The conversation list: the summary table with what is in memory laid over it.
//!
//! Devices count on from the newest row of a line, so its counts must be of the moment at which that row was the newest. The
//! tables are read in one transaction, and no flush may have begun between the view of memory and that transaction: then they
//! have nothing that is newer than the view.

use std::collections::HashMap;

use serde_json::json;
use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::db::Db;
use super::lookup;
use super::memtable::MemtableSet;
use super::read::InboxReader;
use super::young;
use crate::domain::{Conversation, Direction, Entry, MessageId, Uid};
use crate::store::changes::Changes;
use crate::store::{StoreError, Summary};

/// A flush begins every few seconds at most, and the two looks are microseconds apart.
const ATTEMPTS: usize = 1_000;

/// The latest row of a conversation that is not a read marker, and how far it is read.
#[derive(Clone, Copy, Default)]
struct Position {
    last: MessageId,
    read_to: MessageId,
}

/// The `limit` newest conversations of `uid` whose newest row is older than `before`.
pub(super) async fn conversations(
    db: &Db,
    memory: &MemtableSet,
    uid: Uid,
    before: Option<MessageId>,
    limit: usize,
) -> Result<Vec<Summary>, StoreError> {
    let mut connection = db.reader().await?;
    for _ in 0..ATTEMPTS {
        let reader = InboxReader::new(db, memory, uid);
        let mut tables = connection.begin().await?;
        let listed = reader.conversations(&mut tables, memory, before, limit).await?;
        tables.rollback().await?;
        if let Some(listed) = listed {
            return Ok(listed);
        }
    }
    Err(StoreError::unavailable("the tables change too fast to be read"))
}

impl InboxReader<'_> {
    /// The list. `None`: a flush began before the tables were read.
    async fn conversations(
        &self,
        tables: &mut SqliteConnection,
        memory: &MemtableSet,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Option<Vec<Summary>>, StoreError> {
        let before = before.unwrap_or(MessageId::MAX);
        let mut recent = self.recent_positions();
        // The first reading fixes the moment of the tables.
        for (conversation, last) in young::positions(tables, self.uid).await? {
            let position = recent.entry(conversation).or_default();
            position.last = position.last.max(last);
        }
        let mut positions = self.stored_positions(tables, &recent, before, limit).await?;
        if memory.number() != self.view.number {
            return Ok(None);
        }
        for (conversation, position) in &recent {
            let known = positions.entry(*conversation).or_default();
            known.last = position.last.max(known.last);
            known.read_to = position.read_to.max(known.read_to);
        }
        let mut positions: Vec<(Conversation, Position)> = positions
            .into_iter()
            .filter(|(_, position)| position.last > MessageId::ZERO && position.last < before)
            .collect();
        positions.sort_unstable_by_key(|(_, position)| std::cmp::Reverse(position.last));
        positions.truncate(limit);
        self.summaries(tables, &positions).await.map(Some)
    }

    /// The position of each conversation that memory knows.
    fn recent_positions(&self) -> HashMap<Conversation, Position> {
        let mut positions: HashMap<Conversation, Position> = HashMap::new();
        for memtable in &self.view.memtables {
            memtable.inbox(self.uid, |inbox| {
                for (message_id, content) in &inbox.rows {
                    if content.is_shown() && message_id.get() <= self.top {
                        positions.entry(content.conversation(self.uid)).or_default().last = *message_id;
                    }
                }
                for (conversation, read_to) in &inbox.read_markers {
                    let position = positions.entry(*conversation).or_default();
                    position.read_to = position.read_to.max(*read_to);
                }
            });
        }
        positions
    }

    /// The newest positions of the table before some id, and those of the conversations in `recent`, wherever they stand.
    async fn stored_positions(
        &self,
        tables: &mut SqliteConnection,
        recent: &HashMap<Conversation, Position>,
        before: MessageId,
        limit: usize,
    ) -> Result<HashMap<Conversation, Position>, StoreError> {
        let names: Vec<String> = recent.keys().map(Conversation::to_string).collect();
        let rows = sqlx::query(
            "SELECT * FROM (SELECT conversation, last_id, read_to FROM conversations
                 WHERE partition_key = ?1 AND owner = ?2 AND last_id < ?5 ORDER BY last_id DESC LIMIT ?3)
             UNION
             SELECT conversation, last_id, read_to FROM conversations
                 WHERE partition_key = ?1 AND owner = ?2 AND conversation IN (SELECT value FROM json_each(?4))",
        )
        .bind(self.uid.partition_key().as_str())
        .bind(self.uid.0)
        // Those that have newer rows in memory may stand elsewhere.
        .bind((limit + recent.len()) as i64)
        .bind(json!(names).to_string())
        .bind(before.get().cast_signed())
        .fetch_all(tables)
        .await?;
        let mut positions = HashMap::with_capacity(rows.len() + recent.len());
        for row in rows {
            let conversation: Conversation =
                row.try_get::<&str, _>(0)?.parse().map_err(StoreError::corrupt)?;
            let last = lookup::message_id(row.try_get(1)?)?;
            let read_to = lookup::message_id(row.try_get(2)?)?;
            positions.insert(conversation, Position { last, read_to });
        }
        Ok(positions)
    }

    async fn summaries(
        &self,
        tables: &mut SqliteConnection,
        positions: &[(Conversation, Position)],
    ) -> Result<Vec<Summary>, StoreError> {
        let mut latest: HashMap<MessageId, Entry> = HashMap::with_capacity(positions.len());
        let mut missing = Vec::new();
        for (_, position) in positions {
            match self.view.row(self.uid, position.last) {
                Some(entry) => _ = latest.insert(position.last, entry),
                None => missing.push(position.last),
            }
        }
        let entries = self.entries(tables, &missing).await?;
        latest.extend(entries.into_iter().map(|entry| (entry.message_id, entry)));
        let changes = self.view.changes(self.uid);
        latest = latest.into_iter().filter_map(|(id, row)| Some((id, changes.show(row)?))).collect();

        let markers: Vec<_> =
            positions.iter().map(|(conversation, position)| (*conversation, position.read_to)).collect();
        let recalled = self.recalled(tables, &changes).await?;
        // Counting stops at some number, from which those that are taken back are still to be subtracted.
        let most = Summary::MOST_UNREAD + recalled.len() as u32;
        let stored = self.unread(tables, &markers, most).await?;
        let mut summaries = Vec::with_capacity(positions.len());
        for ((conversation, position), stored) in positions.iter().zip(stored) {
            // One whose newest row was deleted is left out.
            let Some(last) = latest.remove(&position.last) else { continue };
            let is_counted =
                |row: &&Entry| row.conversation() == *conversation && row.message_id > position.read_to;
            let stored = stored.saturating_sub(recalled.iter().filter(is_counted).count() as u32);
            let unread =
                (stored + self.recent_unread(*conversation, position.read_to)).min(Summary::MOST_UNREAD);
            let (conversation, read_to) = (*conversation, position.read_to);
            summaries.push(Summary { conversation, last, unread, mentions: 0, read_to });
        }
        self.count_mentions(tables, &mut summaries, &recalled).await?;
        Ok(summaries)
    }

    /// Counts those among the newest unread messages of groups that name the user. `recalled`: what the tables have and is taken back.
    async fn count_mentions(
        &self,
        tables: &mut SqliteConnection,
        summaries: &mut [Summary],
        recalled: &[Entry],
    ) -> Result<(), StoreError> {
        let (mut counted, mut markers) = (Vec::new(), Vec::new());
        for summary in summaries {
            if summary.unread > 0 && matches!(summary.conversation, Conversation::Group(_)) {
                markers.push((summary.conversation, summary.read_to));
                counted.push(summary);
            }
        }
        let stored = self.mentions(tables, &markers, Summary::MOST_UNREAD).await?;
        for (summary, stored) in counted.into_iter().zip(stored) {
            let is_counted =
                |row: &&Entry| row.conversation() == summary.conversation && row.message_id > summary.read_to;
            let gone = recalled.iter().filter(is_counted);
            let gone = gone.filter(|row| row.content.counts_as_mention(self.uid)).count() as u32;
            let recent = self.recent(summary.conversation, summary.read_to);
            let recent = recent.iter().filter(|row| row.content.counts_as_mention(self.uid)).count() as u32;
            summary.mentions = (stored.saturating_sub(gone) + recent).min(summary.unread);
        }
        Ok(())
    }

    /// Unread messages of the tables that are taken back by rows in memory.
    async fn recalled(
        &self,
        tables: &mut SqliteConnection,
        changes: &Changes,
    ) -> Result<Vec<Entry>, StoreError> {
        let keys: Vec<_> = changes.recalled().collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let rows = lookup::rows_of(tables, self.uid, &keys).await?;
        let in_tables = |row: &Entry| row.message_id.get() <= self.base;
        Ok(rows.into_iter().filter(|row| in_tables(row) && row.content.counts_as_unread(self.uid)).collect())
    }

    fn recent_unread(&self, conversation: Conversation, read_to: MessageId) -> u32 {
        self.recent(conversation, read_to).len() as u32
    }

    /// Unread messages in memory, the newest first.
    fn recent(&self, conversation: Conversation, read_to: MessageId) -> Vec<Entry> {
        let low = read_to.get().max(self.base).saturating_add(1);
        let most = Summary::MOST_UNREAD as usize;
        self.view.filtered(self.uid, (low, self.top), Direction::Backward, most, |content| {
            content.counts_as_unread(self.uid) && content.conversation(self.uid) == conversation
        })
    }
}
