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
use crate::http::api::amendments::{self, About};
use crate::http::api::messages::{NewMessage, row};
use crate::http::api::settings::{self, NewValue};
use crate::http::error::Problem;
use crate::http::object::from_text;
use crate::http::wire::{put, write_entries, write_text};

/// A frame of a client.
#[derive(Debug)]
pub(super) enum ClientFrame {
    /// "I have everything up to here"; any number, also beyond every row.
    Heartbeat(u64),
    /// A message to be sent, or something to be done to one.
    Send(Box<Request>),
    /// A read marker to be moved, or word of how far messages have come; and the subject that its refusal names.
    Mark(Request, Subject),
    /// The person is typing there.
    Typing(Conversation),
    /// The users that the device watches, to be told which are online.
    Watch(HashSet<Uid>),
}

/// The subject of a refusal, by which a client finds its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A message to be sent, or something to be done to one.
    Send(ClientId),
    /// A `read` or `seen`: its conversation, and up to which row.
    Mark(Conversation, MessageId),
}

/// A frame that is not understood, with what it may have been meant to do.
#[derive(Debug)]
pub(super) struct BadFrame {
    pub(super) problem: Problem,
    pub(super) about: Option<Subject>,
}

/// The type of a frame, and the one field of the commonest type.
#[derive(Deserialize)]
struct ClientFrameHead<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    seq: Option<&'a RawValue>,
}

/// How far another person's messages have come.
#[derive(Deserialize)]
struct SeenFrame {
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
    let refuse = |problem| BadFrame { problem, about: None };
    let head: ClientFrameHead<'_> = from_text(text).map_err(|error| refuse(Problem::from_json(&error)))?;
    match head.kind.as_ref() {
        "heartbeat" => match head.seq.map(|seq| seq.get().parse()) {
            Some(Ok(seq)) => Ok(ClientFrame::Heartbeat(seq)),
            _ => Err(refuse(Problem::invalid_body("a heartbeat needs `seq`, a whole number of 0 or more"))),
        },
        "send" => {
            let message = from_text(text).map_err(|error| Problem::from_json(&error));
            let message = message.and_then(NewMessage::outgoing).map(Request::Message);
            message.map(ClientFrame::from).map_err(|problem| named(text, problem))
        }
        "read" => read(text).map_err(|problem| marked(text, problem)),
        "seen" => seen(text).map_err(|problem| marked(text, problem)),
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
            if let Some(amend) = amendments::from_frame(kind, text) {
                return amend.map(ClientFrame::from).map_err(|problem| named(text, problem));
            }
            let kind: String = kind.chars().take(40).collect();
            let detail = format!("there is no frame `{kind}`; /docs/websocket lists all frames");
            Err(refuse(Problem { code: "unknown_type", ..Problem::invalid_body(detail) }))
        }
    }
}

/// Reads a frame that moves a read marker.
fn read(text: &str) -> Result<ClientFrame, Problem> {
    let About { conversation, message_id } = from_text(text).map_err(|error| Problem::from_json(&error))?;
    let (conversation, message_id) = (conversation.parse().map_err(Problem::invalid_body)?, row(message_id)?);
    let subject = Subject::Mark(conversation, message_id);
    Ok(ClientFrame::Mark(Request::Read { conversation, message_id }, subject))
}

/// Reads a frame that says how far another person's messages have come.
fn seen(text: &str) -> Result<ClientFrame, Problem> {
    let SeenFrame { conversation, message_id, state } =
        from_text(text).map_err(|error| Problem::from_json(&error))?;
    let conversation = conversation.parse().map_err(Problem::invalid_body)?;
    let Conversation::User(of) = conversation else {
        return Err(Problem::invalid_body("`seen` needs a conversation with one person, u:UID"));
    };
    let message_id = row(message_id)?;
    let subject = Subject::Mark(conversation, message_id);
    Ok(ClientFrame::Mark(Request::Seen { of, message_id, progress: state }, subject))
}

/// Reads a frame that sets a setting of a conversation.
fn setting(text: &str) -> Result<Request, Problem> {
    let frame: SettingFrame = from_text(text).map_err(|error| Problem::from_json(&error))?;
    let NewValue { client_id, value } = from_text(text).map_err(|error| Problem::from_json(&error))?;
    let conversation = frame.conversation.parse().map_err(Problem::invalid_body)?;
    let setting = settings::named(&frame.name, Some(conversation))?;
    Ok(People::setting(ClientId(client_id), setting, conversation, &value)?)
}

/// A refusal of what may be a message.
fn named(text: &str, problem: Problem) -> BadFrame {
    let named = from_text(text).ok();
    BadFrame { problem, about: named.map(|Named { client_id }| Subject::Send(ClientId(client_id))) }
}

/// A refusal of what may be a `read` or `seen`.
fn marked(text: &str, problem: Problem) -> BadFrame {
    let about = from_text(text).ok().and_then(|About { conversation, message_id }| {
        Some(Subject::Mark(conversation.parse().ok()?, MessageId::new(message_id)?))
    });
    BadFrame { problem, about }
}

impl From<Request> for ClientFrame {
    fn from(request: Request) -> ClientFrame {
        ClientFrame::Send(Box::new(request))
    }
}

/// The version of the protocol. It grows only when a client that follows the rules of the version before would go wrong; what such
/// a client skips, as fields and kinds that it does not know, changes nothing.
const VERSION: u32 = 1;

/// The first frame of a connection.
pub(super) fn welcome(
    uid: Uid,
    seq: MessageId,
    history: HistoryId,
    heartbeat_seconds: u32,
    keep_seconds: Option<u64>,
) -> Utf8Bytes {
    let mut text = format!(
        "{{\"type\":\"welcome\",\"version\":{VERSION},\"uid\":{uid},\"seq\":{seq},\"history\":\"{history}\",\
         \"heartbeat_seconds\":{heartbeat_seconds}"
    );
    if let Some(seconds) = keep_seconds {
        put(&mut text, format_args!(",\"keep_seconds\":{seconds}"));
    }
    text.push('}');
    text.into()
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

/// "What is seen of `uid` has changed."
pub(super) fn person(uid: Uid) -> Utf8Bytes {
    format!("{{\"type\":\"person\",\"uid\":{uid}}}").into()
}

/// "It was refused", and what that is about, where it is about something that has a name.
pub(super) fn error(problem: &Problem, about: Option<Subject>) -> Utf8Bytes {
    let mut text = format!("{{\"type\":\"error\",\"code\":\"{}\",\"detail\":", problem.code);
    write_text(&mut text, &problem.detail);
    put(&mut text, format_args!(",\"retryable\":{}", problem.retryable));
    if let Some(seconds) = problem.retry_after() {
        put(&mut text, format_args!(",\"retry_after\":{seconds}"));
    }
    match about {
        Some(Subject::Send(client_id)) => put(&mut text, format_args!(",\"client_id\":\"{client_id}\"")),
        Some(Subject::Mark(conversation, message_id)) => {
            let named = format_args!(",\"conversation\":\"{conversation}\",\"message_id\":{message_id}");
            put(&mut text, named);
        }
        None => {}
    }
    text.push('}');
    text.into()
}

#[cfg(test)]
mod tests;
