//! Changes that rows in memory make to earlier rows of the same inbox, until the tables have them: edits and recalls
//! change messages, and of the rows with one compaction key only the newest is shown.
//!
//! They show rows as the flush will leave them, with one exception. A receiver has deleted a message, the deletion is
//! flushed, and then the sender edits the message: the row of the edit stands in the receiver's inbox until the next
//! flush.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::domain::{Content, Entry, IdempotencyKey, Kind, MessageId, Uid};

/// The changes that the rows of one inbox in one memtable make.
#[derive(Clone, Debug, Default)]
pub(super) struct InboxChanges {
    /// Edits and recalls by the message that they are about, in their order, with their own ids.
    amendments: HashMap<IdempotencyKey, Vec<(MessageId, Arc<Content>)>>,
    /// The newest row of each compaction key.
    newest: HashMap<Box<str>, MessageId>,
}

impl InboxChanges {
    /// Takes in a row of `receiver`, if it changes anything.
    pub(super) fn add(
        this: &mut Arc<InboxChanges>,
        receiver: Uid,
        message_id: MessageId,
        content: &Arc<Content>,
    ) {
        let Some(key) = content.compaction_key(receiver) else { return };
        // Copied only while somebody reads by it.
        let changes = Arc::make_mut(this);
        changes.newest.insert(key.into(), message_id);
        if let Some(of) = content.changes_message() {
            changes.amendments.entry(of).or_default().push((message_id, content.clone()));
        }
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }

    /// Edits and recalls, those of one message in their order.
    pub(super) fn amendments(&self) -> impl Iterator<Item = (IdempotencyKey, MessageId, &Content)> {
        self.amendments
            .iter()
            .flat_map(|(key, all)| all.iter().map(move |(id, amendment)| (*key, *id, &**amendment)))
    }

    /// The newest row of each compaction key.
    pub(super) fn newest(&self) -> impl Iterator<Item = (&str, MessageId)> {
        self.newest.iter().map(|(name, id)| (&**name, *id))
    }

    /// The newest row under this compaction key.
    pub(super) fn newest_of(&self, name: &str) -> Option<MessageId> {
        self.newest.get(name).copied()
    }

    /// Whether a later row takes the place of this one.
    pub(super) fn supersedes(&self, receiver: Uid, message_id: MessageId, content: &Content) -> bool {
        let Some(key) = content.compaction_key(receiver) else { return false };
        let of_it = content.changes_message().and_then(|of| self.amendments.get(&of));
        let is_deleted =
            of_it.into_iter().flatten().any(|(_, amendment)| content.is_edit_deleted_by(amendment));
        is_deleted || self.newest.get(key.as_str()).is_some_and(|newest| *newest > message_id)
    }
}

/// The changes of one inbox, of its memtables in their order. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes(Vec<Arc<InboxChanges>>);

impl Changes {
    /// Those of these memtables, oldest first.
    pub(super) fn of(memtables: impl IntoIterator<Item = Arc<InboxChanges>>) -> Changes {
        Changes(memtables.into_iter().filter(|changes| !changes.is_empty()).collect())
    }

    /// Whether rows are shown as they are.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The row as it is now; `None`: a later one has taken its place.
    pub(super) fn show(&self, row: Entry) -> Option<Entry> {
        if self.0.is_empty() {
            return Some(row);
        }
        let is_superseded =
            self.0.iter().any(|changes| changes.supersedes(row.receiver, row.message_id, &row.content));
        (!is_superseded).then(|| self.amend(row))
    }

    /// The row as edits and recalls leave it.
    pub(super) fn amend(&self, row: Entry) -> Entry {
        let Entry { receiver, message_id, mut content } = row;
        let key = content.key();
        let of = |changes: &'_ Arc<InboxChanges>| key.and_then(|key| changes.amendments.get(&key)).cloned();
        for (id, amendment) in self.0.iter().filter_map(of).flatten() {
            if id > message_id
                && let Some(amended) = content.amended(&amendment)
            {
                content = Arc::new(amended);
            }
        }
        Entry { receiver, message_id, content }
    }

    /// The messages that are taken back or deleted, each once.
    pub(super) fn recalled(&self) -> impl Iterator<Item = IdempotencyKey> {
        let amendments = self.0.iter().flat_map(|changes| changes.amendments());
        let gone = amendments.filter(|(_, _, amendment)| amendment.kind != Kind::Edit).map(|(key, ..)| key);
        gone.collect::<HashSet<_>>().into_iter()
    }
}
