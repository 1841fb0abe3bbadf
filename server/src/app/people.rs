//! Settings, profiles and friendships: all are rows of their users' inboxes.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::domain::{
    Body, ClientId, Conversation, Entry, FRIENDS, Friendship, KEEPS, Keep, Kind, MessageId, SETTINGS, STARS,
    Setting, Timestamp, Uid, friend_key, setting_key,
};
use crate::queue::{FriendList, Publish, Queues, Request, SendAck, SendError};
use crate::store::{Directory, MessageStore, ShownName, StoreError};

mod finding;

pub use finding::ShownPerson;

/// Rows or people that are read at a time, so that others get their turn between two readings.
const AT_ONCE: usize = 200;

/// How one stands with another person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Friend {
    /// The other one.
    pub uid: Uid,
    /// That one's name.
    pub name: String,
    /// Whether that one's account is deleted.
    pub is_deleted: bool,
    /// Which of the two wants to be the other's friend.
    pub friendship: Friendship,
    /// Whether one has declined what the other one wants.
    pub declined: bool,
    /// The other one's greeting.
    pub greeting: Option<String>,
    /// When that last changed.
    pub changed_at: Timestamp,
}

/// Settings, friends and profiles.
#[derive(Clone)]
pub struct People {
    store: Arc<dyn MessageStore>,
    directory: Arc<Directory>,
    queues: Queues,
    most_friends: usize,
}

#[derive(Deserialize)]
struct Greeting {
    text: Option<String>,
}

#[derive(Deserialize)]
struct ChosenLanguage {
    tag: String,
}

impl People {
    /// Use cases that write through `queues`. One account has at most `most_friends` friends and friend requests.
    pub fn new(
        store: Arc<dyn MessageStore>,
        directory: Arc<Directory>,
        queues: Queues,
        most_friends: usize,
    ) -> People {
        People { store, directory, queues, most_friends }
    }

    /// The request that sets a setting of a conversation, or for all if `target` is the user's own. `value`: JSON; `null` clears it.
    ///
    /// # Errors
    /// When the value is not what the setting takes.
    pub fn setting(
        client_id: ClientId,
        setting: Setting,
        target: Conversation,
        value: &RawValue,
    ) -> Result<Request, SendError> {
        let body = Body::of_setting(setting, value)?;
        let others = Vec::new();
        Ok(Request::Publish(Publish {
            client_id,
            kind: Kind::Setting,
            target,
            body,
            files: Vec::new(),
            others,
        }))
    }

    /// Sets a setting.
    ///
    /// # Errors
    /// As [`People::setting`], and those of storing.
    pub async fn set(
        &self,
        who: Uid,
        client_id: ClientId,
        setting: Setting,
        conversation: Conversation,
        value: &RawValue,
    ) -> Result<SendAck, SendError> {
        self.queues.submit(who, People::setting(client_id, setting, conversation, value)?).await
    }

    /// The settings of `who`, with their keys, after the key `after`; at most `limit`.
    pub async fn settings(
        &self,
        who: Uid,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        self.store.newest_under(who, SETTINGS, after, limit).await
    }

    /// The stars of `who`, also those that were taken away, with their keys, after the key `after`; at most `limit`.
    pub async fn stars(
        &self,
        who: Uid,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        self.store.newest_under(who, STARS, after, limit).await
    }

    /// What was said about for how long messages are kept in conversations of `who`, with the keys, after the key `after`; at most `limit`.
    pub async fn keeps(
        &self,
        who: Uid,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        self.store.newest_under(who, KEEPS, after, limit).await
    }

    /// Keeps the messages of `who` with `other` for so many seconds from now on, and no longer; 0: for good. Both get a row.
    ///
    /// # Errors
    /// When `who` has no messages with `other`, or `other` takes nothing from `who`; the errors of storing.
    pub async fn keep(
        &self,
        who: Uid,
        client_id: ClientId,
        other: Uid,
        seconds: u32,
    ) -> Result<SendAck, SendError> {
        let (target, others) = (Conversation::User(other), vec![other]);
        // A row that is shown must not be a way round the limit of first messages.
        let has_some =
            self.store.have_messages(&[(who, target)]).await.map_err(|_| SendError::Unavailable)?;
        if !has_some.contains(&true) {
            return Err(SendError::NoConversation(other.0));
        }
        // The queue knows what holds so far.
        let body = Body::of_keep(Keep { seconds, gone_before: 0 });
        let publish = Publish { client_id, kind: Kind::Keep, target, body, files: Vec::new(), others };
        self.queues.submit(who, Request::Publish(publish)).await
    }

