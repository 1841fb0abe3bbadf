//! The conversation list and the history of one conversation.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::{
    Conversation, Entry, FileId, Group, IdempotencyKey, Kind, MOST_PINS, MessageId, Progress, RangeQuery,
    Timestamp, Uid, pins, read_counts_key, seen_key,
};

use crate::store::marked::marked;
use crate::store::{Directory, MessageStore, Page, ShownName, StoreError, Summary};

mod readers;

pub use readers::ReadersError;

/// Which rows of a conversation are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The newest.
    End,
    /// Those that follow this id.
    After(MessageId),
    /// Those on both sides of this id.
    Around(MessageId),
    /// Those on both sides of the first row that was sent at this time or later. Times grow with ids, but for rows from before one
    /// joined a group.
    Since(Timestamp),
    /// Those on both sides of the caller's copy of this message.
    Message(IdempotencyKey),
}

/// A part of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Its rows, newest first.
    pub rows: Vec<Entry>,
    /// Whether there are older rows; never said of [`Place::After`].
    pub has_older: bool,
    /// Whether there are newer rows, below the bound that was given; never said of [`Place::End`].
    pub has_newer: bool,
}

/// A conversation of the list, with the name that people know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedConversation {
    /// Newest row, unread count, read marker.
    pub summary: Summary,
    /// The other person's or the group's name.
    pub title: String,
    /// Whether it is with somebody whose account is deleted.
    pub is_deleted: bool,
    /// The picture of a group that the caller is in.
    pub picture: Option<FileId>,
    /// How far the caller's messages have come there: the newest row of each state.
    pub seen: Vec<Entry>,
}

/// Reading by conversation.
#[derive(Clone)]
pub struct Conversations {
    store: Arc<dyn MessageStore>,
    directory: Arc<Directory>,
    most: usize,
}

impl Conversations {
    /// Reads that show at most `most` conversations in a list.
    pub fn new(store: Arc<dyn MessageStore>, directory: Arc<Directory>, most: usize) -> Conversations {
        Conversations { store, directory, most }
    }

    /// The caller's conversations, newest first: those whose newest row comes before `before`, at most `limit`, and no more than the list
    /// shows.
    pub async fn list(
        &self,
        who: Uid,
        before: Option<MessageId>,
        limit: Option<usize>,
    ) -> Result<Vec<NamedConversation>, StoreError> {
        let limit = limit.map_or(self.most, |limit| limit.min(self.most));
        let summaries = self.store.conversations(who, before, limit).await?;
        let people: Vec<Uid> = summaries.iter().filter_map(|summary| person(summary.conversation)).collect();
        let mut names = self.directory.shown_names(&people).await?.into_iter();
        let mut seen = self.seen(who, &summaries).await?;
        let mut named = Vec::with_capacity(summaries.len());
        for summary in summaries {
            let mut picture = None;
            let shown = match summary.conversation {
                Conversation::User(_) => names.next().flatten(),
                Conversation::Group(gid) => {
                    let group = self.store.group(gid).await?;
                    let is_in = |group: &&Arc<Group>| group.role_of(who).is_some();
                    picture = group.as_ref().filter(is_in).and_then(|group| group.settings.picture);
                    group.map(|group| ShownName::Of(group.settings.name.clone()))
                }
            };
            let is_deleted = shown.as_ref().is_some_and(ShownName::is_deleted);
            let title = shown.map(ShownName::into_text);
            let title = title.unwrap_or_else(|| summary.conversation.to_string());
            let seen = seen.remove(&summary.conversation).unwrap_or_default();
            named.push(NamedConversation { summary, title, is_deleted, picture, seen });
        }
        Ok(named)
    }

    /// How far the messages of `who` have come in these conversations.
    async fn seen(
        &self,
        who: Uid,
        summaries: &[Summary],
    ) -> Result<HashMap<Conversation, Vec<Entry>>, StoreError> {
        let keys = summaries.iter().flat_map(|summary| match summary.conversation {
            Conversation::User(other) => {
                vec![seen_key(Progress::Delivered, other), seen_key(Progress::Read, other)]
            }
            Conversation::Group(gid) => vec![read_counts_key(gid)],
        });
        let keys: Vec<_> = keys.map(|key| (who, key)).collect();
        let mut seen: HashMap<_, Vec<Entry>> = HashMap::new();
        for row in self.store.newest(&keys).await?.into_iter().flatten() {
            seen.entry(row.conversation()).or_default().push(row);
        }
        Ok(seen)
    }

