//! Sending, one at a time or many at once.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::json;
use crate::app::messages::{OutgoingMessage, Request, SendAck};
use crate::app::{Attachments, Messages};
use crate::domain::{
    Attached, ClientId, FileId, MOST_FILES, MOST_MENTIONS, Mentions, MessageId, SaidOfFile, Uid,
};
use crate::http::BATCH;
use crate::http::error::{Document, Problem};
use crate::http::extract::{Json, Session};
use crate::http::limits::Rates;
use crate::http::object::{from_text, object, optional_object};
use crate::http::openapi::refusals::sending;
use crate::http::wire::{MentionsForm, To, ToForm};
use crate::telemetry::Metrics;

/// A message as clients write it.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewMessage {
    /// The idempotency key, a new one for each message: the same again gets the first answer.
    client_id: Uuid,
    /// The receiver.
    #[serde(deserialize_with = "object")]
    #[schema(value_type = ToForm)]
    to: To,
    /// The content.
    #[serde(deserialize_with = "object")]
    body: NewText,
}

/// The body of a message that is sent.
#[derive(Deserialize, ToSchema)]
struct NewText {
    /// Without the character U+0000. It may be empty where there are files.
    #[schema(max_length = 8_000, example = "Low tide is at nine")]
    text: String,
    /// Files that the sender has uploaded to their end, each once. A message that forwards another one has the files of that.
    #[serde(default)]
    #[schema(max_items = 9)]
    files: Vec<NewAttachment>,
    /// The message that this one replies to: the id of its row in the sender's own inbox, of the same conversation.
    #[schema(nullable = false, example = 40)]
    reply_to: Option<u64>,
    /// The message that this one forwards: the id of its row in the sender's own inbox, of any conversation. It has this text.
    #[schema(nullable = false, example = 40)]
    forward: Option<u64>,
    /// Mentions, in a group.
    #[serde(default, deserialize_with = "optional_object")]
    #[schema(nullable = false, value_type = Option<MentionsForm>)]
    mentions: Option<NewMentions>,
}

/// A file of a message or a moment. Its name, size, type and previews are known to the server.
#[derive(Deserialize, ToSchema)]
pub(super) struct NewAttachment {
    /// The last part of the address of the upload.
    id: Uuid,
    /// The width of a film, in pixels; the server knows that of a picture.
    #[schema(nullable = false, minimum = 1, maximum = 65_535)]
    width: Option<u32>,
    /// The height, likewise.
    #[schema(nullable = false, minimum = 1, maximum = 65_535)]
    height: Option<u32>,
    /// How long it plays, in milliseconds.
    #[schema(nullable = false, maximum = 360_000_000)]
    duration_ms: Option<u64>,
    /// The heights of a recording over its time, as Base64 of up to 100 bytes.
    #[schema(nullable = false, max_length = 136, example = "AAgQGCA=")]
    waveform: Option<String>,
}

impl NewAttachment {
    /// The files of one message or moment.
    pub(super) fn read(files: Vec<NewAttachment>) -> Result<Vec<Attached>, Problem> {
        if files.len() > MOST_FILES {
            let detail = format!("a message has at most {MOST_FILES} files; this one has {}", files.len());
            return Err(Problem::invalid_body(detail));
        }
        let mut read: Vec<Attached> = Vec::with_capacity(files.len());
        for NewAttachment { id, width, height, duration_ms, waveform } in files {
            let said = SaidOfFile { sides: width.zip(height), duration_ms, waveform };
            let (id, is_once) = (FileId(id), read.iter().all(|other| other.id.0 != id));
            if !said.is_good() || !is_once {
                let detail = "a file is named once; its sides have 1 to 65,535 pixels, it plays for at most 100 hours, and its \
                              waveform has at most 136 characters of Base64";
                return Err(Problem::invalid_body(detail));
            }
            read.push(Attached::said(id, said));
        }
        Ok(read)
    }
}

/// Mentions of a message. Users that are not members are dropped when it is accepted.
#[derive(Deserialize)]
struct NewMentions {
    #[serde(default)]
    users: Vec<u32>,
    #[serde(default)]
    all: bool,
}

impl NewMentions {
    fn read(self) -> Result<Mentions, Problem> {
        if self.users.len() > MOST_MENTIONS {
            let named = self.users.len();
            let detail = format!("a message mentions at most {MOST_MENTIONS} people; this one has {named}");
            return Err(Problem::invalid_body(detail));
        }
        Ok(Mentions { users: self.users.into_iter().map(Uid).collect(), all: self.all })
    }
}

impl NewMessage {
    pub(in crate::http) fn outgoing(self) -> Result<OutgoingMessage, Problem> {
        let NewText { text, files, reply_to, forward, mentions } = self.body;
        let reply_to = reply_to.map(row).transpose()?;
        let forward = forward.map(row).transpose()?;
        let mentions = mentions.map(NewMentions::read).transpose()?.unwrap_or_default();
        let files = NewAttachment::read(files)?;
        if forward.is_some() && !files.is_empty() {
            return Err(Problem::invalid_body(
                "a message that forwards another one has the files of that; name none",
            ));
        }
        let (client_id, to) = (ClientId(self.client_id), self.to.conversation()?);
        Ok(OutgoingMessage { client_id, to, text, reply_to, forward, files, mentions })
    }
}

