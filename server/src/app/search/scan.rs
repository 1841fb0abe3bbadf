//! Whether a row is what is looked for, and reading rows one after the other.

use super::{Found, Hit, SearchRequest};
use crate::domain::{Content, Entry, IdempotencyKey, Kind};
use crate::workers::{ROW, aside};

/// Whether people can look for such rows.
pub(super) fn is_searched(content: &Content) -> bool {
    matches!(content.kind, Kind::Message | Kind::Moment)
}

impl SearchRequest {
    /// The row, if it is looked for.
    pub(super) fn hit(&self, row: Entry) -> Option<Hit> {
        let content = &row.content;
        let is_asked = is_searched(content)
            && self.before.is_none_or(|before| row.message_id < before)
            && self.sender.is_none_or(|sender| content.sender == sender)
            && self.conversation.is_none_or(|conversation| row.conversation() == conversation)
            && self.from.is_none_or(|from| content.sent_at >= from)
            && self.to.is_none_or(|to| content.sent_at < to);
        if !is_asked {
            return None;
        }
        let Some(words) = &self.words else { return Some(Hit { row, marks: Vec::new() }) };
        let text = content.body.said()?;
        words.are_in(&text).then(|| Hit { marks: words.marks(&text), row })
    }

    /// The message that this row gives a text with the words.
    pub(super) fn edited(&self, row: &Entry) -> Option<IdempotencyKey> {
        let words = self.words.as_ref()?;
        if row.content.kind != Kind::Edit {
            return None;
        }
        let text = crate::domain::Body::from_stored(row.content.change()?.body).said()?;
        if words.are_in(&text) { row.content.of() } else { None }
    }

    /// Looks through rows, the newest first: puts hits into `found` until it has as many as were asked for, and messages with a new text
    /// into `edited`. Says at which row it stopped, if it did.
    pub(super) async fn look_through(
        &self,
        rows: Vec<Entry>,
        found: &mut Found,
        edited: &mut Vec<IdempotencyKey>,
    ) -> Option<Entry> {
        let bytes = rows.iter().map(|row| row.weight() + ROW).sum();
        found.looked_through += bytes;
        let all = || {
            for row in rows {
                edited.extend(self.edited(&row));
                if let Some(hit) = self.hit(row) {
                    found.hits.push(hit);
                    if found.hits.len() >= self.limit {
                        return found.hits.last().map(|hit| hit.row.clone());
                    }
                }
            }
            None
        };
        aside(bytes, all).await
    }
}
