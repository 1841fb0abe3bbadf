//! Moments: what friends share (S27).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::conversations::page_rows;
use super::messages::{NewAttachment, Sent, row};
use super::reading::Reads;
use super::settings::answer;
use crate::app::Moments;
use crate::domain::{ClientId, MessageId, Uid};
use crate::http::error::Problem;
use crate::http::extract::{Json, Params, Segment, Session};
use crate::http::limits::Rates;
use crate::http::openapi::refusals::writing;
use crate::http::proxy::Caller;
use crate::http::state::Settings;
use crate::http::wire::{EntryForm, put, weight, write_entries};
use crate::workers::aside;

/// A moment that the caller tells all friends.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewMoment {
    /// The idempotency key, a new one for each moment: the same again gets the first answer.
    client_id: Uuid,
    /// Without the character U+0000. It may be empty where there are files.
    #[schema(max_length = 8_000, example = "Low tide is at ten")]
    text: String,
    /// Files that the caller has uploaded to their end, each once.
    #[serde(default)]
    #[schema(max_items = 9)]
    files: Vec<NewAttachment>,
    /// Friends who are not told.
    #[serde(default)]
    #[schema(max_items = 5_000, example = json!([10_003]))]
    except: Vec<u32>,
}

/// Whether the caller likes a moment.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewLike {
    /// The idempotency key, a new one for each change: the same again gets the first answer.
    client_id: Uuid,
    /// `true`: from now on; `false`: no longer.
    liked: bool,
}

/// The caller's comment on a moment.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewComment {
    /// The idempotency key, a new one for each comment: the same again gets the first answer.
    client_id: Uuid,
    /// Without the character U+0000.
    #[schema(min_length = 1, max_length = 8_000, example = "Take boots")]
    text: String,
}

/// The idempotency key of a deletion.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Deletion {
    /// A new one for each deletion: the same again gets the first answer.
    client_id: Uuid,
}

/// Tell all friends something.
#[utoipa::path(
    post, path = "/api/v1/moments", operation_id = "postMoment", tag = "Moments",
    request_body = NewMoment,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(writing(["rate_limited", "client_id_reused", "unknown_file", "text_empty", "text_too_long", "text_nul"])))),
)]
pub(in crate::http) async fn post(
    State(moments): State<Moments>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Json(NewMoment { client_id, text, files, except }): Json<NewMoment>,
) -> Result<Response, Problem> {
    let files = NewAttachment::read(files)?;
    rates.send(session.uid, 1)?;
    let except: Vec<Uid> = except.into_iter().map(Uid).collect();
    answer(moments.post(session.uid, ClientId(client_id), &text, files, &except).await?)
}

/// Like a moment, or no longer.
#[utoipa::path(
    put, path = "/api/v1/moments/{message_id}/like", operation_id = "likeMoment", tag = "Moments",
    params(("message_id" = u64, Path, description = "The moment: its row in the caller's inbox")),
    request_body = NewLike,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(writing(["rate_limited", "client_id_reused", "unknown_moment", "blocked", "blocks"])))),
)]
pub(in crate::http) async fn like(
    State(moments): State<Moments>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segment(moment): Segment<u64>,
    Json(NewLike { client_id, liked }): Json<NewLike>,
) -> Result<Response, Problem> {
    rates.send(session.uid, 1)?;
    answer(moments.like(session.uid, ClientId(client_id), row(moment)?, liked).await?)
}

/// Comment on a moment.
#[utoipa::path(
    post, path = "/api/v1/moments/{message_id}/comments", operation_id = "comment", tag = "Moments",
    params(("message_id" = u64, Path, description = "The moment: its row in the caller's inbox")),
    request_body = NewComment,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(writing(["rate_limited", "client_id_reused", "unknown_moment", "blocked", "blocks", "text_empty", "text_too_long", "text_nul"])))),
)]
pub(in crate::http) async fn comment(
    State(moments): State<Moments>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segment(moment): Segment<u64>,
    Json(NewComment { client_id, text }): Json<NewComment>,
) -> Result<Response, Problem> {
    rates.send(session.uid, 1)?;
    answer(moments.comment(session.uid, ClientId(client_id), row(moment)?, &text).await?)
}

/// Delete one's own moment or comment, for everybody.
#[utoipa::path(
    post, path = "/api/v1/moments/{message_id}/delete", operation_id = "deleteMoment", tag = "Moments",
    params(("message_id" = u64, Path, description = "The moment or comment: its row in the caller's inbox")),
    request_body = Deletion,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(writing(["rate_limited", "client_id_reused", "unknown_moment", "not_yours"])))),
)]
pub(in crate::http) async fn delete(
    State(moments): State<Moments>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segment(moment): Segment<u64>,
    Json(Deletion { client_id }): Json<Deletion>,
) -> Result<Response, Problem> {
    rates.send(session.uid, 1)?;
    answer(moments.delete(session.uid, ClientId(client_id), row(moment)?).await?)
}

/// Which part of the feed.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct FeedQuery {
    /// Only rows with smaller ids.
    before: Option<u64>,
    /// The largest number of rows; more than 200 is taken as that.
    #[param(value_type = Option<u64>, minimum = 1, default = 50)]
    limit: Option<String>,
}

/// A page of the moments of friends, newest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct MomentsPage {
    /// Moments, likes, comments and deletions.
    #[schema(max_items = 200)]
    rows: Vec<EntryForm>,
    /// `before` for the next page; `null`: there is nothing older.
    #[schema(required)]
    next_before: Option<u64>,
    /// The read marker of the feed; 0: nothing is read.
    read_to: u64,
}

/// Get what friends share, newest first.
#[utoipa::path(
    get, path = "/api/v1/moments", operation_id = "moments", tag = "Moments",
    params(FeedQuery),
    responses((status = 200, body = MomentsPage, description = "A page")),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn feed(
    State(moments): State<Moments>,
    State(settings): State<Arc<Settings>>,
    State(reads): State<Reads>,
    caller: Caller,
    Session(session): Session,
    Params(FeedQuery { before, limit: asked }): Params<FeedQuery>,
) -> Result<Response, Problem> {
    let rows = page_rows(asked.as_deref(), settings.limits.page_rows)?;
    let reading = reads.begin(session.uid, caller, rows).await?;
    let feed = moments.feed(session.uid, before.and_then(MessageId::new), rows).await?;
    let write = || {
        let mut text = String::from("{\"rows\":");
        write_entries(&mut text, &feed.page.rows);
        text.push_str(",\"next_before\":");
        match feed.page.rows.last().filter(|_| feed.page.more) {
            Some(oldest) => put(&mut text, format_args!("{}", oldest.message_id)),
            None => text.push_str("null"),
        }
        put(&mut text, format_args!(",\"read_to\":{}}}", feed.read_to));
        text
    };
    let text = aside(weight(&feed.page.rows), write).await;
    reading.answer(text)
}
