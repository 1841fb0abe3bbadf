//! Moments: posts that people share with all their friends, and the likes and comments of common friends (S27).
//!
//! A moment is copied into the inbox of each friend when it is posted. A like or a comment goes to the author and to
//! those friends of both who have a copy of the moment. So nobody learns of a moment that was not meant for them.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Attachments, People};
use crate::domain::{
    Attached, Body, ClientId, Content, Conversation, IdempotencyKey, Kind, MessageId, RangeQuery, Uid,
};
use crate::queue::{Publish, Queues, Request, SendAck, SendError};
use crate::store::{KeyState, MessageStore, Page, PendingKey, StoreError};

/// Acceptances with copies owed that are looked at, at once and in all.
const PENDING_PAGE: usize = 1_000;
const MOST_PAGES: usize = 20;

/// A page of moments and of rows about them.
#[derive(Clone, Debug)]
pub struct Feed {
    /// Moments, likes, comments and deletions, newest first.
    pub page: Page,
    /// How far the caller has read.
    pub read_to: MessageId,
}

/// Posts, likes and comments.
#[derive(Clone)]
pub struct Moments {
    store: Arc<dyn MessageStore>,
    people: People,
    queues: Queues,
    attachments: Attachments,
    text_characters: usize,
}

impl Moments {
    /// Use cases that write through `queues`; a moment has at most `text_characters`.
    pub fn new(
        store: Arc<dyn MessageStore>,
        people: People,
        queues: Queues,
        attachments: Attachments,
        text_characters: usize,
    ) -> Moments {
        Moments { store, people, queues, attachments, text_characters }
    }

    /// Tells all friends of `who` but those in `except`.
    ///
    /// # Errors
    /// When the text breaks a rule, or there is no such file; those of storing.
    pub async fn post(
        &self,
        who: Uid,
        client_id: ClientId,
        text: &str,
        mut files: Vec<Attached>,
        except: &[Uid],
    ) -> Result<SendAck, SendError> {
        let limit = self.limit(who, client_id, text).await?;
        let body = if files.is_empty() { Body::text(text, limit)? } else { Body::caption(text, limit)? };
        let except: HashSet<Uid> = except.iter().copied().collect();
        let list = self.people.friend_list(who).await.map_err(unavailable)?;
        let others: Vec<Uid> = list.hearing.iter().copied().filter(|uid| !except.contains(uid)).collect();
        self.attachments.attach((who, client_id), Conversation::MOMENTS, &others, &mut files).await?;
        self.publish(who, client_id, Kind::Moment, body, files, others).await
    }

    /// Says whether `who` likes a moment, by its row in the own inbox.
    ///
    /// # Errors
    /// When there is no such moment for `who`; those of storing.
    pub async fn like(
        &self,
        who: Uid,
        client_id: ClientId,
        moment: MessageId,
        liked: bool,
    ) -> Result<SendAck, SendError> {
        let (of, others) = self.circle(who, client_id, moment).await?;
        self.publish(who, client_id, Kind::Like, Body::like(of, liked), Vec::new(), others).await
    }

    /// Says something about a moment.
    ///
    /// # Errors
    /// When there is no such moment for `who`, or the text breaks a rule; those of storing.
    pub async fn comment(
        &self,
        who: Uid,
        client_id: ClientId,
        moment: MessageId,
        text: &str,
    ) -> Result<SendAck, SendError> {
        let (of, others) = self.circle(who, client_id, moment).await?;
        let body = Body::comment(of, text, self.limit(who, client_id, text).await?)?;
        self.publish(who, client_id, Kind::Comment, body, Vec::new(), others).await
    }

    /// Deletes a moment or a comment of `who` for everybody who has it.
    ///
    /// # Errors
    /// When there is none in that row, or it is somebody else's; those of storing.
    pub async fn delete(&self, who: Uid, client_id: ClientId, row: MessageId) -> Result<SendAck, SendError> {
        let content = self.row(who, row, &[Kind::Moment, Kind::Comment, Kind::Deleted]).await?;
        if content.sender != who {
            return Err(SendError::NotYourMoment);
        }
        let of = content.key().ok_or(SendError::UnknownMoment)?;
        // A former friend may still have a copy.
        let (mut known, former) = self.people.current_and_former_friends(who).await.map_err(unavailable)?;
        known.extend(former);
        let holders = self.holders(of, known).await?;
        self.publish(who, client_id, Kind::Delete, Body::deletion(of), Vec::new(), holders).await
    }