    /// The tag of the language that `uid` has chosen for pages on devices where none was chosen.
    pub async fn language(&self, uid: Uid) -> Result<Option<String>, StoreError> {
        let key = setting_key(Setting::Language, Conversation::User(uid));
        let row = self.store.newest(&[(uid, key)]).await?.pop().flatten();
        let value = row.as_ref().and_then(|row| row.content.body.setting_value());
        let chosen: Option<ChosenLanguage> = value.and_then(|value| serde_json::from_str(value).ok());
        Ok(chosen.map(|language| language.tag))
    }

    /// Stores whether `who` wants to be a friend of `other`. Both get a row, but `other` gets none when `who` declines a request.
    ///
    /// # Errors
    /// When `other` does not exist, is `who` or takes nothing from `who`; when there are too many friends; the errors of storing.
    pub async fn befriend(
        &self,
        who: Uid,
        client_id: ClientId,
        other: Uid,
        wanted: bool,
        greeting: Option<&str>,
    ) -> Result<SendAck, SendError> {
        if who == other {
            return Err(SendError::UnknownUser(other.0));
        }
        let body = Body::friend(wanted, greeting.filter(|_| wanted))?;
        let (friendship, is_blocked, own) =
            self.friendship(who, other).await.map_err(|_| SendError::Unavailable)?;
        if wanted {
            self.receives(other).await?;
            if is_blocked {
                return Err(SendError::Blocked);
            }
            if self.blocks(who, other).await.map_err(|_| SendError::Unavailable)? {
                return Err(SendError::Blocks);
            }
            // Asking again tells nobody anything.
            if let Some(asked) = own.filter(|_| friendship.mine) {
                let sent_at = asked.content.sent_at;
                return Ok(SendAck { message_id: asked.message_id, sent_at, repeated: true });
            }
            self.has_room(who).await?;
        }
        // The queue tells nobody of a request that is declined.
        let others = vec![other];
        let target = Conversation::User(other);
        let publish = Publish { client_id, kind: Kind::Friend, target, body, files: Vec::new(), others };
        self.queues.submit(who, Request::Publish(publish)).await
    }

    /// Refuses what is for a deleted account, before anything that its rows may still say.
    async fn receives(&self, other: Uid) -> Result<(), SendError> {
        let name =
            self.directory.shown_names(&[other]).await.map_err(|_| SendError::Unavailable)?.pop().flatten();
        match name.is_some_and(|name| name.is_deleted()) {
            true => Err(SendError::AccountDeleted(other.0)),
            false => Ok(()),
        }
    }

    /// The people that have not blocked `who` and are not blocked by `who`.
    async fn who_hear(&self, who: Uid, people: Vec<Uid>) -> Result<Vec<Uid>, StoreError> {
        let mut hear = Vec::with_capacity(people.len());
        for some in people.chunks(AT_ONCE) {
            let of: Vec<_> = some.iter().flat_map(|uid| [block(*uid, who), block(who, *uid)]).collect();
            let blocks = self.store.newest(&of).await?;
            let those = some.iter().zip(blocks.chunks(2)).filter(|(_, blocks)| !blocks.iter().any(is_set));
            hear.extend(those.map(|(uid, _)| *uid));
        }
        Ok(hear)
    }

    /// Whether `who` has blocked `other`.
    pub(super) async fn blocks(&self, who: Uid, other: Uid) -> Result<bool, StoreError> {
        Ok(self.store.newest(&[block(who, other)]).await?.iter().any(is_set))
    }

    /// How `who` stands with `other`, whether `other` takes nothing from `who`, and what `who` said last.
    async fn friendship(
        &self,
        who: Uid,
        other: Uid,
    ) -> Result<(Friendship, bool, Option<Entry>), StoreError> {
        let with = Conversation::User(other);
        let of = [(who, friend_key(with, who)), (who, friend_key(with, other)), block(other, who)];
        let mut rows = self.store.newest(&of).await?;
        let mut friendship = Friendship::default();
        rows[..2].iter().flatten().for_each(|row| friendship.take(who, &row.content));
        let is_blocked = is_set(&rows[2]);
        Ok((friendship, is_blocked, rows.swap_remove(0)))
    }

    async fn has_room(&self, who: Uid) -> Result<(), SendError> {
        // A user with fewer keys than that has room. Only beyond that are the rows read.
        let keys = self.store.keys_under(who, FRIENDS, self.most_friends).await;
        if keys.map_err(|_| SendError::Unavailable)? < self.most_friends {
            return Ok(());
        }
        let known = self.known(who, "", self.most_friends.saturating_mul(2)).await;
        let known = known.map_err(|_| SendError::Unavailable)?;
        let wanted = known.iter().filter(|(_, friendship)| friendship.mine).map(|(uid, _)| *uid);
        let mut wanted: Vec<Uid> = wanted.collect();
        if wanted.len() >= self.most_friends {
            // Requests to deleted accounts are shown nowhere, so they are not counted.
            let names = self.directory.shown_names(&wanted).await.map_err(|_| SendError::Unavailable)?;
            let mut is_there = names.iter().map(|name| !name.as_ref().is_some_and(ShownName::is_deleted));
            wanted.retain(|_| is_there.next().unwrap_or_default());
        }
        match wanted.len() < self.most_friends {
            true => Ok(()),
            false => Err(SendError::TooManyFriends(self.most_friends)),
        }
    }

