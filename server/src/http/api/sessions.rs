//! The list of the account's sessions, and the end of one that is lost or not known.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::accounts::goodbye;
use super::json;
use crate::app::{Accounts, OpenSession, SessionId};
use crate::http::error::Problem;
use crate::http::extract::{Json, Segment, Session};
use crate::http::proxy::Caller;
use crate::http::state::Settings;

/// A session of the account: a device that is logged in.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
struct Listed {
    /// For `DELETE /sessions/{id}`; nobody logs in with it.
    #[schema(pattern = "^[0-9a-f]{32}$", example = "b94d27b9934d3e08a52e52d7da7dabfa")]
    id: String,
    /// The device's name: from its `User-Agent`, until its owner sets another (`PUT /sessions/{id}`). Empty where nothing is known.
    #[schema(max_length = 60, example = "Firefox on Linux")]
    name: String,
    /// When it was begun, in UTC.
    #[schema(format = DateTime, example = "2026-11-22T06:41:08.236Z")]
    created_at: String,
    /// When it ends by itself, in UTC.
    #[schema(format = DateTime, example = "2027-02-20T06:41:08.236Z")]
    expires_at: String,
    /// Whether it is the one that asks.
    current: bool,
}

/// List the sessions of the account.
#[utoipa::path(
    get, path = "/api/v1/sessions", operation_id = "sessions", tag = "Accounts",
    responses((
        status = 200, body = Vec<Listed>, description = "Newest first, at most 100",
    )),
)]
pub(in crate::http) async fn list(
    State(accounts): State<Accounts>,
    State(settings): State<Arc<Settings>>,
    Session(session): Session,
) -> Result<Response, Problem> {
    let open = accounts.sessions(&session, settings.limits.listed_sessions).await?;
    let listed =
        open.into_iter().map(|OpenSession { id, created_at, expires_at, is_current, label }| Listed {
            id: id.to_string(),
            name: label,
            created_at: created_at.to_rfc3339(),
            expires_at: expires_at.to_rfc3339(),
            current: is_current,
        });
    Ok(json(StatusCode::OK, &listed.collect::<Vec<_>>()))
}

/// A new name for a device.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Label {
    /// Visible characters.
    #[schema(min_length = 1, max_length = 60, example = "My phone")]
    name: String,
}

/// Call the device of a session something else.
#[utoipa::path(
    put, path = "/api/v1/sessions/{id}", operation_id = "nameSession", tag = "Accounts",
    params(("id" = String, Path, description = "The session's `id` in the list", pattern = "^[0-9a-fA-F]{32}$")),
    request_body = Label,
    responses((status = 204, description = "Named")),
    extensions(("x-codes" = json!(["unknown_session", "bad_device_name"]))),
)]
pub(in crate::http) async fn rename(
    State(accounts): State<Accounts>,
    Session(session): Session,
    Segment(id): Segment<SessionId>,
    Json(Label { name }): Json<Label>,
) -> Result<StatusCode, Problem> {
    match accounts.label_session(session.uid, id, &name).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(unknown(id)),
    }
}

fn unknown(id: SessionId) -> Problem {
    let detail = format!("the account has no session {id}; `GET /sessions` lists those that it has");
    Problem::new(StatusCode::NOT_FOUND, "unknown_session", detail)
}

/// End one session of the account.
///
/// Its WebSockets close with 4401.
#[utoipa::path(
    delete, path = "/api/v1/sessions/{id}", operation_id = "endSession", tag = "Accounts",
    params(("id" = String, Path, description = "The session's `id` in the list", pattern = "^[0-9a-fA-F]{32}$")),
    responses((status = 204, description = "Ended")),
    extensions(("x-codes" = json!(["unknown_session"]))),
)]
pub(in crate::http) async fn end(
    State(accounts): State<Accounts>,
    State(settings): State<Arc<Settings>>,
    caller: Caller,
    Session(session): Session,
    Segment(id): Segment<SessionId>,
) -> Result<Response, Problem> {
    if !accounts.end_session(session.uid, id).await? {
        return Err(unknown(id));
    }
    match id == session.id() {
        true => Ok(goodbye(caller, &settings)),
        false => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}