/// The id of a row, from an address or a frame.
pub(in crate::http) fn row(message_id: u64) -> Result<MessageId, Problem> {
    MessageId::new(message_id)
        .ok_or_else(|| Problem::invalid_body("message_id is larger than the id of any row"))
}

/// It survives a power cut.
#[derive(Serialize, ToSchema)]
pub(super) struct Sent {
    /// The id of the sender's own copy.
    #[schema(minimum = 1, example = 41)]
    message_id: u64,
    /// When it was accepted, in UTC.
    #[schema(format = DateTime, example = "2026-11-22T06:41:08.236Z")]
    sent_at: String,
}

impl From<SendAck> for Sent {
    fn from(ack: SendAck) -> Sent {
        Sent { message_id: ack.message_id.get(), sent_at: ack.sent_at.to_rfc3339() }
    }
}

/// Send a message.
#[utoipa::path(
    post, path = "/api/v1/messages", operation_id = "send", tag = "Messages",
    request_body = NewMessage,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was sent before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(sending(["rate_limited", "not_in_conversation", "no_message", "recalled", "other_text", "unknown_file"])))),
)]
pub(in crate::http) async fn send(
    State(messages): State<Messages>,
    State(attachments): State<Attachments>,
    State(rates): State<Arc<Rates>>,
    State(metrics): State<Arc<Metrics>>,
    Session(session): Session,
    Json(message): Json<NewMessage>,
) -> Result<Response, Problem> {
    let mut message = message.outgoing()?;
    rates.send(session.uid, 1)?;
    let began = Instant::now();
    attachments.attach_to(session.uid, &mut message).await?;
    let ack = messages.submit(session.uid, message).await?;
    metrics.send_seconds.observe(began.elapsed().as_secs_f64());
    if !ack.repeated {
        metrics.messages_http.inc();
    }
    let status = if ack.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json(status, &Sent::from(ack)))
}

/// Messages to be sent in this order.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Batch {
    /// In the order in which they are to be accepted. One that is malformed is refused by itself.
    #[schema(value_type = Vec<NewMessage>, min_items = 1)]
    messages: Vec<Box<RawValue>>,
}

/// The results of a batch.
#[derive(Serialize, ToSchema)]
struct Results<'a> {
    /// One for each message, in their order.
    results: Vec<Outcome<'a>>,
}

/// The result of one message of a batch.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Outcome<'a> {
    Sent(Sent),
    /// It was refused.
    Refused {
        error: Document<'a>,
    },
}

/// Send many messages, in order.
///
/// Each message succeeds or fails by itself, but none overtakes an earlier one: when one is refused for the moment, those behind it are
/// refused with `out_of_order`. Send again from the first refused one on.
#[utoipa::path(
    post, path = "/api/v1/messages/batch", operation_id = "sendBatch", tag = "Messages",
    request_body = Batch,
    responses((status = 200, body = Results<'_>, description = "One result for each message, in their order")),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn send_batch(
    State(messages): State<Messages>,
    State(attachments): State<Attachments>,
    State(rates): State<Arc<Rates>>,
    State(metrics): State<Arc<Metrics>>,
    Session(session): Session,
    Json(Batch { messages: batch }): Json<Batch>,
) -> Result<Response, Problem> {
    if batch.is_empty() || batch.len() > BATCH {
        return Err(Problem::invalid_body(format!(
            "a batch has 1 to {BATCH} messages; this one has {}",
            batch.len()
        )));
    }
    rates.send(session.uid, batch.len())?;
    let began = Instant::now();
    // All are submitted before the first answer is awaited, so they share commits and keep their order: what comes behind one that
    // is refused for the moment is refused, too.
    let pipeline = messages.pipeline();
    let read = |raw: &RawValue| -> Result<OutgoingMessage, Problem> {
        let message: NewMessage = from_text(raw.get()).map_err(|error| Problem::from_json(&error))?;
        message.outgoing()
    };
    let mut submitted = Vec::with_capacity(batch.len());
    for raw in &batch {
        let mut message = match read(raw) {
            Ok(message) => message,
            Err(problem) => {
                submitted.push(Err(problem));
                continue;
            }
        };
        submitted.push(match attachments.attach_to(session.uid, &mut message).await {
            Ok(()) => Ok(messages.submit_in(&pipeline, session.uid, Request::Message(message))),
            Err(error) => {
                pipeline.refuse(message.client_id);
                Err(Problem::from(error))
            }
        });
    }
    let answers = join_all(submitted.into_iter().map(async |submitted| Ok(submitted?.await?))).await;
    metrics.send_seconds.observe(began.elapsed().as_secs_f64());
    let answers: Vec<Result<SendAck, Problem>> = answers;
    let new = answers.iter().flatten().filter(|ack| !ack.repeated).count();
    metrics.messages_http.inc_by(new as u64);
    let results = answers
        .iter()
        .map(|answer| match answer {
            Ok(ack) => Outcome::Sent(Sent::from(*ack)),
            Err(problem) => Outcome::Refused { error: problem.document() },
        })
        .collect();
    Ok(json(StatusCode::OK, &Results { results }))
}
