//! Friends and friend requests.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::json;
use super::messages::Sent;
use super::settings::answer;
use crate::app::People;
use crate::domain::{ClientId, Uid};
use crate::http::error::Problem;
use crate::http::extract::{Json, Params, Segment, Session};
use crate::http::limits::Rates;
use crate::http::openapi::refusals::writing;

/// People of a page.
const PAGE: usize = 500;

/// Whether the caller wants to be somebody's friend.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Wish {
    /// The idempotency key, a new one for each change: the same again gets the first answer.
    client_id: Uuid,
    /// `true` asks, or accepts where the other one has asked; `false` takes that back, declines, or ends it.
    wanted: bool,
    /// A greeting for the other one.
    #[schema(max_length = 200, nullable = false)]
    text: Option<String>,
}

/// How the caller stands with another user. They are friends when both want it.
#[derive(Serialize, ToSchema)]
struct FriendLine {
    #[schema(example = 10_002)]
    uid: u32,
    name: String,
    /// Whether that user's account is deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    /// Whether the caller wants it.
    mine: bool,
    /// Whether the other one wants it.
    theirs: bool,
    /// Whether the caller has declined what the other one wants.
    declined: bool,
    /// The other one's greeting.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    text: Option<String>,
    /// When that last changed, in UTC.
    #[schema(format = DateTime)]
    changed_at: String,
}

/// Which part of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct After {
    /// `next_after` of the page before.
    after: Option<u32>,
}

/// People whom the caller asked, who asked the caller, and friends.
#[derive(Serialize, ToSchema)]
struct FriendsPage {
    /// In the order of their uids as texts.
    friends: Vec<FriendLine>,
    /// `after` for the next page; `null`: there is nothing more.
    #[schema(required)]
    next_after: Option<u32>,
}

/// Ask somebody to be a friend, accept, decline, or end it.
#[utoipa::path(
    put, path = "/api/v1/friends/{uid}", operation_id = "befriend", tag = "People",
    params(("uid" = u32, Path, description = "The other user")),
    request_body = Wish,
    responses(
        (status = 201, body = Sent, description = "Accepted: it survives a power cut"),
        (status = 200, body = Sent, description = "It was accepted before under this `client_id`: the first answer"),
    ),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "client_id_reused", "unknown_user", "blocked", "blocks", "greeting_too_long", "too_many_friends",
    ])))),
)]
pub(in crate::http) async fn befriend(
    State(people): State<People>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segment(uid): Segment<u32>,
    Json(Wish { client_id, wanted, text }): Json<Wish>,
) -> Result<Response, Problem> {
    rates.send(session.uid, 1)?;
    answer(people.befriend(session.uid, ClientId(client_id), Uid(uid), wanted, text.as_deref()).await?)
}

/// Get the caller's friends, and the requests that are open.
#[utoipa::path(
    get, path = "/api/v1/friends", operation_id = "friends", tag = "People",
    params(After),
    responses((status = 200, body = FriendsPage, description = "At most 500 of them, without people with whom no friendship or request is left")),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn list(
    State(people): State<People>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Params(After { after }): Params<After>,
) -> Result<Response, Problem> {
    rates.may_read(session.uid).map_err(Problem::rate_limited)?;
    let mut friends = people.friends(session.uid, after.map(Uid), PAGE + 1).await?;
    let more = friends.len() > PAGE;
    friends.truncate(PAGE);
    let next_after = friends.last().filter(|_| more).map(|last| last.uid.0);
    let wanted = friends.into_iter().filter(|friend| friend.friendship.mine || friend.friendship.theirs);
    let friends = wanted.map(|friend| FriendLine {
        uid: friend.uid.0,
        name: friend.name,
        deleted: friend.is_deleted,
        mine: friend.friendship.mine,
        theirs: friend.friendship.theirs,
        declined: friend.declined,
        text: friend.greeting,
        changed_at: friend.changed_at.to_rfc3339(),
    });
    let page = FriendsPage { friends: friends.collect(), next_after };
    rates.has_read(session.uid, page.friends.len() * 128);
    Ok(json(StatusCode::OK, &page))
}
