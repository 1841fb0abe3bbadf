//! Invitations into groups: making a link, following it; those that are open, and revoking one.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::groups::{GroupNumber, KEY, gid};
use super::json;
use super::people::Person;
use super::range::limit;
use crate::app::Invites;
use crate::http::error::Problem;
use crate::http::extract::{IdempotencyKey, Json, Params, Segments, Session};
use crate::http::limits::Rates;
use crate::http::openapi::refusals::writing;

/// Invitations of a page.
const PAGE: usize = 100;

/// How long the link is good, and for how many.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Terms {
    /// A week where it is not given; at most 30 days.
    #[schema(minimum = 60)]
    expires_in_seconds: Option<u32>,
    /// How many may come in by it: ten where it is not given.
    #[schema(minimum = 1)]
    uses: Option<u32>,
}

/// An invitation. It ends when its maker leaves the group, too.
#[derive(Serialize, ToSchema)]
struct Invite<'a> {
    /// The code in the link.
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

/// Make an invitation, by which people come in without being taken in by name. Any member may.
///
/// A repetition with the same `Idempotency-Key` makes no second one and gets the same answer, as long as the first one is kept: until
/// some time after it ended.
#[utoipa::path(
    post, path = "/api/v1/groups/{gid}/invites", operation_id = "makeInvite", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("Idempotency-Key" = Option<uuid::Uuid>, Header, description = KEY),
    ),
    request_body = Terms,
    responses((status = 201, body = Invite<'_>, description = "Made")),
    extensions(("x-codes" = json!(["rate_limited", "unknown_group", "bad_terms", "client_id_reused"]))),
)]
pub(in crate::http) async fn create(
    State(invites): State<Invites>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<String>,
    IdempotencyKey(key): IdempotencyKey,
    Json(Terms { expires_in_seconds, uses }): Json<Terms>,
) -> Result<Response, Problem> {
    let gid = gid(&path)?;
    rates.send(session.uid, 1)?;
    let made = invites.create(session.uid, gid, expires_in_seconds, uses, key).await?;
    let answer = Invite {
        code: &made.code,
        path: format!("/invites/{}", made.code),
        expires_at: made.expires_at.to_rfc3339(),
        uses: made.uses,
    };
    Ok(json(StatusCode::CREATED, &answer))
}

/// An invitation by which somebody can come in.
#[derive(Serialize, ToSchema)]
struct OpenInvite {
    /// The code in the link.
    code: String,
    /// The page of this server on which a guest is asked to come in.
    #[schema(pattern = "^/invites/")]
    path: String,
    /// The member that made it.
    made_by: Person,
    /// When, in UTC.
    #[schema(format = DateTime)]
    made_at: String,
    /// From when on nobody comes in by it, in UTC.
    #[schema(format = DateTime)]
    expires_at: String,
    /// How many may come in by it in all.
    #[schema(minimum = 1)]
    uses: u32,
    /// How many may still come in by it.
    #[schema(minimum = 1)]
    uses_left: u32,
}

/// Invitations, oldest first.
#[derive(Serialize, ToSchema)]
struct InvitePage {
    /// Those by which somebody can come in.
    #[schema(max_items = 100)]
    invites: Vec<OpenInvite>,
    /// `after` for the next page; `null`: there are no more.
    #[schema(required)]
    next: Option<String>,
}

/// Which part of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Paging {
    /// Only what comes after this: `next` of the page before.
    after: Option<String>,
    /// At most so many; more than 100 is taken as that.
    #[param(value_type = Option<u64>, minimum = 1, default = 100)]
    limit: Option<String>,
}

/// List the invitations by which somebody can come in: all for the owner and administrators, one's own for members.
#[utoipa::path(
    get, path = "/api/v1/groups/{gid}/invites", operation_id = "invites", tag = "Groups",
    params(("gid" = u64, Path, description = "The group's number"), Paging),
    responses((status = 200, body = InvitePage, description = "A page")),
    extensions(("x-codes" = json!(["unknown_group", "unknown_invite"]))),
)]
pub(in crate::http) async fn list(
    State(invites): State<Invites>,
    Session(session): Session,
    Segments(path): Segments<String>,
    Params(Paging { after, limit: asked }): Params<Paging>,
) -> Result<Response, Problem> {
    let limit = match asked.as_deref().map(limit).transpose()? {
        Some(0) => return Err(Problem::invalid_query("limit must be a whole number of 1 or more")),
        asked => asked.map_or(PAGE, |asked| asked.min(PAGE)),
    };
    let (open, next) = invites.open_ones(session.uid, gid(&path)?, after.as_deref(), limit).await?;
    let open = open.into_iter().map(|invite| OpenInvite {
        path: format!("/invites/{}", invite.code),
        code: invite.code,
        made_by: Person { uid: invite.made_by.uid.0, name: invite.made_by.name },
        made_at: invite.made_at.to_rfc3339(),
        expires_at: invite.expires_at.to_rfc3339(),
        uses: invite.uses,
        uses_left: invite.uses_left,
    });
    Ok(json(StatusCode::OK, &InvitePage { invites: open.collect(), next }))
}

/// Revoke an invitation: nobody comes in by it any more. Its maker may, and the owner and administrators of the group.
#[utoipa::path(
    delete, path = "/api/v1/groups/{gid}/invites/{code}", operation_id = "revokeInvite", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("code" = String, Path, max_length = 65, description = "The code in the link"),
    ),
    responses((status = 204, description = "It has ended")),
    extensions(("x-codes" = json!(["rate_limited", "unknown_group", "unknown_invite", "administrators_only"]))),
)]
pub(in crate::http) async fn revoke(
    State(invites): State<Invites>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments((group, code)): Segments<(String, String)>,
) -> Result<Response, Problem> {
    let gid = gid(&group)?;
    rates.send(session.uid, 1)?;
    invites.revoke(session.uid, gid, &code).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Come in by an invitation.
///
/// A member of the group gets the same answer, and takes no use.
#[utoipa::path(
    post, path = "/api/v1/invites/{code}", operation_id = "acceptInvite", tag = "Groups",
    params(("code" = String, Path, max_length = 65, description = "The code in the link")),
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
