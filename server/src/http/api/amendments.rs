//! Changes to a message after it was sent: edits, recalls, reactions, pins, stars and deletions. The WebSocket takes the same, as frames.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::messages::{Sent, row};
use super::settings::answer;
use crate::app::Messages;
use crate::app::messages::{Amend, Request};
use crate::domain::{Amendment, ClientId, Conversation, MessageId, Uid};
use crate::http::error::Problem;
use crate::http::extract::{Json, Segments, Session};
use crate::http::limits::Rates;
use crate::http::object::{from_text, object};
use crate::http::openapi::refusals::sending;

/// A new text of one's own message.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Edit {
    /// The idempotency key, a new one for each edit: the same again gets the first answer.
    client_id: Uuid,
    /// The body of the message from now on.
    #[serde(deserialize_with = "object")]
    body: EditedText,
}

/// The body of an edit.
#[derive(Deserialize, ToSchema)]
struct EditedText {
    /// Without the character U+0000. It may be empty where the message has files.
    #[schema(max_length = 8_000, example = "Low tide is at ten")]
    text: String,
}

/// A message is taken back.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Recall {
    /// The idempotency key, a new one for each recall: the same again gets the first answer.
    client_id: Uuid,
}

/// The caller's own copy of a message is deleted.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Delete {
    /// The idempotency key, a new one for each deletion: the same again gets the first answer.
    client_id: Uuid,
}

/// The caller's reaction to a message.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Reaction {
    /// The idempotency key, a new one for each reaction: the same again gets the first answer.
    client_id: Uuid,
    /// All of the caller's emoji on this message from now on, each one as people see it; empty: none.
    #[schema(max_items = 6, example = json!(["👍"]))]
    emoji: Vec<String>,
}

/// A message is pinned for everybody in the conversation, or no longer.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Pin {
    /// The idempotency key, a new one for each time: the same again gets the first answer.
    client_id: Uuid,
    /// Whether it is pinned from now on.
    pinned: bool,
}

/// The caller wants to find a message again, or no longer.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Star {
    /// The idempotency key, a new one for each time: the same again gets the first answer.
    client_id: Uuid,
    /// Whether it is starred from now on.
    starred: bool,
}

/// A request to amend a message, before it is known which one.
trait Amending: for<'de> Deserialize<'de> {
    /// The idempotency key, and the amendment of the caller's `copy`.
    fn amendment(self, copy: MessageId) -> (Uuid, Amendment);

    fn amend(self, conversation: Conversation, message_id: MessageId) -> Amend {
        let (client_id, amendment) = self.amendment(message_id);
        Amend { client_id: ClientId(client_id), conversation, message_id, amendment }
    }
}

impl Amending for Edit {
    fn amendment(self, _: MessageId) -> (Uuid, Amendment) {
        (self.client_id, Amendment::Edit(self.body.text))
    }
}

impl Amending for Recall {
    fn amendment(self, _: MessageId) -> (Uuid, Amendment) {
        (self.client_id, Amendment::Recall)
    }
}

impl Amending for Delete {
    fn amendment(self, _: MessageId) -> (Uuid, Amendment) {
        (self.client_id, Amendment::Delete)
    }
}

impl Amending for Reaction {
    fn amendment(self, _: MessageId) -> (Uuid, Amendment) {
        (self.client_id, Amendment::reaction(&self.emoji))
    }
}

impl Amending for Pin {
    fn amendment(self, _: MessageId) -> (Uuid, Amendment) {
        (self.client_id, Amendment::Pin(self.pinned))
    }
}

impl Amending for Star {
    fn amendment(self, copy: MessageId) -> (Uuid, Amendment) {
        (self.client_id, Amendment::Star { copy, starred: self.starred })
    }
}

/// A row of the caller's inbox, in a frame: the message that is amended, or the last one that was read.
#[derive(Deserialize)]
pub(in crate::http) struct About {
    pub(in crate::http) conversation: String,
    pub(in crate::http) message_id: u64,
}

/// Reads the frame `text` of the WebSocket, if its type `kind` is that of an amendment.
pub(in crate::http) fn from_frame(kind: &str, text: &str) -> Option<Result<Request, Problem>> {
    fn read<A: Amending>(text: &str) -> Result<Request, Problem> {
        let amending: A = from_text(text).map_err(|error| Problem::from_json(&error))?;
        let About { conversation, message_id } =
            from_text(text).map_err(|error| Problem::from_json(&error))?;
        let conversation = conversation.parse().map_err(Problem::invalid_body)?;
        Ok(Request::Amend(amending.amend(conversation, row(message_id)?)))
    }
    Some(match kind {
        "edit" => read::<Edit>(text),
        "recall" => read::<Recall>(text),
        "reaction" => read::<Reaction>(text),
        "delete" => read::<Delete>(text),
        "pin" => read::<Pin>(text),
        "star" => read::<Star>(text),
        _ => return None,
    })
}