    /// Everybody with whom `who` is, was or is asked to be friends, after the key `after`; from at most `rows` rows.
    async fn known(&self, who: Uid, after: &str, rows: usize) -> Result<Vec<(Uid, Friendship)>, StoreError> {
        let mut known: Vec<(Uid, Friendship)> = Vec::new();
        let (mut after, mut left) = (after.to_owned(), rows);
        loop {
            let some = self.store.newest_under(who, FRIENDS, &after, left.min(AT_ONCE)).await?;
            for (_, row) in &some {
                let Conversation::User(other) = row.conversation() else { continue };
                if known.last().is_none_or(|(last, _)| *last != other) {
                    known.push((other, Friendship::default()));
                }
                if let Some((_, friendship)) = known.last_mut() {
                    friendship.take(who, &row.content);
                }
            }
            left = left.saturating_sub(some.len());
            match some.into_iter().next_back() {
                Some((key, _)) if left > 0 => after = key,
                _ => return Ok(known),
            }
        }
    }

    /// The friends of `who`, and the friends that hear from `who`.
    pub(super) async fn friend_list(&self, who: Uid) -> Result<Arc<FriendList>, StoreError> {
        let read = async {
            let (friends, _) = self.current_and_former_friends(who).await?;
            let hearing = self.who_hear(who, friends.clone()).await?;
            Ok(FriendList { friends, hearing })
        };
        self.queues.friends().get(who, read).await
    }

    /// The current and the former friends of `who`.
    pub(super) async fn current_and_former_friends(
        &self,
        who: Uid,
    ) -> Result<(Vec<Uid>, Vec<Uid>), StoreError> {
        // Unanswered requests of others are among the rows, too, and nothing limits those.
        let known = self.known(who, "", self.most_friends.saturating_mul(8)).await?;
        let (friends, others): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|(_, friendship)| friendship.is_mutual());
        let uids = |people: Vec<(Uid, Friendship)>| people.into_iter().map(|(uid, _)| uid).collect();
        Ok((uids(friends), uids(others)))
    }

    /// How `who` stands with others, in the order of their numbers as texts, after that of `after`; at most `limit`.
    pub async fn friends(
        &self,
        who: Uid,
        after: Option<Uid>,
        limit: usize,
    ) -> Result<Vec<Friend>, StoreError> {
        // A key after both rows of that person.
        let after = after.map_or(String::new(), |uid| format!("{FRIENDS}{uid} ~"));
        // Each has one row or two, so that the first `limit` are there whole.
        let rows = self.store.newest_under(who, FRIENDS, &after, limit * 2 + 1).await?;
        let (mut friends, mut newest): (Vec<Friend>, _) = (Vec::new(), MessageId::ZERO);
        for (_, row) in &rows {
            let Conversation::User(uid) = row.conversation() else { continue };
            if friends.last().is_none_or(|last| last.uid != uid) {
                let (friendship, name) = (Friendship::default(), String::new());
                let (declined, greeting, changed_at) = (false, None, Timestamp(0));
                let is_deleted = false;
                friends.push(Friend { uid, name, is_deleted, friendship, declined, greeting, changed_at });
                newest = MessageId::ZERO;
            }
            let Some(friend) = friends.last_mut() else { continue };
            friend.friendship.take(who, &row.content);
            if row.message_id > newest {
                newest = row.message_id;
                friend.declined = row.content.sender == who && !friend.friendship.mine;
            }
            friend.changed_at = friend.changed_at.max(row.content.sent_at);
            if row.content.sender != who {
                let said: Option<Greeting> = serde_json::from_str(row.content.body.as_json()).ok();
                friend.greeting = said.and_then(|said| said.text);
            }
        }
        friends.truncate(limit);
        let uids: Vec<Uid> = friends.iter().map(|friend| friend.uid).collect();
        for (friend, name) in friends.iter_mut().zip(self.directory.shown_names(&uids).await?) {
            friend.is_deleted = name.as_ref().is_some_and(ShownName::is_deleted);
            friend.name = name.map_or_else(|| friend.uid.to_string(), ShownName::into_text);
        }
        Ok(friends)
    }
}

/// The key of the block that `who` may have set on `other`.
fn block(who: Uid, other: Uid) -> (Uid, String) {
    (who, setting_key(Setting::Block, Conversation::User(other)))
}

/// Whether a row there says so.
fn is_set(row: &Option<Entry>) -> bool {
    row.as_ref().is_some_and(|row| row.content.body.setting_value().is_some())
}
