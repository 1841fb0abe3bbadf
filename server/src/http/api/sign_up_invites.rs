//! Invitations to make an account, where not everybody may: making a link; those that are open, and ending one.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::groups::KEY;
use super::json;
use crate::app::{Accounts, NewSignUpInvite, OpenSignUpInvite, SessionId};
use crate::http::error::Problem;
use crate::http::extract::{IdempotencyKey, Json, Segment, Session};
use crate::http::state::HttpState;

/// How long the link is good, and for how many.
#[derive(Deserialize, ToSchema)]
#[schema(as = SignUpTerms)]
pub(in crate::http) struct Terms {
    /// A week where it is not given; at most 30 days.
    #[schema(minimum = 60)]
    expires_in_seconds: Option<u32>,
    /// How many accounts can be created with it: one where it is not given; at most `[accounts] sign_ups_per_invite`.
    #[schema(minimum = 1, maximum = 10)]
    uses: Option<u32>,
}

/// An invitation just made.
#[derive(Serialize, ToSchema)]
#[schema(as = SignUpInvite)]
struct Made<'a> {
    /// For `DELETE /sign-up-invites/{id}`; nobody makes an account with it.
    #[schema(pattern = "^[0-9a-f]{32}$", example = "b94d27b9934d3e08a52e52d7da7dabfa")]
    id: String,
    /// For `invite` of `POST /accounts`; shown this once.
    code: &'a str,
    /// The page of this server on which an account is made by it. `&next=/c/u:UID` leads on to a conversation.
    #[schema(pattern = "^/sign-up[?]invite=")]
    path: String,
    /// From when on no account is made by it, in UTC.
    #[schema(format = DateTime)]
    expires_at: String,
    /// How many accounts can be created with it.
    #[schema(minimum = 1)]
    uses: u32,
}

/// Invite people to make an account.
///
/// Needed where `[accounts] sign_up` is `invitation`. An account has at most 5 that are open.
///
/// A repetition with the same `Idempotency-Key` makes no second one and gets the same answer, as long as the first one is kept: until it
/// is ended, or some time after it is over.
#[utoipa::path(
    post, path = "/api/v1/sign-up-invites", operation_id = "inviteToSignUp", tag = "Accounts",
    params(("Idempotency-Key" = Option<uuid::Uuid>, Header, description = KEY)),
    request_body = Terms,
    responses((status = 201, body = Made<'_>, description = "Made")),
    extensions(("x-codes" = json!([
        "rate_limited", "sign_up_closed", "bad_terms", "too_many_invites", "client_id_reused",
    ]))),
)]
pub(in crate::http) async fn create(
    State(state): State<HttpState>,
    Session(session): Session,
    IdempotencyKey(key): IdempotencyKey,
    Json(Terms { expires_in_seconds, uses }): Json<Terms>,
) -> Result<Response, Problem> {
    state.rates.send(session.uid, 1)?;
    let key = key.map(|key| (key, &state.ids));
    let made = state.accounts.invite(Some(session.uid), expires_in_seconds, uses, key).await?;
    let NewSignUpInvite { code, id, expires_at, uses } = made;
    let answer = Made {
        id: id.to_string(),
        code: code.as_str(),
        path: format!("/sign-up?invite={}", code.as_str()),
        expires_at: expires_at.to_rfc3339(),
        uses,
    };
    Ok(json(StatusCode::CREATED, &answer))
}

/// An invitation by which somebody can make an account.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenSignUpInvite)]
struct Open {
    /// For `DELETE /sign-up-invites/{id}`.
    #[schema(pattern = "^[0-9a-f]{32}$", example = "b94d27b9934d3e08a52e52d7da7dabfa")]
    id: String,
    /// When it was made, in UTC.
    #[schema(format = DateTime)]
    made_at: String,
    /// From when on no account is made by it, in UTC.
    #[schema(format = DateTime)]
    expires_at: String,
    /// How many accounts can be created with it in all.
    #[schema(minimum = 1)]
    uses: u32,
    /// How many may still be made by it.
    uses_left: u32,
}

/// List one's own invitations by which somebody can make an account.
#[utoipa::path(
    get, path = "/api/v1/sign-up-invites", operation_id = "signUpInvites", tag = "Accounts",
    responses((status = 200, body = Vec<Open>, description = "The first to expire come first")),
)]
pub(in crate::http) async fn list(
    State(accounts): State<Accounts>,
    Session(session): Session,
) -> Result<Response, Problem> {
    let open = accounts.open_invites(Some(session.uid)).await?;
    let open = open.into_iter().map(|OpenSignUpInvite { id, invite }| Open {
        id: id.to_string(),
        made_at: invite.made_at.to_rfc3339(),
        expires_at: invite.expires_at.to_rfc3339(),
        uses: invite.uses,
        uses_left: invite.uses_left,
    });
    Ok(json(StatusCode::OK, &open.collect::<Vec<_>>()))
}

/// End an invitation of one's own.
#[utoipa::path(
    delete, path = "/api/v1/sign-up-invites/{id}", operation_id = "endSignUpInvite", tag = "Accounts",
    params(("id" = String, Path, description = "The invitation's `id`", pattern = "^[0-9a-fA-F]{32}$")),
    responses((status = 204, description = "It has ended")),
    extensions(("x-codes" = json!(["unknown_invite"]))),
)]
pub(in crate::http) async fn end(
    State(accounts): State<Accounts>,
    Session(session): Session,
    Segment(id): Segment<SessionId>,
) -> Result<Response, Problem> {
    match accounts.end_sign_up_invite(Some(session.uid), id).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => {
            let detail =
                format!("you have no open invitation {id}; `GET /sign-up-invites` lists those that you have");
            Err(Problem::new(StatusCode::NOT_FOUND, "unknown_invite", detail))
        }
    }
}