/// Edit one's own message.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/messages/{message_id}/edit", operation_id = "edit", tag = "Messages",
    params(
        ("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`"),
        ("message_id" = u64, Path, description = "The caller's own copy"),
    ),
    request_body = Edit,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(sending(["rate_limited", "not_in_conversation", "no_message", "recalled", "not_yours", "too_late"])))),
)]
pub(in crate::http) async fn edit(
    State(messages): State<Messages>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(address): Segments<(String, u64)>,
    Json(edit): Json<Edit>,
) -> Result<Response, Problem> {
    amend(&messages, &rates, session.uid, address, edit).await
}

/// Take one's own message back; in a group, as its owner or administrator, any message.
///
/// The sender may for a time (`[messages] recall_seconds`), the owner and administrators at any time. All see who took it back.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/messages/{message_id}/recall", operation_id = "recall", tag = "Messages",
    params(
        ("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`"),
        ("message_id" = u64, Path, description = "The caller's own copy"),
    ),
    request_body = Recall,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(sending(["rate_limited", "not_in_conversation", "no_message", "recalled", "not_yours", "too_late"])))),
)]
pub(in crate::http) async fn recall(
    State(messages): State<Messages>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(address): Segments<(String, u64)>,
    Json(recall): Json<Recall>,
) -> Result<Response, Problem> {
    amend(&messages, &rates, session.uid, address, recall).await
}

/// Delete a message for oneself alone.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/messages/{message_id}/delete", operation_id = "delete", tag = "Messages",
    params(
        ("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`"),
        ("message_id" = u64, Path, description = "The caller's own copy"),
    ),
    request_body = Delete,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(sending(["rate_limited", "not_in_conversation", "no_message"])))),
)]
pub(in crate::http) async fn delete(
    State(messages): State<Messages>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(address): Segments<(String, u64)>,
    Json(delete): Json<Delete>,
) -> Result<Response, Problem> {
    amend(&messages, &rates, session.uid, address, delete).await
}

/// React to a message.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/messages/{message_id}/reaction", operation_id = "react", tag = "Messages",
    params(
        ("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`"),
        ("message_id" = u64, Path, description = "The caller's own copy"),
    ),
    request_body = Reaction,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(sending(["rate_limited", "not_in_conversation", "no_message", "recalled", "emoji"])))),
)]
pub(in crate::http) async fn react(
    State(messages): State<Messages>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(address): Segments<(String, u64)>,
    Json(reaction): Json<Reaction>,
) -> Result<Response, Problem> {
    amend(&messages, &rates, session.uid, address, reaction).await
}

/// Pin a message for everybody in the conversation, or unpin it.
///
/// Either of two people may, and the owner and administrators of a group.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/messages/{message_id}/pin", operation_id = "pin", tag = "Messages",
    params(
        ("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`"),
        ("message_id" = u64, Path, description = "The caller's own copy"),
    ),
    request_body = Pin,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(sending(["rate_limited", "not_in_conversation", "no_message", "recalled", "administrators_only", "too_many_pins"])))),
)]
pub(in crate::http) async fn pin(
    State(messages): State<Messages>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(address): Segments<(String, u64)>,
    Json(pin): Json<Pin>,
) -> Result<Response, Problem> {
    amend(&messages, &rates, session.uid, address, pin).await
}

/// Star a message for oneself alone, on all one's devices, or take its star away.
///
/// Each message by itself: devices that star different messages while they are offline do not undo each other's stars. A star is
/// also taken from what was taken back or deleted.
#[utoipa::path(
    post, path = "/api/v1/conversations/{id}/messages/{message_id}/star", operation_id = "star", tag = "Messages",
    params(
        ("id" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`"),
        ("message_id" = u64, Path, description = "The caller's own copy"),
    ),
    request_body = Star,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(sending(["rate_limited", "not_in_conversation", "no_message", "recalled", "too_many_stars"])))),
)]
pub(in crate::http) async fn star(
    State(messages): State<Messages>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(address): Segments<(String, u64)>,
    Json(star): Json<Star>,
) -> Result<Response, Problem> {
    amend(&messages, &rates, session.uid, address, star).await
}

async fn amend(
    messages: &Messages,
    rates: &Rates,
    uid: Uid,
    (conversation, message_id): (String, u64),
    amending: impl Amending,
) -> Result<Response, Problem> {
    let refuse = |error| Problem::invalid_query(format!("{conversation}: {error}"));
    let amend = amending.amend(conversation.parse().map_err(refuse)?, row(message_id)?);
    rates.send(uid, 1)?;
    answer(messages.amend(uid, amend).await?)
}
