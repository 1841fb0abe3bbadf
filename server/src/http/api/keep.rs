//! For how long messages of two people are kept. That of a group is one of its settings (`groups`).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::messages::Sent;
use super::reading::Reads;
use super::settings::{After, PAGE, answer, page};
use crate::app::People;
use crate::domain::{ClientId, Conversation, Keep, LEAST_KEEP, LONGEST_KEEP};
use crate::http::error::Problem;
use crate::http::extract::{Json, Params, Segment, Session};
use crate::http::limits::Rates;
use crate::http::openapi::refusals::writing;
use crate::http::proxy::Caller;

/// For how long messages are kept from now on.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewKeep {
    /// The idempotency key, a new one for each change: the same again gets the first answer.
    client_id: Uuid,
    /// Seconds, at least 60; 0: for good.
    #[schema(maximum = 31_536_000, example = 604_800)]
    keep_seconds: u32,
}

/// Refuses a time that is too short or too long.
pub(super) fn checked(seconds: u32) -> Result<u32, Problem> {
    let refusal = || format!("`keep_seconds` is 0, or {LEAST_KEEP} to {LONGEST_KEEP}");
    Keep::is_offered(seconds).then_some(seconds).ok_or_else(|| Problem::invalid_body(refusal()))
}

/// Keep the messages with another user for a time, from now on.
///
/// What is older is removed for both of them. Either may choose. For a group, see `describeGroup`.
#[utoipa::path(
    put, path = "/api/v1/conversations/{id}/keep", operation_id = "keep", tag = "Settings",
    params(("id" = String, Path, pattern = "^u:[0-9]+$", description = "`u:UID`")),
    request_body = NewKeep,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "client_id_reused", "unknown_user", "no_conversation", "blocked", "blocks", "friends_only",
    ])))),
)]
pub(in crate::http) async fn set(
    State(people): State<People>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segment(conversation): Segment<String>,
    Json(NewKeep { client_id, keep_seconds }): Json<NewKeep>,
) -> Result<Response, Problem> {
    let refuse = |error| Problem::invalid_query(format!("{conversation}: {error}"));
    let other = match conversation.parse().map_err(refuse)? {
        Conversation::User(other) if other.0 > 0 => other,
        Conversation::User(_) => return Err(Problem::invalid_query("u:0 has no settings")),
        Conversation::Group(gid) => {
            return Err(Problem::invalid_query(format!(
                "the time of a group is set with PATCH /api/v1/groups/{gid}"
            )));
        }
    };
    let seconds = checked(keep_seconds)?;
    rates.send(session.uid, 1)?;
    answer(people.keep(session.uid, ClientId(client_id), other, seconds).await?)
}

/// What was said about for how long messages are kept.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct KeepsPage {
    /// Rows with `keep` in their bodies: of the kind `keep`, and of changes of groups. Of one conversation, the one that was sent last counts.
    rows: Vec<crate::http::wire::EntryForm>,
    /// `after` for the next page; `null`: there is nothing more.
    #[schema(required)]
    next_after: Option<String>,
}

/// Get for how long messages of the caller's conversations are kept, where that was ever said.
///
/// A device asks for them when it is new; after that it follows their rows.
#[utoipa::path(
    get, path = "/api/v1/keeps", operation_id = "keeps", tag = "Settings",
    params(After),
    responses((status = 200, body = KeepsPage, description = "At most 500 rows")),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn list(
    State(people): State<People>,
    State(reads): State<Reads>,
    caller: Caller,
    Session(session): Session,
    Params(After { after }): Params<After>,
) -> Result<Response, Problem> {
    let reading = reads.begin(session.uid, caller, PAGE).await?;
    reading.answer(page(people.keeps(session.uid, &after, PAGE + 1).await?))
}
