//! The JSON of rows: written straight into a buffer, with the stored body as it is.
//!
//! Rows are what the server sends most, to each device of each receiver, so no tree of values is built. Small
//! answers are derived by serde where they are made.

use std::fmt::Write as _;

use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

pub(super) use group::{History, Role};

use super::error::Problem;
use crate::domain::{Conversation, Entry, GroupId, Uid};

mod group;

/// Bytes that a row takes beside its body, about.
pub(super) const ROW_BYTES: usize = 300;

/// A row of an inbox.
#[derive(ToSchema)]
#[schema(as = Entry)]
#[expect(dead_code, reason = "describes what `write_entry` writes")]
pub(super) struct EntryForm {
    /// The first 4 hex digits of md5 of the receiver's uid in decimal ASCII.
    #[schema(pattern = "^[0-9a-f]{4}$", example = "9103")]
    partition_key: String,
    /// The uid of the inbox's owner.
    receiver: u32,
    /// The id of the row in this inbox.
    #[schema(minimum = 1, example = 41)]
    message_id: u64,
    /// `message`, `receipt`, `membership`, `edit`, `recall`, `reaction`, `recalled`, `delete`, `deleted`, `seen`, `pin`, `star`, `setting`,
    /// `friend`, `moment`, `like`, `comment`, or what a program put there, `app.*`; skip kinds that you do not know.
    #[schema(example = "message")]
    kind: String,
    /// `u:UID`, the other user from the receiver's side; `g:GID`; `u:0`, what friends share.
    #[schema(pattern = "^[ug]:[0-9]+$", example = "u:10001")]
    conversation: String,
    /// The uid of the user that acted.
    sender: u32,
    /// The sender's idempotency key; absent in a `receipt`.
    #[schema(nullable = false)]
    client_id: Option<Uuid>,
    /// The content, by kind.
    body: BodyForm,
    /// When it was accepted, in UTC. It orders nothing.
    #[schema(format = DateTime, example = "2026-11-22T06:41:08.236Z")]
    sent_at: String,
}

/// The body of a row, by its kind.
#[derive(ToSchema)]
#[schema(as = EntryBody)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
enum BodyForm {
    /// Of a `message` and of a `moment`.
    Message {
        /// The text.
        text: String,
        /// Whether it was edited.
        #[schema(nullable = false)]
        edited: Option<bool>,
        /// The message that it replies to.
        #[schema(nullable = false)]
        reply_to: Option<QuoteForm>,
        /// The user that wrote the text first, where the message forwards it.
        #[schema(nullable = false)]
        forwarded_from: Option<u32>,
        /// Mentions, in a group.
        #[schema(nullable = false)]
        mentions: Option<MentionsForm>,
    },
    /// Of an `edit`.
    Edit {
        /// Which message.
        of: OfForm,
        /// The body that it has from now on, as in a `message`.
        body: serde_json::Map<String, serde_json::Value>,
    },
    /// Of a `reaction`.
    Reaction {
        /// To which message.
        of: OfForm,
        /// All that `sender` reacts with from now on.
        #[schema(max_items = 6)]
        emoji: Vec<String>,
    },
    /// Of a `recall` and of a `delete`.
    Recall {
        /// Which message, moment or comment.
        of: OfForm,
    },
    /// Of a `pin` row.
    Pin {
        /// Which message.
        of: OfForm,
        /// Whether it is pinned for everybody in the conversation from now on.
        pinned: bool,
    },
    /// Of a `star` row, in the user's own inbox alone.
    Star {
        /// Which message.
        of: OfForm,
        /// The user's copy of it.
        message_id: u64,
        /// Whether the user wants to find it again, from now on.
        starred: bool,
    },
    /// Of what was deleted (`deleted`).
    Deleted {
        /// Always `true`.
        deleted: bool,
    },
    /// Of a `setting`.
    Setting {
        /// `draft`, `mute`, `pin`, `archive`, `hide`, `unread`, `block`, `privacy`, `profile` or `language`.
        name: String,
        /// The value; `null`: none.
        #[schema(nullable = true)]
        value: Option<serde_json::Map<String, serde_json::Value>>,
    },
    /// Of a `friend` row.
    Friend {
        /// Whether `sender` wants to be the other one's friend.
        wanted: bool,
        /// A greeting.
        #[schema(nullable = false)]
        text: Option<String>,
        /// The account of `sender` is deleted; absent otherwise.
        #[schema(nullable = false)]
        deleted: Option<bool>,
    },
    /// Of a `like`.
    Like {
        /// Which moment.
        of: OfForm,
        /// Whether `sender` likes it.
        liked: bool,
    },
    /// Of a `comment`.
    Comment {
        /// Which moment.
        of: OfForm,
        /// The text of the comment.
        text: String,
    },
    /// Of a `seen` row.
    Seen {
        /// The last of the receiver's messages that has come so far.
        of: OfForm,
        /// How far.
        state: ProgressForm,
        /// Of `read_by`: how many members of the group have read each of the receiver's newest messages, the newest first.
        #[schema(nullable = false, max_items = 20)]
        counts: Option<Vec<ReadCountForm>>,
    },
    /// Of a message that was taken back (`recalled`).
    Recalled {
        /// Always `true`.
        recalled: bool,
        /// The uid of the administrator that took it back; absent where its sender did.
        #[schema(nullable = false)]
        by: Option<u32>,
    },
    /// Of a `receipt`.
    ReadMarker {
        /// The row up to which the user has read the conversation.
        read_to: u64,
    },
    /// Of a `membership`.
    Membership {
        /// The kind of change.
        action: ActionForm,
        /// Which group.
        group: u64,
        /// The group's name.
        name: String,
        /// The uid of the user that the change concerns.
        uid: u32,
        /// The name of that user.
        user_name: String,
        /// The uid of the user that acted.
        by: u32,
        /// The name of that user.
        by_name: String,
        /// Of `topic`: the group's topic from now on.
        #[schema(nullable = false)]
        topic: Option<String>,
        /// Of `history`: whether members that join from now on see earlier messages. Of `added` and `joined`: `visible`, where the new
        /// member got earlier messages before this row.
        #[schema(nullable = false)]
        history: Option<History>,
        /// Of `slow`: seconds between two messages of one member from now on; 0: no slow mode.
        #[schema(nullable = false)]
        slow_seconds: Option<u16>,
        /// Of `muted`: when that ends; absent: it is for good.
        #[schema(nullable = false, format = DateTime)]
        until: Option<String>,
        /// Of `role`: the user's role from now on.
        #[schema(nullable = false)]
        role: Option<Role>,
        /// Of `left`: the owner of the group from now on, where the owner left.
        #[schema(nullable = false)]
        owner: Option<u32>,
        /// The name of that user.
        #[schema(nullable = false)]
        owner_name: Option<String>,
    },
}

