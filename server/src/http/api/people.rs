//! Oneself and others.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::json;
use crate::app::{self, Accounts, InboxSync, People};
use crate::domain::{FileId, LastSeen, Uid};
use crate::http::error::Problem;
use crate::http::extract::{Json, Params, Segment, Session};
use crate::http::limits::Rates;
use crate::http::state::{HttpState, Settings};

/// A user.
#[derive(Serialize, ToSchema)]
pub(super) struct Person {
    #[schema(example = 10_002)]
    pub(super) uid: u32,
    pub(super) name: String,
}

/// A user with what others see of that one.
#[derive(Serialize, ToSchema)]
struct ShownPerson {
    #[schema(example = 10_002)]
    uid: u32,
    name: String,
    /// Whether the account is deleted: what it sent can still be read, and nothing can be sent to it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    /// The hue of the user's disc.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 359, nullable = false)]
    hue: Option<u16>,
    /// A line that the user says about himself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 120, nullable = false)]
    about: Option<String>,
    /// The user's picture, at `/files/pictures/u:{uid}/{picture}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>, nullable = false)]
    picture: Option<FileId>,
}

/// The caller.
#[derive(Serialize, ToSchema)]
struct Me {
    uid: u32,
    name: String,
    /// The caller's latest committed id.
    seq: u64,
    /// Names one unbroken life of the data: when it changes, a client forgets what it has and starts over.
    #[schema(format = Uuid)]
    history: String,
}

/// Get oneself, and how far one's inbox goes.
#[utoipa::path(
    get, path = "/api/v1/me", operation_id = "me", tag = "People",
    responses((status = 200, body = Me, description = "Oneself")),
)]
pub(in crate::http) async fn me(
    State(accounts): State<Accounts>,
    State(sync): State<InboxSync>,
    Session(session): Session,
) -> Result<Response, Problem> {
    let name = accounts.name(session.uid).await?.ok_or_else(Problem::unauthorized)?;
    let seq = sync.watermark(session.uid).await?.latest().get();
    Ok(json(StatusCode::OK, &Me { uid: session.uid.0, name, seq, history: sync.history().to_string() }))
}

/// Another name.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewName {
    /// As of a new account.
    #[schema(min_length = 1, max_length = 40, example = "Ada Lovelace")]
    name: String,
}

/// Change one's name.
///
/// Once a week, by the rules of signing up. From then on the account logs in by the new name, and others are shown it: connections that
/// watch the caller get a frame `person`. For a week nobody else can take the old name, or one that looks like it.
#[utoipa::path(
    put, path = "/api/v1/me/name", operation_id = "rename", tag = "People",
    request_body = NewName,
    responses((status = 200, body = Person, description = "The caller, with the new name")),
    extensions(("x-codes" = json!(["rate_limited", "unavailable", "bad_name", "name_taken", "name_resembles", "renamed_lately"]))),
)]
pub(in crate::http) async fn rename(
    State(state): State<HttpState>,
    Session(session): Session,
    Json(NewName { name }): Json<NewName>,
) -> Result<Response, Problem> {
    state.rates.send(session.uid, 1)?;
    let name = state.accounts.rename_own(session.uid, &name).await?;
    state.ephemerals.renamed(session.uid);
    Ok(json(StatusCode::OK, &Person { uid: session.uid.0, name }))
}

/// People of one request for profiles.
const PROFILES: usize = 100;

impl From<app::ShownPerson> for ShownPerson {
    fn from(app::ShownPerson { uid, name, profile, picture, is_deleted }: app::ShownPerson) -> ShownPerson {
        let about = Some(profile.about).filter(|about| !about.is_empty());
        ShownPerson { uid: uid.0, name, deleted: is_deleted, hue: profile.hue, about, picture }
    }
}

/// Which part of a name.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Search {
    /// Two characters or more that stand next to each other in the name, or the whole name, whatever their case.
    #[param(example = "be")]
    name: String,
}

