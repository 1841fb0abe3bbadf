//! Oneself and others.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::json;
use crate::app::{Accounts, InboxSync, People};
use crate::domain::Uid;
use crate::http::error::Problem;
use crate::http::extract::{Params, Segment, Session};
use crate::http::state::Settings;

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
    /// The hue of the user's disc.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 359, nullable = false)]
    hue: Option<u16>,
    /// A line that the user says about himself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 120, nullable = false)]
    about: Option<String>,
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

/// What a name begins with.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Search {
    /// What the name begins with, whatever its case.
    #[param(example = "be")]
    name: String,
}

/// Find users whose name begins with something.
#[utoipa::path(
    get, path = "/api/v1/users", operation_id = "findUsers", tag = "People",
    params(Search),
    responses((status = 200, body = Vec<Person>, description = "By name, at most `[limits] search_results`")),
)]
pub(in crate::http) async fn find(
    State(accounts): State<Accounts>,
    State(settings): State<Arc<Settings>>,
    Session(_): Session,
    Params(Search { name }): Params<Search>,
) -> Result<Response, Problem> {
    let found = accounts.find(&name, settings.limits.search_results).await?;
    let people: Vec<Person> = found.into_iter().map(|(uid, name)| Person { uid: uid.0, name }).collect();
    Ok(json(StatusCode::OK, &people))
}

/// Get one user.
#[utoipa::path(
    get, path = "/api/v1/users/{uid}", operation_id = "user", tag = "People",
    params(("uid" = u32, Path, description = "The user's uid")),
    responses((status = 200, body = ShownPerson, description = "The user")),
    extensions(("x-codes" = json!(["unknown_user"]))),
)]
pub(in crate::http) async fn show(
    State(accounts): State<Accounts>,
    State(people): State<People>,
    Session(_): Session,
    Segment(uid): Segment<Uid>,
) -> Result<Response, Problem> {
    let name = accounts.name(uid).await?;
    let name = name.ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "unknown_user", format!("user {uid} does not exist"))
    })?;
    let profile = people.profile(uid).await?;
    let about = Some(profile.about).filter(|about| !about.is_empty());
    Ok(json(StatusCode::OK, &ShownPerson { uid: uid.0, name, hue: profile.hue, about }))
}
