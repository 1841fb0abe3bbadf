//! Oneself and others.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::json;
use crate::app::{Accounts, InboxSync};
use crate::domain::Uid;
use crate::http::error::Problem;
use crate::http::extract::{Params, Segment, Session};
use crate::http::state::Settings;

#[derive(Serialize)]
pub(super) struct Person {
    pub(super) uid: u32,
    pub(super) name: String,
}

#[derive(Serialize)]
struct Me {
    uid: u32,
    name: String,
    seq: u64,
    history: String,
}

/// `GET /me`
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
#[derive(Deserialize)]
pub(in crate::http) struct Search {
    name: String,
}

/// `GET /users?name=P`
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

/// `GET /users/{uid}`
pub(in crate::http) async fn show(
    State(accounts): State<Accounts>,
    Session(_): Session,
    Segment(uid): Segment<Uid>,
) -> Result<Response, Problem> {
    let name = accounts.name(uid).await?;
    let name = name.ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "unknown_user", format!("there is no user {uid}"))
    })?;
    Ok(json(StatusCode::OK, &Person { uid: uid.0, name }))
}
