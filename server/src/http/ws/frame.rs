//! The frames of the WebSocket: reading the client's, writing the server's.
//!
//! A heartbeat is read without allocating. Frames to be sent are written straight into the text that is sent.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use uuid::Uuid;

use crate::app::People;
use crate::app::messages::{Request, SendAck};
use crate::app::sync::Pulled;
use crate::domain::{ClientId, Conversation, HistoryId, MessageId, Progress, Uid};
use crate::http::api::amendments::{Amending, Delete, Edit, Pin, Reaction, Recall, Star, row};
use crate::http::api::messages::NewMessage;
use crate::http::api::settings::{self, NewValue};
use crate::http::error::Problem;
use crate::http::object::from_text;
use crate::http::wire::{put, write_entries, write_text};

/// What a client says.
#[derive(Debug)]
pub(super) enum ClientFrame {
    /// "I have everything up to here"; any number, also beyond every row.
    Heartbeat(u64),
    /// A message to be sent, or something to be done to one.
    Send(Box<Request>),
    /// A read marker to be moved, or word of how far messages have come.
    Mark(Request),
    /// The person is typing there.
    Typing(Conversation),
    /// Whom the device watches, to be told who is online.
    Watch(HashSet<Uid>),
}

/// A frame that is not understood, with the message that it may have been meant to send.
#[derive(Debug)]
pub(super) struct BadFrame {
    pub(super) problem: Problem,
    pub(super) client_id: Option<ClientId>,
}

/// What tells frames apart, and the one field of the commonest.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    seq: Option<&'a RawValue>,
}

/// A row of the caller's inbox: in a read marker, the last one that was read.
#[derive(Deserialize)]
struct About {
    conversation: String,
    message_id: u64,
}

/// How far another person's messages have come.
#[derive(Deserialize)]
struct Seen {
    conversation: String,
    message_id: u64,
    state: Progress,
}

/// Which setting, beside its new value.
#[derive(Deserialize)]
struct SettingFrame {
    conversation: String,
    name: String,
}

/// Where the person is typing.
#[derive(Deserialize)]
struct Typing {
    conversation: String,
}

/// Of whom the device wants to know whether they are online.
#[derive(Deserialize)]
struct Presence {
    of: HashSet<u32>,
}

#[derive(Deserialize)]
struct Named {
    client_id: Uuid,
}

/// Reads a client's frame.
pub(super) fn parse(text: &str) -> Result<ClientFrame, BadFrame> {
    let refuse = |problem| BadFrame { problem, client_id: None };
    let head: Head<'_> = from_text(text).map_err(|error| refuse(Problem::from_json(&error)))?;
    match head.kind.as_ref() {
        "heartbeat" => match head.seq.map(|seq| seq.get().parse()) {
            Some(Ok(seq)) => Ok(ClientFrame::Heartbeat(seq)),
            _ => Err(refuse(Problem::invalid_body("a heartbeat carries `seq`, a whole number from 0 up"))),
        },
        "send" => {
            let message = from_text(text).map_err(|error| Problem::from_json(&error));
            let draft = message.and_then(NewMessage::draft).map(Request::Message);
            draft.map(ClientFrame::from).map_err(|problem| named(text, problem))
        }
        "edit" => amend::<Edit>(text),
        "recall" => amend::<Recall>(text),
        "reaction" => amend::<Reaction>(text),
        "delete" => amend::<Delete>(text),
        "pin" => amend::<Pin>(text),
        "star" => amend::<Star>(text),
        "read" => {
            let About { conversation, message_id } =
                from_text(text).map_err(|error| refuse(Problem::from_json(&error)))?;
            let conversation = conversation.parse().map_err(|error| refuse(Problem::invalid_body(error)))?;
            let message_id = row(message_id).map_err(refuse)?;
            Ok(ClientFrame::Mark(Request::Read { conversation, message_id }))
        }
        "seen" => {
            let Seen { conversation, message_id, state } =
                from_text(text).map_err(|error| refuse(Problem::from_json(&error)))?;
            let conversation = conversation.parse().map_err(|error| refuse(Problem::invalid_body(error)))?;
            let Conversation::User(of) = conversation else {
                return Err(refuse(Problem::invalid_body(
                    "`seen` is said to one person, in a conversation u:UID",
                )));
            };
            let message_id = row(message_id).map_err(refuse)?;
            Ok(ClientFrame::Mark(Request::Seen { of, message_id, progress: state }))
        }
        "typing" => {
            let Typing { conversation } =
                from_text(text).map_err(|error| refuse(Problem::from_json(&error)))?;
            let conversation = conversation.parse().map_err(|error| refuse(Problem::invalid_body(error)))?;
            Ok(ClientFrame::Typing(conversation))
        }
        "presence" => {
            let Presence { of } = from_text(text).map_err(|error| refuse(Problem::from_json(&error)))?;
            Ok(ClientFrame::Watch(of.into_iter().map(Uid).collect()))
        }
        "setting" => setting(text).map(ClientFrame::from).map_err(|problem| named(text, problem)),
        kind => {
            let kind: String = kind.chars().take(40).collect();
            let detail = format!("there is no frame `{kind}`; /docs/websocket lists those that there are");
            Err(refuse(Problem { code: "unknown_type", ..Problem::invalid_body(detail) }))
        }
    }
}

