//! Compaction keys: of the rows of an inbox with the same key the newest alone is kept. The entry of a
//! kind (`kinds`) says which key its rows have.
//!
//! Such rows say how things stand, not what happened: how far somebody has read, what a person reacts with, who is a
//! friend. So the newest row under a key is also where its value is looked up (`MessageStore::newest`). Keys are stored
//! beside the rows: they must stay stable.
//!
//! No second table has these values, so they are as durable as messages. The wishes of two people to be friends have
//! two keys. Each is written by one person alone, so both inboxes come to the same end whatever crosses on the way.

use super::{Content, Conversation, IdempotencyKey, Setting, Uid};

/// The prefix of the keys of friends, before the other person's uid: all of them lie side by side.
pub const FRIENDS: &str = "friend u:";

/// The prefix of the keys of settings, before the name of the setting.
pub const SETTINGS: &str = "set ";

/// The prefix of the keys of stars, before the message.
pub const STARS: &str = "star ";

/// The key of what `by` says about being friends, in the inbox of one of the two; `with`: the other one, from there.
pub fn friend_key(with: Conversation, by: Uid) -> String {
    format!("friend {with} {by}")
}

/// The key of what was done to a message last: an edit, or that it was taken back.
pub fn amendment_key((sender, client_id): IdempotencyKey) -> String {
    format!("amend {sender} {client_id}")
}

/// The prefix of the keys of a conversation's pins, before the message.
pub fn pins(of: Conversation) -> String {
    format!("pin {of} ")
}

/// The key of a setting. For all conversations, `of` is the user's own conversation.
pub fn setting_key(name: Setting, of: Conversation) -> String {
    format!("{SETTINGS}{} {of}", name.as_str())
}

impl Content {
    /// Of rows with the same compaction key in one inbox only the newest is kept. `None`: the row is kept whatever comes later.
    pub fn compaction_key(&self, receiver: Uid) -> Option<String> {
        let (mut key, mut rest) = (String::new(), self.kind.key());
        while let Some((before, after)) = rest.split_once('{') {
            let (word, after) = after.split_once('}').expect("kinds.rs closes its braces");
            key.push_str(before);
            key.push_str(&self.word_of_key(word, receiver)?);
            rest = after;
        }
        key.push_str(rest);
        (!key.is_empty()).then_some(key)
    }

    fn word_of_key(&self, word: &str, receiver: Uid) -> Option<String> {
        match word {
            "conversation" => Some(self.conversation(receiver).to_string()),
            "sender" => Some(self.sender.to_string()),
            "of" => self.of().map(|(sender, client_id)| format!("{sender} {client_id}")),
            "setting" => self.body.setting().map(|setting| setting.as_str().to_owned()),
            "kept" => self.keep_word(receiver),
            "state" => self.body.seen_word().map(str::to_owned),
            word => unreachable!("kinds.rs names {word}, which no row has"),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::{Body, ClientId, Kind, Timestamp};

    /// They lie in the tables.
    #[test]
    fn keys_stay_as_they_are_stored() {
        let (ann, bob, id) = (Uid(1), Uid(2), ClientId(Uuid::from_u128(7)));
        let of = r#"{"of":{"sender":1,"client_id":"00000000-0000-0000-0000-000000000007"}}"#;
        let key = |kind, sender, target, body: &str, receiver| {
            let body = Body::from_stored(body);
            let content = Content { kind, sender, target, client_id: Some(id), body, sent_at: Timestamp(0) };
            content.compaction_key(receiver)
        };
        let to_bob = Conversation::User(bob);
        let message = "1 00000000-0000-0000-0000-000000000007";
        for (kind, sender, body, receiver, expected) in [
            (Kind::ReadMarker, ann, r#"{"read_to":4}"#, ann, "read u:2".to_owned()),
            (Kind::Edit, ann, of, bob, format!("amend {message}")),
            (Kind::Recall, ann, of, ann, format!("amend {message}")),
            (Kind::Reaction, ann, of, bob, format!("react 1 {message}")),
            (Kind::Delete, ann, of, ann, format!("delete {message}")),
            (Kind::Seen, ann, r#"{"state":"read"}"#, bob, "seen read u:1".to_owned()),
            (Kind::Seen, ann, r#"{"state":"read_by"}"#, bob, "seen read_by u:1".to_owned()),
            (Kind::Pin, ann, of, bob, format!("pin u:1 {message}")),
            (Kind::Star, ann, of, ann, format!("star {message}")),
            (Kind::Friend, ann, r#"{"wanted":true}"#, ann, "friend u:2 1".to_owned()),
            (Kind::Friend, ann, r#"{"wanted":true}"#, bob, "friend u:1 1".to_owned()),
            (Kind::Setting, ann, r#"{"name":"mute","value":{}}"#, ann, "set mute u:2".to_owned()),
        ] {
            assert_eq!(key(kind, sender, to_bob, body, receiver), Some(expected), "{kind:?}");
        }
        let like = key(Kind::Like, bob, Conversation::MOMENTS, of, ann);
        assert_eq!(like, Some(format!("like 2 {message}")));
        let lookups = [friend_key(to_bob, ann), amendment_key((ann, id)), setting_key(Setting::Mute, to_bob)];
        assert_eq!(
            lookups,
            ["friend u:2 1".to_owned(), format!("amend {message}"), "set mute u:2".to_owned()]
        );
        assert_eq!(key(Kind::Moment, ann, Conversation::MOMENTS, "{}", bob), None);
        assert_eq!(key(Kind::Setting, ann, to_bob, r#"{"name":"later"}"#, ann), None);
    }
}
