//! The conversation list and the history of one conversation.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::{
    Conversation, Entry, Kind, MOST_PINS, MessageId, Progress, Uid, pins, read_counts_key, seen_key,
};

use crate::store::marked::marked;
use crate::store::{Directory, MessageStore, Page, ShownName, StoreError, Summary};

mod readers;

pub use readers::ReadersError;

/// A conversation of the list, with the name that people know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedConversation {
    /// Newest row, unread count, read marker.
    pub summary: Summary,
    /// The other person's or the group's name.
    pub title: String,
    /// Whether it is with somebody whose account is deleted.
    pub is_deleted: bool,
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
            let shown = match summary.conversation {
                Conversation::User(_) => names.next().flatten(),
                Conversation::Group(gid) => {
                    self.store.group(gid).await?.map(|group| ShownName::Of(group.settings.name.clone()))
                }
            };
            let is_deleted = shown.as_ref().is_some_and(ShownName::is_deleted);
            let title = shown.map(ShownName::into_text);
            let title = title.unwrap_or_else(|| summary.conversation.to_string());
            let seen = seen.remove(&summary.conversation).unwrap_or_default();
            named.push(NamedConversation { summary, title, is_deleted, seen });
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

    /// Rows of one conversation, newest first, with ids below `before`.
    pub async fn messages(
        &self,
        who: Uid,
        conversation: Conversation,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.store.conversation(who, conversation, before, limit).await
    }
}

fn person(conversation: Conversation) -> Option<Uid> {
    match conversation {
        Conversation::User(uid) => Some(uid),
        Conversation::Group(_) => None,
    }
}