    /// Moments and rows about them, newest first, with ids below `before`.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn feed(&self, who: Uid, before: Option<MessageId>, limit: usize) -> Result<Feed, StoreError> {
        let page =
            self.store.conversation(who, Conversation::MOMENTS, RangeQuery::before(before, limit)).await?;
        Ok(Feed { page, read_to: self.store.read_to(who, Conversation::MOMENTS).await? })
    }

    /// The key of a moment, and the people who get a row about what `who` does with it. A repetition has no such people: the queue
    /// gives it the first answer, even if the moment or the friendship has ended since (I4).
    async fn circle(
        &self,
        who: Uid,
        client_id: ClientId,
        moment: MessageId,
    ) -> Result<(IdempotencyKey, Vec<Uid>), SendError> {
        let content = self.row(who, moment, &[Kind::Moment, Kind::Deleted]).await?;
        let (author, of) = (content.sender, content.key().ok_or(SendError::UnknownMoment)?);
        if self.is_used(who, client_id).await? {
            return Ok((of, Vec::new()));
        }
        if content.kind == Kind::Deleted {
            return Err(SendError::UnknownMoment);
        }
        let list = self.people.friend_list(who).await.map_err(unavailable)?;
        if author == who {
            return Ok((of, self.holders(of, list.hearing.clone()).await?));
        }
        // A former friend no longer sees it.
        if !list.friends.contains(&author) {
            return Err(SendError::UnknownMoment);
        }
        if !list.hearing.contains(&author) {
            let is_own = self.people.blocks(who, author).await.map_err(unavailable)?;
            return Err(if is_own { SendError::Blocks } else { SendError::Blocked });
        }
        let theirs = self.people.friend_list(author).await.map_err(unavailable)?;
        let theirs: HashSet<Uid> = theirs.friends.iter().copied().chain([author]).collect();
        let common = list.hearing.iter().copied().filter(|uid| theirs.contains(uid)).collect();
        Ok((of, self.holders(of, common).await?))
    }

    /// Whether something was accepted under this key.
    async fn is_used(&self, who: Uid, client_id: ClientId) -> Result<bool, SendError> {
        let state = self.store.keys(&[(who, client_id)]).await.map_err(unavailable)?;
        Ok(matches!(state.first(), Some(KeyState::Used(_))))
    }

    /// Characters that `text` may have. A repetition is compared as it is, so storage is asked about a text that is too long.
    async fn limit(&self, who: Uid, client_id: ClientId, text: &str) -> Result<usize, SendError> {
        // A character has at least one byte.
        let may_be_too_long = text.len() > self.text_characters;
        Ok(match may_be_too_long && self.is_used(who, client_id).await? {
            true => usize::MAX,
            false => self.text_characters,
        })
    }

    async fn row(&self, who: Uid, row: MessageId, kinds: &[Kind]) -> Result<Arc<Content>, SendError> {
        let entry = self.store.entry(who, row).await.map_err(unavailable)?;
        let content = entry.map(|entry| entry.content);
        let is_one =
            |content: &Arc<Content>| content.target == Conversation::MOMENTS && kinds.contains(&content.kind);
        content.filter(is_one).ok_or(SendError::UnknownMoment)
    }

    /// The users of `uids` that have a copy, or are still owed one.
    pub(super) async fn holders(&self, of: IdempotencyKey, uids: Vec<Uid>) -> Result<Vec<Uid>, SendError> {
        // Before the rows: what is delivered in between is among them.
        let owed = self.owed(of).await.map_err(unavailable)?;
        let copies = self.store.copies(of, &uids).await.map_err(unavailable)?;
        let holds = uids.into_iter().zip(copies).filter(|(uid, copy)| copy.is_some() || owed.contains(uid));
        Ok(holds.map(|(uid, _)| uid).collect())
    }

    /// The users that are still owed a copy.
    async fn owed(&self, of: IdempotencyKey) -> Result<HashSet<Uid>, StoreError> {
        let (mut after, mut owed) = (PendingKey::default(), HashSet::new());
        for _ in 0..MOST_PAGES {
            let pending = self.store.pending(after, PENDING_PAGE).await?;
            let Some(last) = pending.last() else { break };
            after = last.key();
            let of_it = pending.iter().filter(|pending| pending.content.key() == Some(of));
            owed.extend(of_it.flat_map(|pending| &pending.owed).map(|to| to.uid));
        }
        Ok(owed)
    }

    async fn publish(
        &self,
        who: Uid,
        client_id: ClientId,
        kind: Kind,
        body: Body,
        files: Vec<Attached>,
        others: Vec<Uid>,
    ) -> Result<SendAck, SendError> {
        let publish = Publish { client_id, kind, target: Conversation::MOMENTS, body, files, others };
        self.queues.submit(who, Request::Publish(publish)).await
    }
}

fn unavailable(_: StoreError) -> SendError {
    SendError::Unavailable
}
