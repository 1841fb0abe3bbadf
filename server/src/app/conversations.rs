//! The conversation list and the history of one conversation.

use std::sync::Arc;

use crate::domain::{Conversation, MessageId, Uid};
use crate::store::{Directory, MessageStore, Page, StoreError, Summary};

/// A conversation of the list, with the name that people know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedConversation {
    /// Newest row, unread count, read marker.
    pub summary: Summary,
    /// The other person's or the group's name.
    pub title: String,
}

/// Reading by conversation.
#[derive(Clone)]
pub struct Conversations {
    store: Arc<dyn MessageStore>,
    directory: Arc<dyn Directory>,
    most: usize,
}

impl Conversations {
    /// Reads that show at most `most` conversations in a list.
    pub fn new(store: Arc<dyn MessageStore>, directory: Arc<dyn Directory>, most: usize) -> Conversations {
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
        let mut names = self.directory.names(&people).await?.into_iter();
        let mut named = Vec::with_capacity(summaries.len());
        for summary in summaries {
            let title = match summary.conversation {
                Conversation::User(_) => names.next().flatten(),
                Conversation::Group(gid) => self.store.group(gid).await?.map(|group| group.name.clone()),
            };
            let title = title.unwrap_or_else(|| summary.conversation.to_string());
            named.push(NamedConversation { summary, title });
        }
        Ok(named)
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
