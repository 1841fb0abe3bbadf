//! The conversation list: the summary table with what is in memory laid over it.

use std::collections::HashMap;

use serde_json::json;
use sqlx::Row as _;

use super::lookup;
use super::read::Reader;
use crate::domain::{Conversation, Entry, Kind, MessageId};
use crate::store::{StoreError, Summary};

/// Newest row that is not a read marker, and how far it is read.
#[derive(Clone, Copy, Default)]
struct Line {
    last: MessageId,
    read_to: MessageId,
}

impl Reader<'_> {
    /// The `limit` newest conversations.
    pub(super) async fn conversations(&self, limit: usize) -> Result<Vec<Summary>, StoreError> {
        let recent = self.recent_lines();
        let mut lines = self.stored_lines(&recent, limit).await?;
        for (conversation, line) in &recent {
            let known = lines.entry(*conversation).or_default();
            known.last = line.last.max(known.last);
            known.read_to = line.read_to.max(known.read_to);
        }
        let mut lines: Vec<(Conversation, Line)> =
            lines.into_iter().filter(|(_, line)| line.last > MessageId::ZERO).collect();
        lines.sort_unstable_by_key(|(_, line)| std::cmp::Reverse(line.last));
        lines.truncate(limit);
        self.summaries(&lines).await
    }

    /// What memory says of each conversation that it knows.
    fn recent_lines(&self) -> HashMap<Conversation, Line> {
        let mut lines: HashMap<Conversation, Line> = HashMap::new();
        for memtable in &self.view.memtables {
            memtable.inbox(self.uid, |inbox| {
                for (message_id, content) in &inbox.rows {
                    if content.kind != Kind::ReadMarker {
                        lines.entry(content.conversation(self.uid)).or_default().last = *message_id;
                    }
                }
                for (conversation, read_to) in &inbox.read_markers {
                    let line = lines.entry(*conversation).or_default();
                    line.read_to = line.read_to.max(*read_to);
                }
            });
        }
        lines
    }

    /// The newest lines of the table, and those of the conversations in `recent`, wherever they stand.
    async fn stored_lines(
        &self,
        recent: &HashMap<Conversation, Line>,
        limit: usize,
    ) -> Result<HashMap<Conversation, Line>, StoreError> {
        let names: Vec<String> = recent.keys().map(Conversation::to_string).collect();
        let rows = sqlx::query(
            "SELECT * FROM (SELECT conversation, last_id, read_to FROM conversations
                 WHERE partition_key = ?1 AND owner = ?2 ORDER BY last_id DESC LIMIT ?3)
             UNION
             SELECT conversation, last_id, read_to FROM conversations
                 WHERE partition_key = ?1 AND owner = ?2 AND conversation IN (SELECT value FROM json_each(?4))",
        )
        .bind(self.uid.partition_key().as_str())
        .bind(self.uid.0)
        .bind(limit as i64)
        .bind(json!(names).to_string())
        .fetch_all(&mut *self.db.reader().await?)
        .await?;
        let mut lines = HashMap::with_capacity(rows.len() + recent.len());
        for row in rows {
            let conversation: Conversation =
                row.try_get::<&str, _>(0)?.parse().map_err(StoreError::corrupt)?;
            let last = lookup::message_id(row.try_get(1)?)?;
            let read_to = lookup::message_id(row.try_get(2)?)?;
            lines.insert(conversation, Line { last, read_to });
        }
        Ok(lines)
    }

    async fn summaries(&self, lines: &[(Conversation, Line)]) -> Result<Vec<Summary>, StoreError> {
        let mut newest: HashMap<MessageId, Entry> = HashMap::with_capacity(lines.len());
        let mut missing = Vec::new();
        for (_, line) in lines {
            match self.view.row(self.uid, line.last) {
                Some(entry) => _ = newest.insert(line.last, entry),
                None => missing.push(line.last),
            }
        }
        newest.extend(self.entries(&missing).await?.into_iter().map(|entry| (entry.message_id, entry)));

        let markers: Vec<_> =
            lines.iter().map(|(conversation, line)| (*conversation, line.read_to)).collect();
        let stored = self.unread(&markers, Summary::MOST_UNREAD).await?;
        let mut summaries = Vec::with_capacity(lines.len());
        for ((conversation, line), stored) in lines.iter().zip(stored) {
            let last = newest.remove(&line.last);
            let last = last.ok_or_else(|| {
                StoreError::corrupt(format!("row {} of user {} is missing", line.last, self.uid))
            })?;
            let unread = (stored + self.recent_unread(*conversation, line.read_to)).min(Summary::MOST_UNREAD);
            summaries.push(Summary { conversation: *conversation, last, unread, read_to: line.read_to });
        }
        Ok(summaries)
    }

    fn recent_unread(&self, conversation: Conversation, read_to: MessageId) -> u32 {
        let low = read_to.get() + 1;
        let most = Summary::MOST_UNREAD as usize;
        let unread = self.view.filtered(self.uid, low, MessageId::MAX.get(), most, |content| {
            content.counts_as_unread(self.uid) && content.conversation(self.uid) == conversation
        });
        unread.len() as u32
    }
}