/// A message, by what is the same in all its copies.
#[derive(ToSchema)]
#[schema(as = MessageKey)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
struct OfForm {
    /// The uid of the sender.
    sender: u32,
    /// Its idempotency key.
    client_id: Uuid,
}

/// How far messages have come.
#[derive(ToSchema)]
#[schema(as = Progress, rename_all = "snake_case")]
#[expect(dead_code, reason = "describes what is stored as JSON")]
enum ProgressForm {
    Delivered,
    Read,
    ReadBy,
}

/// How many members of a group have read a message of the receiver.
#[derive(ToSchema)]
#[schema(as = ReadCount)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
struct ReadCountForm {
    /// The message's idempotency key.
    client_id: Uuid,
    /// How many.
    count: u32,
}

/// A message that is replied to.
#[derive(ToSchema)]
#[schema(as = Quote)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
struct QuoteForm {
    /// Which message.
    of: OfForm,
}

/// Mentions of a message in a group.
#[derive(ToSchema)]
#[schema(as = Mentions)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
pub(super) struct MentionsForm {
    /// Mentioned members, by uid, each once. Users that are not members are dropped when the message is accepted.
    #[schema(nullable = false, max_items = 50)]
    users: Option<Vec<u32>>,
    /// Everybody in the group.
    #[schema(nullable = false)]
    all: Option<bool>,
}

/// A change of a group.
#[derive(ToSchema)]
#[schema(as = GroupAction, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes what is stored as JSON")]
enum ActionForm {
    Created,
    Added,
    Joined,
    Removed,
    Left,
    Renamed,
    Topic,
    History,
    Role,
    Banned,
    Unbanned,
    Slow,
    Muted,
    Unmuted,
}

/// Writes `entry` as an ENTRY object.
pub(super) fn write_entry(out: &mut String, entry: &Entry) {
    let content = &entry.content;
    out.push_str("{\"partition_key\":\"");
    out.push_str(entry.receiver.partition_key().as_str());
    put(out, format_args!("\",\"receiver\":{},\"message_id\":{}", entry.receiver, entry.message_id));
    put(
        out,
        format_args!(",\"kind\":\"{}\",\"conversation\":\"{}\"", content.kind_name(), entry.conversation()),
    );
    put(out, format_args!(",\"sender\":{}", content.sender));
    if let Some(client_id) = content.client_id {
        put(out, format_args!(",\"client_id\":\"{client_id}\""));
    }
    out.push_str(",\"body\":");
    out.push_str(content.body_json());
    out.push_str(",\"sent_at\":\"");
    out.push_str(&content.sent_at.to_rfc3339());
    out.push_str("\"}");
}

