//! Invitations into groups: making a link, following it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::groups::gid;
use super::json;
use crate::app::Invites;
use crate::http::error::Problem;
use crate::http::extract::{Json, Segments, Session};
use crate::http::limits::Rates;

/// How long the link is good, and for how many.
#[derive(Deserialize)]
pub(in crate::http) struct Terms {
    expires_in_seconds: Option<u32>,
    uses: Option<u32>,
}

#[derive(Serialize)]
struct Made<'a> {
    code: &'a str,
    path: String,
    expires_at: String,
    uses: u32,
}

#[derive(Serialize)]
struct Joined {
    gid: u64,
}

/// `POST /groups/{gid}/invites`
pub(in crate::http) async fn create(
    State(invites): State<Invites>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<String>,
    Json(Terms { expires_in_seconds, uses }): Json<Terms>,
) -> Result<Response, Problem> {
    let gid = gid(&path)?;
    rates.send(session.uid, 1)?;
    let made = invites.create(session.uid, gid, expires_in_seconds, uses).await?;
    let answer = Made {
        code: &made.code,
        path: format!("/invites/{}", made.code),
        expires_at: made.expires_at.to_rfc3339(),
        uses: made.uses,
    };
    Ok(json(StatusCode::CREATED, &answer))
}

/// `POST /invites/{code}`
pub(in crate::http) async fn accept(
    State(invites): State<Invites>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(code): Segments<String>,
) -> Result<Response, Problem> {
    rates.send(session.uid, 1)?;
    let gid = invites.accept(session.uid, &code).await?;
    Ok(json(StatusCode::OK, &Joined { gid: gid.0 }))
}
