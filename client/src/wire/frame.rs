//! The frames of the WebSocket, one JSON object each.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Conversation, Draft, Entry, Sent};
use crate::error::{Error, Problem};

/// A frame from the client.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ClientFrame<'a> {
    /// "I have everything up to `seq`" (0 = nothing): acknowledges entries and sets the connection's cursor.
    Heartbeat {
        /// The latest id that the client has stored.
        seq: u64,
    },
    /// Sends a message; the answer is [`ServerFrame::Sent`] or an error with the same `client_id`.
    Send(&'a Draft),
    /// Moves the user's read marker of a conversation.
    Read {
        /// Which conversation.
        conversation: Conversation,
        /// Up to which row of one's own inbox.
        message_id: u64,
    },
    /// The user is typing there; never stored and never answered. At most every few seconds.
    Typing {
        /// Where.
        conversation: Conversation,
    },
    /// Watches these people from now on, and nobody else; the answer is [`ServerFrame::Presence`].
    Presence {
        /// Their uids.
        of: &'a [u32],
    },
    /// Tells another person how far that person's messages have come; only a refusal is answered.
    Seen {
        /// The conversation with that person.
        conversation: Conversation,
        /// The last of that person's messages that has come so far: its row in one's own inbox.
        message_id: u64,
        /// How far.
        #[serde(rename = "state")]
        progress: Progress,
    },
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    /// A device of the other person has it.
    Delivered,
    /// The other person has read it.
    Read,
}

impl ClientFrame<'_> {
    /// The frame's text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("frames hold only strings, numbers and valid JSON")
    }
}

/// Rows that the server sends, asked or unasked.
#[derive(Clone, Debug, PartialEq)]
pub struct Entries {
    /// The rows, in the order of their ids, all newer than `after`.
    pub rows: Vec<Entry>,
    /// The cursor that these rows continue.
    pub after: u64,
    /// The cursor once they are stored.
    pub synced: u64,
    /// There is more behind them; it comes after the acknowledgement.
    pub more: bool,
}

/// A frame from the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerFrame {
    /// The first frame of a connection.
    Welcome {
        /// The logged-in user.
        uid: u32,
        /// The user's latest id.
        seq: u64,
        /// The name of this life of the data (I14).
        history: String,
        /// How often to heartbeat, in seconds.
        heartbeat_seconds: u64,
        /// The version of the protocol that the server speaks; 1 where it does not say. Of a larger one than this client knows, it may
        /// tell its user to update, and go on.
        version: u32,
    },
    /// Nothing newer than the heartbeat said.
    Alive {
        /// The user's latest id.
        seq: u64,
        /// The name of this life of the data (I14).
        history: String,
    },
    /// Rows newer than the connection's cursor.
    Entries(Entries),
    /// A message is durable (I3).
    Sent {
        /// Which one.
        client_id: Uuid,
        /// Where it stands.
        sent: Sent,
    },
    /// A frame was refused.
    Error {
        /// The message it is about; `None` when it is about another frame.
        client_id: Option<Uuid>,
        /// The conversation and the row of the [`ClientFrame::Read`] or [`ClientFrame::Seen`] that it is about; `None` when it is about
        /// another frame. Older servers do not say it.
        mark: Option<(Conversation, u64)>,
        /// The refusal.
        problem: Problem,
    },
    /// Somebody is typing; worth showing for some seconds. Never stored.
    Typing {
        /// Where, as the user names it.
        conversation: Conversation,
        /// The typing user.
        sender: u32,
    },
    /// The users online, among those that the connection watches. Never stored.
    Presence {
        /// All of them.
        online: Vec<u32>,
    },
    /// What is seen of a user has changed: the name, say. It can be asked for anew. Never stored.
    Person {
        /// The user: one that the connection watches, or its own.
        uid: u32,
    },
    /// A type that this version does not know.
    Unknown(String),
}

/// All fields of all frames: one pass, and the bodies of rows stay raw (serde's tagged enums cannot keep them so).
#[derive(Deserialize)]
struct FrameFields<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    uid: Option<u32>,
    seq: Option<u64>,
    history: Option<String>,
    heartbeat_seconds: Option<u64>,
    version: Option<u32>,
    entries: Option<Vec<Entry>>,
    after: Option<u64>,
    synced: Option<u64>,
    #[serde(default)]
    more: bool,
    client_id: Option<Uuid>,
    message_id: Option<u64>,
    sent_at: Option<String>,
    code: Option<String>,
    detail: Option<String>,
    #[serde(default)]
    retryable: bool,
    retry_after: Option<u64>,
    conversation: Option<Conversation>,
    sender: Option<u32>,
    online: Option<Vec<u32>>,
}

impl ServerFrame {
    /// Reads a text frame.
    ///
    /// # Errors
    /// [`Error::Protocol`] when it is not JSON or misses a field of its type.
    pub fn parse(text: &str) -> Result<ServerFrame, Error> {
        let fields: FrameFields<'_> =
            serde_json::from_str(text).map_err(|e| Error::Protocol(e.to_string()))?;
        let kind = fields.kind.clone();
        fields.into_frame().ok_or_else(|| Error::Protocol(format!("a {kind} frame lacks a field")))
    }
}