/// How much work it is to write these rows, in bytes.
pub(super) fn weight(entries: &[Entry]) -> usize {
    entries.iter().map(Entry::weight).sum()
}

/// Writes `entries` as an array of ENTRY objects.
pub(super) fn write_entries(out: &mut String, entries: &[Entry]) {
    out.reserve(entries.iter().map(|entry| entry.content.body.as_json().len() + ROW_BYTES).sum());
    out.push('[');
    for (at, entry) in entries.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_entry(out, entry);
    }
    out.push(']');
}

/// Writes `text` as a JSON string.
pub(super) fn write_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).expect("a text is JSON"));
}

/// Formats into a string, which cannot fail.
pub(super) fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing into a string does not fail");
}

/// Bytes that a row counts for in capacity units: names and values of its columns, 8 for an integer (S20).
pub(super) fn capacity_bytes(entry: &Entry) -> usize {
    const INTEGER: usize = 8;
    let integers = ["receiver", "message_id", "sender", "sent_at"];
    let client_id = entry.content.client_id.map_or(0, |_| "client_id".len() + 36);
    let texts = [
        ("partition_key", 4),
        ("kind", entry.content.kind_name().len()),
        ("conversation", entry.conversation().to_string().len()),
        ("body", entry.content.body_json().len()),
    ];
    integers.iter().map(|name| name.len() + INTEGER).sum::<usize>()
        + texts.iter().map(|(name, value)| name.len() + value).sum::<usize>()
        + client_id
}

/// One user, or the members of one group.
#[derive(ToSchema)]
#[schema(as = Recipient)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes `To`, which says more when it is not what it should be")]
pub(super) enum ToForm {
    /// A user; oneself for a note to oneself.
    User {
        /// The user's uid.
        user: u32,
    },
    /// A group that the sender is in.
    Group {
        /// The group's number.
        group: u64,
    },
}

/// `{user: UID}` or `{group: GID}`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct To {
    user: Option<u32>,
    group: Option<u64>,
}

impl To {
    /// The conversation that it means, from the sender's side.
    pub(super) fn conversation(self) -> Result<Conversation, Problem> {
        match (self.user, self.group) {
            (Some(uid), None) => Ok(Conversation::User(Uid(uid))),
            (None, Some(gid)) => Ok(Conversation::Group(GroupId(gid))),
            _ => Err(Problem::invalid_body("`to` names one receiver: {\"user\": UID} or {\"group\": GID}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::{Body, ClientId, Content, Kind, MessageId, Timestamp};

    fn entry(client_id: Option<ClientId>) -> Entry {
        let content = Content {
            kind: Kind::Message,
            sender: Uid(10_001),
            target: Conversation::User(Uid(10_002)),
            client_id,
            body: Body::text("a \"b\"\n", 10).expect("short"),
            sent_at: Timestamp(1_795_261_438_042),
        };
        let message_id = MessageId::new(41).expect("small");
        Entry { receiver: Uid(10_002), message_id, content: Arc::new(content) }
    }

    #[test]
    fn an_entry_is_written_as_the_interface_says() {
        let mut text = String::new();
        write_entries(&mut text, &[entry(Some(ClientId(uuid::Uuid::nil()))), entry(None)]);
        let rows: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            rows[0],
            serde_json::json!({
                "partition_key": Uid(10_002).partition_key().as_str(), "receiver": 10_002, "message_id": 41,
                "kind": "message", "conversation": "u:10001", "sender": 10_001,
                "client_id": "00000000-0000-0000-0000-000000000000",
                "body": {"text": "a \"b\"\n"}, "sent_at": "2026-11-21T11:43:58.042Z",
            })
        );
        assert_eq!(rows[1].get("client_id"), None);
    }

    #[test]
    fn capacity_counts_names_and_values() {
        // receiver, message_id, sender, sent_at: 31 + 4 × 8; partition_key 13 + 4; kind 4 + 7;
        // conversation 12 + 7; body 4 + 20.
        assert_eq!(capacity_bytes(&entry(None)), 63 + 17 + 11 + 19 + 24);
        assert_eq!(capacity_bytes(&entry(Some(ClientId(uuid::Uuid::nil())))), 134 + 9 + 36);
    }

    #[test]
    fn a_receiver_is_one_person_or_one_group() {
        let to = |text| serde_json::from_str::<To>(text).expect("JSON").conversation();
        assert_eq!(to("{\"user\":7}"), Ok(Conversation::User(Uid(7))));
        assert_eq!(to("{\"group\":7}"), Ok(Conversation::Group(GroupId(7))));
        assert!(to("{}").is_err() && to("{\"user\":7,\"group\":7}").is_err());
    }
}