/// Find users by a part of their name, or by the whole one.
#[utoipa::path(
    get, path = "/api/v1/users", operation_id = "findUsers", tag = "People",
    params(Search),
    responses((status = 200, body = Vec<ShownPerson>, description = "At most 20: first the person with that name, then those \
        whose name begins with it, then the others, each by name. People who are found only by their whole name \
        (`found_by` of the setting `privacy`) are found by friends, too")),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn find(
    State(people): State<People>,
    State(rates): State<Arc<Rates>>,
    State(settings): State<Arc<Settings>>,
    Session(session): Session,
    Params(Search { name }): Params<Search>,
) -> Result<Response, Problem> {
    rates.search(session.uid)?;
    let found = people.find(session.uid, &name, settings.limits.search_results).await?;
    let uids: Vec<Uid> = found.into_iter().map(|(uid, _)| uid).collect();
    let shown: Vec<ShownPerson> = people.shown(&uids).await?.into_iter().map(ShownPerson::from).collect();
    Ok(json(StatusCode::OK, &shown))
}

/// Get one user.
#[utoipa::path(
    get, path = "/api/v1/users/{uid}", operation_id = "user", tag = "People",
    params(("uid" = u32, Path, description = "The user's uid")),
    responses((status = 200, body = ShownPerson, description = "The user")),
    extensions(("x-codes" = json!(["unknown_user", "rate_limited"]))),
)]
pub(in crate::http) async fn show(
    State(people): State<People>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segment(uid): Segment<Uid>,
) -> Result<Response, Problem> {
    rates.look_up(session.uid, 1)?;
    let shown = people.shown(&[uid]).await?.pop();
    let shown = shown.ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "unknown_user", format!("user {uid} does not exist"))
    })?;
    Ok(json(StatusCode::OK, &ShownPerson::from(shown)))
}

/// When a user was online last.
#[derive(Serialize, ToSchema)]
struct SeenLast {
    /// A time, to the minute, within the last 24 hours; before that the date alone, in UTC. `null`: it is not known, or not shown to the
    /// caller.
    #[schema(example = "2026-11-21T11:43:00Z")]
    last_seen: Option<String>,
}

/// Ask when a user was online last.
///
/// It is shown to friends, and to people to whom the user has written, but not where one of the two has blocked the other, or hides it
/// (`last_seen` and `presence` of the setting `privacy`).
#[utoipa::path(
    get, path = "/api/v1/users/{uid}/last-seen", operation_id = "lastSeen", tag = "People",
    params(("uid" = u32, Path, description = "The user's uid")),
    responses((status = 200, body = SeenLast, description = "When, or `null`")),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn last_seen(
    State(state): State<HttpState>,
    Session(session): Session,
    Segment(uid): Segment<Uid>,
) -> Result<Response, Problem> {
    state.rates.look_up(session.uid, 1)?;
    let last_seen = state.ephemerals.last_seen(session.uid, uid).await?.map(LastSeen::to_text);
    Ok(json(StatusCode::OK, &SeenLast { last_seen }))
}

/// Which people.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct PeopleQuery {
    /// Uids with commas between them, at most 100.
    #[param(example = "10001,10002")]
    uids: String,
}

/// Get what is seen of several users.
#[utoipa::path(
    get, path = "/api/v1/profiles", operation_id = "profiles", tag = "People",
    params(PeopleQuery),
    responses((status = 200, body = Vec<ShownPerson>, description = "The users that exist, in the order of the request")),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn profiles(
    State(people): State<People>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Params(PeopleQuery { uids }): Params<PeopleQuery>,
) -> Result<Response, Problem> {
    let uids: Result<Vec<Uid>, _> = uids.split(',').take(PROFILES + 1).map(str::parse).collect();
    let uids = uids.ok().filter(|uids| uids.len() <= PROFILES).ok_or_else(|| {
        Problem::invalid_query(format!("uids must be at most {PROFILES} numbers, with commas between them"))
    })?;
    rates.look_up(session.uid, uids.len())?;
    let shown: Vec<ShownPerson> = people.shown(&uids).await?.into_iter().map(ShownPerson::from).collect();
    Ok(json(StatusCode::OK, &shown))
}
