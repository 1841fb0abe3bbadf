//! The JSON of rows: written straight into a buffer, with the stored body as it is.
//!
//! Rows are what the server sends most, to each device of each receiver, so no tree of values is built. Small
//! answers are derived by serde where they are made.

use std::fmt::Write as _;

use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

pub(super) use body::MentionsForm;
pub(super) use group::{History, Role};

use super::error::Problem;
use crate::domain::{Conversation, Entry, GroupId, Uid};

mod body;
mod file;
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
    /// `friend`, `keep`, `moment`, `like`, `comment`, or what a program put there, `app.*`; skip kinds that you do not know.
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
    body: body::BodyForm,
    /// When it was accepted, in UTC. It orders nothing.
    #[schema(format = DateTime, example = "2026-11-22T06:41:08.236Z")]
    sent_at: String,
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
