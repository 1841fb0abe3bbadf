//! Rows of inboxes and of the conversation list, as a flush writes them into the keyed tables.

use std::sync::Arc;

use super::bulk::{Binding, Bulk};
use crate::domain::{Content, Conversation, Entry, MessageId, Uid};

/// A row of an inbox.
pub(super) struct EntryRow {
    pub(super) key: Arc<str>,
    pub(super) receiver: Uid,
    pub(super) message_id: MessageId,
    pub(super) content: Arc<Content>,
}

impl EntryRow {
    /// As it goes into the tables.
    pub(super) fn of(entry: Entry) -> EntryRow {
        let Entry { receiver, message_id, content } = entry;
        EntryRow { key: receiver.partition_key().as_str().into(), receiver, message_id, content }
    }
}

/// A line of the conversation list.
pub(super) struct ConversationRow {
    pub(super) key: Arc<str>,
    pub(super) owner: Uid,
    pub(super) conversation: Conversation,
    pub(super) last_id: MessageId,
    pub(super) read_to: MessageId,
}

pub(super) const ENTRIES: Bulk = Bulk {
    insert: "INSERT INTO entries
        (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at) VALUES",
    row: "(?,?,?,?,?,?,?,?,?)",
    conflict: "ON CONFLICT (partition_key, receiver, message_id) DO NOTHING",
};

pub(super) const YOUNG_ENTRIES: Bulk = Bulk {
    insert: "INSERT INTO young_entries
        (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at) VALUES",
    ..ENTRIES
};

pub(super) const CONVERSATIONS: Bulk = Bulk {
    insert: "INSERT INTO conversations (partition_key, owner, conversation, last_id, read_to) VALUES",
    row: "(?,?,?,?,?)",
    conflict: "ON CONFLICT (partition_key, owner, conversation) DO UPDATE
        SET last_id = max(last_id, excluded.last_id), read_to = max(read_to, excluded.read_to)",
};

pub(super) fn bind_entry<'q>(query: Binding<'q>, row: &EntryRow) -> Binding<'q> {
    let content = &row.content;
    query
        .bind(row.key.clone())
        .bind(row.receiver.0)
        .bind(row.message_id.get().cast_signed())
        .bind(content.kind.code())
        .bind(content.conversation(row.receiver).to_string())
        .bind(content.sender.0)
        .bind(content.client_id.as_ref().map(|client_id| client_id.0.as_bytes().as_slice()))
        .bind(Arc::<str>::from(content.body.as_json()))
        .bind(content.sent_at.0)
}

pub(super) fn bind_conversation<'q>(query: Binding<'q>, row: &ConversationRow) -> Binding<'q> {
    query
        .bind(row.key.clone())
        .bind(row.owner.0)
        .bind(row.conversation.to_string())
        .bind(row.last_id.get().cast_signed())
        .bind(row.read_to.get().cast_signed())
}