/// Reads a frame that sets a setting of a conversation.
fn setting(text: &str) -> Result<Request, Problem> {
    let frame: SettingFrame = from_text(text).map_err(|error| Problem::from_json(&error))?;
    let NewValue { client_id, value } = from_text(text).map_err(|error| Problem::from_json(&error))?;
    let conversation = frame.conversation.parse().map_err(Problem::invalid_body)?;
    let setting = settings::named(&frame.name, Some(conversation))?;
    Ok(People::setting(ClientId(client_id), setting, conversation, &value)?)
}

/// Reads a frame about a message.
fn amend<A: Amending + for<'de> Deserialize<'de>>(text: &str) -> Result<ClientFrame, BadFrame> {
    let read = || {
        let amending: A = from_text(text).map_err(|error| Problem::from_json(&error))?;
        let About { conversation, message_id } =
            from_text(text).map_err(|error| Problem::from_json(&error))?;
        let conversation = conversation.parse().map_err(Problem::invalid_body)?;
        Ok(Request::Amend(amending.amend(conversation, row(message_id)?)))
    };
    read().map(ClientFrame::from).map_err(|problem| named(text, problem))
}

/// A refusal of what may be a message.
fn named(text: &str, problem: Problem) -> BadFrame {
    let named = from_text(text).ok();
    BadFrame { problem, client_id: named.map(|Named { client_id }| ClientId(client_id)) }
}

impl From<Request> for ClientFrame {
    fn from(request: Request) -> ClientFrame {
        ClientFrame::Send(Box::new(request))
    }
}

/// The first frame of a connection.
pub(super) fn welcome(uid: Uid, seq: MessageId, history: HistoryId, heartbeat_seconds: u32) -> Utf8Bytes {
    format!(
        "{{\"type\":\"welcome\",\"uid\":{uid},\"seq\":{seq},\"history\":\"{history}\",\
         \"heartbeat_seconds\":{heartbeat_seconds}}}"
    )
    .into()
}

/// "Nothing is newer than `seq`."
pub(super) fn alive(seq: MessageId, history: HistoryId) -> Utf8Bytes {
    format!("{{\"type\":\"alive\",\"seq\":{seq},\"history\":\"{history}\"}}").into()
}

/// Rows that a client at `after` misses.
pub(super) fn entries(pulled: &Pulled, after: MessageId) -> Utf8Bytes {
    let mut text = String::from("{\"type\":\"entries\",\"entries\":");
    write_entries(&mut text, &pulled.entries);
    let Pulled { synced, more, .. } = pulled;
    put(&mut text, format_args!(",\"after\":{after},\"synced\":{synced},\"more\":{more}}}"));
    text.into()
}

/// "It is durable."
pub(super) fn sent(client_id: ClientId, ack: &SendAck) -> Utf8Bytes {
    let SendAck { message_id, sent_at, .. } = ack;
    let sent_at = sent_at.to_rfc3339();
    format!(
        "{{\"type\":\"sent\",\"client_id\":\"{client_id}\",\"message_id\":{message_id},\"sent_at\":\"{sent_at}\"}}"
    )
    .into()
}

/// "`sender` is typing", in the conversation as the receiver names it.
pub(super) fn typing(conversation: Conversation, sender: Uid) -> Utf8Bytes {
    format!("{{\"type\":\"typing\",\"conversation\":\"{conversation}\",\"sender\":{sender}}}").into()
}

/// "Of those whom you watch, these are online, and the others are not."
pub(super) fn presence(online: &[Uid]) -> Utf8Bytes {
    let mut text = String::from("{\"type\":\"presence\",\"online\":[");
    for (at, uid) in online.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        put(&mut text, format_args!("{comma}{uid}"));
    }
    text.push_str("]}");
    text.into()
}

