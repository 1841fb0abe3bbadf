//! Invitations into groups: making a link, following it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::groups::{GroupNumber, gid};
use super::json;
use crate::app::Invites;
use crate::http::error::Problem;
use crate::http::extract::{Json, Segments, Session};
use crate::http::limits::Rates;
use crate::http::openapi::refusals::writing;

/// How long the link is good, and for how many.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Terms {
    /// A week where it is not given, as far as `[limits] invite_seconds` allows.
    #[schema(minimum = 60, maximum = 2_592_000)]
    expires_in_seconds: Option<u32>,
    /// How many may come in by it: ten where it is not given, as far as `[limits] invite_uses` allows.
    #[schema(minimum = 1, maximum = 1_000)]
    uses: Option<u32>,
}

/// An invitation. It ends when its maker leaves the group, too.
#[derive(Serialize, ToSchema)]
struct Invite<'a> {
    /// What stands in the link.
    code: &'a str,
    /// The page of this server on which a guest is asked to come in.
    #[schema(pattern = "^/invites/")]
    path: String,
    /// From when on nobody comes in by it, in UTC.
    #[schema(format = DateTime)]
    expires_at: String,
    /// How many may come in by it.
    #[schema(minimum = 1)]
    uses: u32,
}

/// Make an invitation, by which people come in without being taken in by name.
#[utoipa::path(
    post, path = "/api/v1/groups/{gid}/invites", operation_id = "makeInvite", tag = "Groups",
    params(("gid" = u64, Path, description = "The group's number")),
    request_body = Terms,
    responses((status = 201, body = Invite<'_>, description = "Made")),
    extensions(("x-codes" = json!(["rate_limited", "unknown_group", "bad_terms"]))),
)]
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
    let answer = Invite {
        code: &made.code,
        path: format!("/invites/{}", made.code),
        expires_at: made.expires_at.to_rfc3339(),
        uses: made.uses,
    };
    Ok(json(StatusCode::CREATED, &answer))
}

/// Come in by an invitation.
///
/// Who is in already gets the same answer, and takes no use.
#[utoipa::path(
    post, path = "/api/v1/invites/{code}", operation_id = "acceptInvite", tag = "Groups",
    params(("code" = String, Path, max_length = 65, description = "As it stands in the link")),
    responses((status = 200, body = GroupNumber, description = "In")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "unknown_invite", "expired_invite", "used_up_invite", "banned", "removed_since", "group_full",
        "group_changed",
    ])))),
)]
pub(in crate::http) async fn accept(
    State(invites): State<Invites>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(code): Segments<String>,
) -> Result<Response, Problem> {
    rates.send(session.uid, 1)?;
    let gid = invites.accept(session.uid, &code).await?;
    Ok(json(StatusCode::OK, &GroupNumber { gid: gid.0 }))
}
