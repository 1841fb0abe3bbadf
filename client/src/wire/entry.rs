//! A row of an inbox, and a message on its way to become one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use serde::de::{self, DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

/// One row of one user's inbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// First 4 hex digits of md5 of the receiver's uid (S15).
    pub partition_key: String,
    /// The owner of the inbox.
    pub receiver: u32,
    /// The row's id in the receiver's inbox; grows, with gaps that mean nothing (I11).
    pub message_id: u64,
    /// The kind of the row; skip kinds that you do not know.
    pub kind: Kind,
    /// In which conversation, from the receiver's side.
    pub conversation: Conversation,
    /// The user that said or did it.
    pub sender: u32,
    /// The sender's name for it; read markers have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Uuid>,
    /// The body as it came, not parsed; [`Entry::body_as`] reads it.
    pub body: Box<RawValue>,
    /// RFC 3339, UTC.
    pub sent_at: String,
}

impl Entry {
    /// The body, read as `T`.
    pub fn body_as<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.body.get())
    }

    /// A field of the body; `None` where it is missing or has another type.
    pub(super) fn field<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let body: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(self.body.get()).ok()?;
        serde_json::from_str(body.get(name)?.get()).ok()
    }

    /// The text of a message, a moment or a comment; `None` for other kinds.
    pub fn text(&self) -> Option<String> {
        let is_said = matches!(self.kind, Kind::Message | Kind::Moment | Kind::Comment);
        is_said.then(|| self.field("text"))?
    }

    /// Up to where the user has read this conversation; `None` for kinds other than read markers.
    pub fn read_to(&self) -> Option<u64> {
        (self.kind == Kind::ReadMarker).then(|| self.field("read_to"))?
    }

    /// The message, moment or comment that this row is about, if it is about one. Each copy of a message has a `message_id` of its own, so
    /// it is named by what is the same in all.
    pub fn about(&self) -> Option<MessageKey> {
        self.field("of")
    }

    /// The text that an edit gives its message.
    pub fn edited_text(&self) -> Option<String> {
        let body: Value = (self.kind == Kind::Edit).then(|| self.field("body"))??;
        Some(body["text"].as_str()?.to_owned())
    }

    /// The administrator that took this message back; `None`: its sender did, or it was not taken back.
    pub fn removed_by(&self) -> Option<u32> {
        (self.kind == Kind::Recalled).then(|| self.field("by"))?
    }

    /// The user that wrote the text of a forwarded message first.
    pub fn forwarded_from(&self) -> Option<u32> {
        (self.kind == Kind::Message).then(|| self.field("forwarded_from"))?
    }

    /// Whether a star stands from then on; `None` for other kinds.
    pub fn starred(&self) -> Option<bool> {
        (self.kind == Kind::Star).then(|| self.field("starred"))?
    }

    /// All that the sender of a reaction reacts with from then on.
    pub fn emoji(&self) -> Option<Vec<String>> {
        (self.kind == Kind::Reaction).then(|| self.field("emoji"))?
    }
}

/// A message, by what is the same in all its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct MessageKey {
    /// The sender.
    pub sender: u32,
    /// The sender's name for it.
    pub client_id: Uuid,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.receiver, self.message_id, self.sender, self.client_id)
            == (other.receiver, other.message_id, other.sender, other.client_id)
            && (&self.partition_key, &self.kind, self.conversation, &self.sent_at)
                == (&other.partition_key, &other.kind, other.conversation, &other.sent_at)
            && self.body.get() == other.body.get()
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $word:literal)*) => {
        /// The kind of a row.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
            /// A kind that this version does not know.
            Other(String),
        }

        impl Kind {
            /// The word on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Kind::$kind => $word,)*
                    Kind::Other(word) => word,
                }
            }

            fn of(word: &str) -> Kind {
                match word {
                    $($word => Kind::$kind,)*
                    _ => Kind::Other(word.to_owned()),
                }
            }
        }
    };
}