/// "It was refused", and which message that is about, where it is about one.
pub(super) fn error(problem: &Problem, client_id: Option<ClientId>) -> Utf8Bytes {
    let mut text = format!("{{\"type\":\"error\",\"code\":\"{}\",\"detail\":", problem.code);
    write_text(&mut text, &problem.detail);
    put(&mut text, format_args!(",\"retryable\":{}", problem.retryable));
    if let Some(client_id) = client_id {
        put(&mut text, format_args!(",\"client_id\":\"{client_id}\""));
    }
    text.push('}');
    text.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Fields that frames have, each with any value.
    fn objects() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just(json!("11111111-1111-4111-8111-111111111111")),
            Just(json!("u:10001")),
            Just(json!({"user": 10_001})),
            any::<String>().prop_map(Value::from),
            "[a-z]{0,5000}".prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
        ];
        let value = leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z_]{1,8}|text|user|group", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        let field =
            prop::sample::select(vec!["seq", "client_id", "to", "body", "conversation", "message_id", "of"]);
        let kind = prop_oneof![
            3 => prop::sample::select(vec!["heartbeat", "send", "read", "typing", "presence"]).prop_map(Value::from),
            1 => value.clone(),
        ];
        (kind, prop::collection::btree_map(field, value, 0..6)).prop_map(|(kind, fields)| {
            let mut object: serde_json::Map<_, _> =
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            object.insert("type".to_owned(), kind);
            Value::Object(object).to_string()
        })
    }

    /// What a stranger may send: any text, objects, and objects with a piece of text in their middle.
    fn texts() -> impl Strategy<Value = String> {
        let broken =
            (objects(), any::<prop::sample::Index>(), any::<String>()).prop_map(|(text, at, piece)| {
                let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
                let (before, after) = text.split_at(places[at.index(places.len())]);
                format!("{before}{piece}{after}")
            });
        prop_oneof![any::<String>(), objects(), broken]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_a_frame_or_refused_in_one_short_line(text in texts()) {
            if let Err(BadFrame { problem, client_id }) = parse(&text) {
                let frame = error(&problem, client_id);
                let frame: Value = serde_json::from_str(&frame).expect("what is answered is JSON");
                let detail = frame["detail"].as_str().expect("a text");
                prop_assert!(!detail.contains(char::is_control) && detail.chars().count() < 500, "{detail}");
            }
        }
    }

    #[test]
    fn a_refusal_that_repeats_the_clients_words_is_one_line() {
        let bad = parse("{\"type\":\"se\\n\\u2028\\u001bd\"}").expect_err("no such frame");
        assert_eq!(
            bad.problem.detail,
            "there is no frame `se   d`; /docs/websocket lists those that there are"
        );
    }

    fn refusal(text: &str) -> (&'static str, bool) {
        let bad = parse(text).expect_err(text);
        (bad.problem.code, bad.client_id.is_some())
    }

    #[test]
    fn heartbeats_of_any_size_are_read_and_unknown_fields_ignored() {
        for (text, seq) in [
            (r#"{"type":"heartbeat","seq":41}"#, 41),
            (r#"{ "seq" : 0, "mood": {"a": [1]}, "type" : "heartbeat" }"#, 0),
            (r#"{"type":"heartbeat","seq":18446744073709551615}"#, u64::MAX),
        ] {
            assert!(matches!(parse(text), Ok(ClientFrame::Heartbeat(n)) if n == seq), "{text}");
        }
    }

    #[test]
    fn frames_that_are_not_understood_are_refused_by_what_is_wrong() {
        const ID: &str = "11111111-1111-4111-8111-111111111111";
        for (text, code, named) in [
            (r#"{"type":"heartbeat","seq":-1}"#.to_owned(), "invalid_body", false),
            (r#"{"type":"heartbeat"}"#.to_owned(), "invalid_body", false),
            (r#"{"type":"heartbeat","seq":4"#.to_owned(), "malformed_json", false),
            (r#"[1]"#.to_owned(), "invalid_body", false),
            (r#"["heartbeat",41]"#.to_owned(), "invalid_body", false),
            (r#"{"seq":1}"#.to_owned(), "invalid_body", false),
            (r#"{"type":"humming","seq":"odd"}"#.to_owned(), "unknown_type", false),
            (r#"{"type":"typing","conversation":"u:x"}"#.to_owned(), "invalid_body", false),
            (r#"{"type":"presence","of":[-1]}"#.to_owned(), "invalid_body", false),
            (r#"{"type":"send","client_id":"x"}"#.to_owned(), "invalid_body", false),
            (format!(r#"{{"type":"send","client_id":"{ID}","body":{{"text":"hi"}}}}"#), "invalid_body", true),
            (
                format!(r#"{{"type":"send","client_id":"{ID}","to":{{}},"body":{{"text":"hi"}}}}"#),
                "invalid_body",
                true,
            ),
            (r#"{"type":"read","conversation":"7","message_id":1}"#.to_owned(), "invalid_body", false),
            (
                r#"{"type":"read","conversation":"g:7","message_id":9007199254740992}"#.to_owned(),
                "invalid_body",
                false,
            ),
        ] {
            assert_eq!(refusal(&text), (code, named), "{text}");
        }
    }

    #[test]
    fn an_error_frame_names_the_message_that_it_is_about() {
        let id = ClientId(Uuid::nil());
        let text = error(&Problem::invalid_body("a \"quote\""), Some(id));
        let frame: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(frame["type"], "error");
        assert_eq!(frame["detail"], "a \"quote\"");
        assert_eq!(frame["retryable"], false);
        assert_eq!(frame["client_id"], id.to_string());
    }
}