impl FrameFields<'_> {
    fn into_frame(self) -> Option<ServerFrame> {
        Some(match self.kind.as_ref() {
            "welcome" => ServerFrame::Welcome {
                uid: self.uid?,
                seq: self.seq?,
                history: self.history?,
                heartbeat_seconds: self.heartbeat_seconds?,
                version: self.version.unwrap_or(1),
            },
            "alive" => ServerFrame::Alive { seq: self.seq?, history: self.history? },
            "entries" => ServerFrame::Entries(Entries {
                rows: self.entries?,
                after: self.after?,
                synced: self.synced?,
                more: self.more,
            }),
            "sent" => ServerFrame::Sent {
                client_id: self.client_id?,
                sent: Sent { message_id: self.message_id?, sent_at: self.sent_at? },
            },
            "error" => ServerFrame::Error {
                client_id: self.client_id,
                mark: self.conversation.zip(self.message_id),
                problem: Problem {
                    status: 0,
                    code: self.code?,
                    detail: self.detail.unwrap_or_default(),
                    retryable: self.retryable,
                    retry_after: self.retry_after,
                },
            },
            "typing" => ServerFrame::Typing { conversation: self.conversation?, sender: self.sender? },
            "presence" => ServerFrame::Presence { online: self.online? },
            "person" => ServerFrame::Person { uid: self.uid? },
            _ => ServerFrame::Unknown(self.kind.into_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Recipient;

    #[test]
    fn frames_of_the_client_are_written_as_the_interface_says() {
        let draft = Draft::text_as(Uuid::nil(), Recipient::User(10002), "hi");
        let frames = [
            (ClientFrame::Heartbeat { seq: 41 }, r#"{"type":"heartbeat","seq":41}"#),
            (
                ClientFrame::Send(&draft),
                r#"{"type":"send","client_id":"00000000-0000-0000-0000-000000000000","to":{"user":10002},"body":{"text":"hi"}}"#,
            ),
            (
                ClientFrame::Read { conversation: Conversation::Group(7), message_id: 9 },
                r#"{"type":"read","conversation":"g:7","message_id":9}"#,
            ),
            (
                ClientFrame::Typing { conversation: Conversation::User(10002) },
                r#"{"type":"typing","conversation":"u:10002"}"#,
            ),
            (ClientFrame::Presence { of: &[10002] }, r#"{"type":"presence","of":[10002]}"#),
            (
                ClientFrame::Seen {
                    conversation: Conversation::User(7),
                    message_id: 9,
                    progress: Progress::Delivered,
                },
                r#"{"type":"seen","conversation":"u:7","message_id":9,"state":"delivered"}"#,
            ),
        ];
        for (frame, text) in frames {
            assert_eq!(frame.to_json(), text);
        }
    }

    #[test]
    fn frames_of_the_server_are_read_with_unknown_fields_ignored() {
        let welcome = r#"{"type":"welcome","uid":1,"seq":2,"history":"h","heartbeat_seconds":30,"new":[1]}"#;
        assert_eq!(
            ServerFrame::parse(welcome).expect("read"),
            ServerFrame::Welcome {
                uid: 1,
                seq: 2,
                history: "h".to_owned(),
                heartbeat_seconds: 30,
                version: 1
            }
        );
        let error = r#"{"type":"error","code":"busy","detail":"try again","retryable":true}"#;
        let ServerFrame::Error { client_id: None, mark: None, problem } =
            ServerFrame::parse(error).expect("read")
        else {
            panic!("not read as an error");
        };
        assert!(problem.retryable && problem.code == "busy");
        assert_eq!(
            ServerFrame::parse(r#"{"type":"humming","seq":"odd"}"#).ok(),
            None,
            "a field of a known name keeps its type"
        );
        assert_eq!(
            ServerFrame::parse(r#"{"type":"humming"}"#).expect("read"),
            ServerFrame::Unknown("humming".to_owned())
        );
        assert_eq!(
            ServerFrame::parse(r#"{"type":"typing","conversation":"g:7","sender":10002}"#).expect("read"),
            ServerFrame::Typing { conversation: Conversation::Group(7), sender: 10002 }
        );
        assert_eq!(
            ServerFrame::parse(r#"{"type":"presence","online":[10002]}"#).expect("read"),
            ServerFrame::Presence { online: vec![10002] }
        );
    }

    #[test]
    fn a_welcome_says_the_version_also_one_that_this_client_does_not_know() {
        let welcome =
            r#"{"type":"welcome","version":7,"uid":1,"seq":2,"history":"h","heartbeat_seconds":30}"#;
        assert!(matches!(ServerFrame::parse(welcome), Ok(ServerFrame::Welcome { version: 7, .. })));
    }

    #[test]
    fn an_error_names_the_read_marker_that_it_is_about() {
        let error = r#"{"type":"error","code":"not_in_conversation","detail":"","retryable":false,
            "conversation":"u:10002","message_id":9}"#;
        let ServerFrame::Error { client_id: None, mark, .. } = ServerFrame::parse(error).expect("read")
        else {
            panic!("not read as an error");
        };
        assert_eq!(mark, Some((Conversation::User(10002), 9)));
    }

    #[test]
    fn a_frame_without_a_needed_field_is_refused() {
        let error =
            ServerFrame::parse(r#"{"type":"entries","entries":[],"after":1}"#).expect_err("no synced");
        assert!(matches!(error, Error::Protocol(_)));
    }
}