kinds! {
    /// Something a person said: [`Entry::text`].
    Message "message"
    /// The user's own read marker moved: [`Entry::read_to`].
    ReadMarker "receipt"
    /// A group was made, or somebody joined or left it.
    Membership "membership"
    /// The sender of a message changed its text: [`Entry::about`], [`Entry::edited_text`].
    Edit "edit"
    /// The sender of a message or an administrator of the group took it back: [`Entry::about`].
    Recall "recall"
    /// A person's reaction to a message: [`Entry::about`], [`Entry::emoji`].
    Reaction "reaction"
    /// A message that was taken back, without its content: [`Entry::removed_by`].
    Recalled "recalled"
    /// A message was deleted for the user alone, or a moment or comment for everybody: [`Entry::about`].
    Delete "delete"
    /// A deleted message, moment or comment, without its content.
    Deleted "deleted"
    /// How far the user's messages have come: [`Entry::about`].
    Seen "seen"
    /// A message is pinned for everybody in the conversation, or no longer: [`Entry::about`].
    Pin "pin"
    /// The user wants to find a message again, or no longer: [`Entry::about`], [`Entry::starred`].
    Star "star"
    /// For how long messages of two people are kept from now on.
    Keep "keep"
    /// A setting of the user.
    Setting "setting"
    /// Whether somebody wants to be a friend.
    Friend "friend"
    /// A person's post to friends: [`Entry::text`].
    Moment "moment"
    /// Whether somebody likes a moment: [`Entry::about`].
    Like "like"
    /// A comment on a moment: [`Entry::about`], [`Entry::text`].
    Comment "comment"
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = short_text(deserializer, "the kind of a row")?;
        Ok(Kind::of(&word))
    }
}

/// A conversation as one person sees it; written `u:UID` or `g:GID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conversation {
    /// With this person.
    User(u32),
    /// In this group.
    Group(u64),
}

impl fmt::Display for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Conversation::User(uid) => write!(f, "u:{uid}"),
            Conversation::Group(gid) => write!(f, "g:{gid}"),
        }
    }
}

impl FromStr for Conversation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is not a conversation: write u:UID or g:GID");
        match text.split_once(':') {
            Some(("u", uid)) => uid.parse().map(Conversation::User).map_err(|_| wrong()),
            Some(("g", gid)) => gid.parse().map(Conversation::Group).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}

impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Conversation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        short_text(deserializer, "u:UID or g:GID")?.parse().map_err(de::Error::custom)
    }
}

/// To whom a message goes; written `{"user": UID}` or `{"group": GID}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recipient {
    /// One person.
    User(u32),
    /// Everybody in a group.
    Group(u64),
}

/// A message on its way: repeat it under the same `client_id` as often as needed, it is stored once (I4).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Draft {
    /// Unique for this sender, for good.
    pub client_id: Uuid,
    /// To whom.
    pub to: Recipient,
    /// A JSON object, `{"text": …}` for a message.
    pub body: Box<RawValue>,
}

impl Draft {
    /// A text message under a new random `client_id`.
    #[expect(clippy::disallowed_methods, reason = "chance enters here; `text_as` takes it as an argument")]
    pub fn text(to: Recipient, text: &str) -> Draft {
        Draft::text_as(Uuid::new_v4(), to, text)
    }

    /// A text message under a `client_id` of the caller's choice.
    pub fn text_as(client_id: Uuid, to: Recipient, text: &str) -> Draft {
        let body = serde_json::value::to_raw_value(&serde_json::json!({ "text": text }))
            .expect("a JSON value can always be written");
        Draft { client_id, to, body }
    }

    /// The same in reply to `reply_to`, a row of the same conversation in the caller's inbox.
    pub fn reply_as(client_id: Uuid, to: Recipient, text: &str, reply_to: u64) -> Draft {
        let body =
            serde_json::value::to_raw_value(&serde_json::json!({ "text": text, "reply_to": reply_to }))
                .expect("a JSON value can always be written");
        Draft { client_id, to, body }
    }

    /// The same that forwards `forward`, a row of the caller's inbox with this text.
    pub fn forward_as(client_id: Uuid, to: Recipient, text: &str, forward: u64) -> Draft {
        let body = serde_json::value::to_raw_value(&serde_json::json!({ "text": text, "forward": forward }))
            .expect("a JSON value can always be written");
        Draft { client_id, to, body }
    }
}

/// Where a sent message stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The id of the sender's own copy.
    pub message_id: u64,
    /// RFC 3339, UTC.
    pub sent_at: String,
}