    /// The caller's copies of the messages that are pinned in a conversation, the oldest first.
    pub async fn pinned(&self, who: Uid, conversation: Conversation) -> Result<Vec<Entry>, StoreError> {
        let prefix = pins(conversation);
        let most = 4 * MOST_PINS;
        let rows = marked(&*self.store, who, &prefix, most, |content| content.body.pinned()).await?;
        let keys: Vec<_> = rows.iter().filter_map(|row| row.content.of()).take(most).collect();
        let mut messages: Vec<Entry> = Vec::new();
        // Some may have been taken back.
        for some in keys.chunks(MOST_PINS) {
            let mut copies = Vec::with_capacity(some.len());
            for key in some {
                copies
                    .extend(self.store.copies(*key, &[who]).await?.into_iter().flatten().map(|id| (who, id)));
            }
            let rows = self.store.entries(&copies).await?.into_iter().flatten();
            messages.extend(rows.filter(|row| row.content.kind == Kind::Message));
            if messages.len() >= MOST_PINS {
                break;
            }
        }
        messages.truncate(MOST_PINS);
        messages.sort_unstable_by_key(|row| row.message_id);
        Ok(messages)
    }

    /// Rows of one conversation with ids below `before`, at most `limit`; `None`: the caller has no copy of the message there.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn history(
        &self,
        who: Uid,
        conversation: Conversation,
        place: Place,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Option<History>, StoreError> {
        let (at, older) = match place {
            Place::End => {
                let Page { rows, more } =
                    self.store.conversation(who, conversation, RangeQuery::before(before, limit)).await?;
                return Ok(Some(History { rows, has_older: more, has_newer: false }));
            }
            Place::After(id) => (MessageId::new(id.get() + 1), 0),
            Place::Around(id) => (Some(id), limit / 2),
            Place::Since(time) => {
                (MessageId::new(self.first_since(who, conversation, time).await?), limit / 2)
            }
            Place::Message(key) => {
                let Some(id) = self.copy(who, conversation, key).await? else { return Ok(None) };
                (Some(id), limit / 2)
            }
        };
        // Beyond every row.
        let at = at.unwrap_or(MessageId::MAX);
        let below = match older {
            0 => Page::default(),
            older => {
                let end = before.map_or(at, |before| before.min(at));
                self.store.conversation(who, conversation, RangeQuery::before(Some(end), older)).await?
            }
        };
        let from = MessageId::new(at.get().saturating_sub(1)).unwrap_or_default();
        let above = RangeQuery::after(from, limit - below.rows.len()).up_to(before);
        let Page { mut rows, more } = self.store.conversation(who, conversation, above).await?;
        rows.reverse();
        rows.extend(below.rows);
        Ok(Some(History { rows, has_older: below.more, has_newer: more }))
    }

    /// The caller's copy of a message, if it is one of this conversation.
    async fn copy(
        &self,
        who: Uid,
        conversation: Conversation,
        key: IdempotencyKey,
    ) -> Result<Option<MessageId>, StoreError> {
        let Some(id) = self.store.copies(key, &[who]).await?.pop().flatten() else { return Ok(None) };
        let row = self.store.entry(who, id).await?;
        Ok(row.filter(|row| row.conversation() == conversation).map(|row| row.message_id))
    }

    /// An id at or below that of the first row that was sent at `time` or later, and above all rows before it. It halves the ids until
    /// one is left: at most 53 reads of one row.
    async fn first_since(
        &self,
        who: Uid,
        conversation: Conversation,
        time: Timestamp,
    ) -> Result<u64, StoreError> {
        let (mut low, mut high) = (0, self.store.watermark(who).await?.get() + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let from = MessageId::new(middle.saturating_sub(1)).unwrap_or_default();
            let page = self.store.conversation(who, conversation, RangeQuery::after(from, 1)).await?;
            match page.rows.first() {
                Some(row) if row.content.sent_at < time => low = row.message_id.get() + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }
}

fn person(conversation: Conversation) -> Option<Uid> {
    match conversation {
        Conversation::User(uid) => Some(uid),
        Conversation::Group(_) => None,
    }
}