/// Reads a string without copying it where it stands unescaped in the input.
fn short_text<'de, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<Cow<'de, str>, D::Error> {
    struct ShortText(&'static str);
    impl<'de> Visitor<'de> for ShortText {
        type Value = Cow<'de, str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(Cow::Borrowed(text))
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Cow::Owned(text.to_owned()))
        }
    }
    deserializer.deserialize_str(ShortText(expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Mentions;

    const ROW: &str = r#"{"partition_key":"d9d4","receiver":10001,"message_id":41,"kind":"message",
        "conversation":"u:10002","sender":10002,"client_id":"6e0c5a4e-6d0c-4a2c-9c4b-0d5c8f8f3a11",
        "body":{"text":"hi \"you\"","later":1},"sent_at":"2026-01-01T00:00:00Z","later":true}"#;

    #[test]
    fn a_row_survives_reading_and_writing_with_its_body_as_it_came() {
        let row: Entry = serde_json::from_str(ROW).expect("a row");
        assert_eq!(row.text().as_deref(), Some("hi \"you\""));
        assert_eq!((row.conversation, row.read_to()), (Conversation::User(10002), None));
        let again: Entry =
            serde_json::from_str(&serde_json::to_string(&row).expect("written")).expect("read");
        assert_eq!(again, row);
        assert_eq!(again.body.get(), r#"{"text":"hi \"you\"","later":1}"#);
    }

    #[test]
    fn an_unknown_kind_is_kept() {
        let row: Entry = serde_json::from_str(&ROW.replace("\"message\"", "\"poll\"")).expect("a row");
        assert_eq!(row.kind, Kind::Other("poll".to_owned()));
        assert_eq!(row.text(), None);
    }

    #[test]
    fn an_amendment_names_its_message_and_says_what_becomes_of_it() {
        let of = r#""of":{"sender":7,"client_id":"6e0c5a4e-6d0c-4a2c-9c4b-0d5c8f8f3a11"}"#;
        let amendment = |kind: &str, more: &str| -> Entry {
            let body = format!(r#""body":{{{of}{more}}}"#);
            let row = ROW.replace(r#""message","#, &format!(r#""{kind}","#));
            let row = row.replace(r#""body":{"text":"hi \"you\"","later":1}"#, &body);
            serde_json::from_str(&row).expect("a row")
        };
        let client_id = "6e0c5a4e-6d0c-4a2c-9c4b-0d5c8f8f3a11".parse().expect("a UUID");
        let key = Some(MessageKey { sender: 7, client_id });
        let edit = amendment("edit", r#","body":{"text":"ho"}"#);
        assert_eq!(
            (edit.kind.clone(), edit.about(), edit.edited_text()),
            (Kind::Edit, key, Some("ho".into()))
        );
        let recall = amendment("recall", "");
        assert_eq!((recall.about(), recall.edited_text(), recall.emoji()), (key, None, None));
        let reaction = amendment("reaction", r#","emoji":["👍"]"#);
        assert_eq!((reaction.about(), reaction.emoji()), (key, Some(vec!["👍".to_owned()])));
        let star = amendment("star", r#","message_id":41,"starred":true"#);
        assert_eq!((star.kind.clone(), star.about(), star.starred()), (Kind::Star, key, Some(true)));
        assert_eq!(amendment("recalled", "").about(), key, "of a kind that is not known, too");
        let removed = amendment("recalled", r#","by":10003"#);
        assert_eq!((removed.removed_by(), recall.removed_by()), (Some(10_003), None));
    }

    #[test]
    fn mentions_are_written_and_read() {
        let mentions = Mentions { users: vec![10_002], all: false };
        let draft = Draft::text_as(Uuid::nil(), Recipient::Group(7), "hi @bob").mentioning(&mentions);
        assert_eq!(draft.body.get(), r#"{"mentions":{"all":false,"users":[10002]},"text":"hi @bob"}"#);
        let row = ROW.replace(r#""later":1}"#, r#""mentions":{"users":[10002]}}"#);
        let row: Entry = serde_json::from_str(&row).expect("a row");
        assert_eq!(row.mentions(), mentions);
        let row: Entry = serde_json::from_str(ROW).expect("a row");
        assert_eq!(row.mentions(), Mentions::default());
    }

    #[test]
    fn a_draft_is_written_as_the_interface_says() {
        let draft = Draft::text_as(Uuid::nil(), Recipient::Group(7), "x");
        assert_eq!(
            serde_json::to_string(&draft).expect("written"),
            r#"{"client_id":"00000000-0000-0000-0000-000000000000","to":{"group":7},"body":{"text":"x"}}"#
        );
        let reply = Draft::reply_as(Uuid::nil(), Recipient::Group(7), "x", 5);
        assert_eq!(reply.body.get(), r#"{"reply_to":5,"text":"x"}"#);
        let forward = Draft::forward_as(Uuid::nil(), Recipient::Group(3), "x", 5);
        assert_eq!(forward.body.get(), r#"{"forward":5,"text":"x"}"#);
    }
}
