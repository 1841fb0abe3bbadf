//! The pages of invitations: the one that a guest opens, and the one on which a member makes a link. Plain forms, no
//! script.

use std::sync::Arc;

use axum::Form;
use axum::extract::{OriginalUri, Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;
use tidemark_web as web;

use super::api::groups::gid;
use super::error::Problem;
use super::extract::session;
use super::limits::Rates;
use super::proxy::Caller;
use super::state::HttpState;
use crate::app::{Groups, Invites};

const DAY: u32 = 24 * 60 * 60;

/// `GET /invites/{code}`: what the link leads to.
pub(super) async fn look(
    State(state): State<HttpState>,
    caller: Caller,
    Path(code): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Page> {
    let view = state.invites.look(&code).await?;
    let guest = match session(&headers, caller, &state).await? {
        Some(session) => Some(state.accounts.name(session.uid).await?.unwrap_or_default()),
        None => None,
    };
    let page =
        web::Invite { group: &view.group, from: &view.from.name, code: &code, guest: guest.as_deref() };
    Ok(Html(web::invite(&page)).into_response())
}

/// `POST /invites/{code}`: in, and on to the group.
pub(super) async fn join(
    State(state): State<HttpState>,
    caller: Caller,
    State(rates): State<Arc<Rates>>,
    State(invites): State<Invites>,
    Path(code): Path<String>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Page> {
    let Some(session) = session(&headers, caller, &state).await? else { return Ok(log_in(uri.path())) };
    rates.send(session.uid, 1)?;
    let gid = invites.accept(session.uid, &code).await?;
    Ok(Redirect::to(&format!("/c/g:{}", gid.0)).into_response())
}

/// `GET /groups/{gid}/invite`: for how long, for how many?
pub(super) async fn ask(
    State(state): State<HttpState>,
    caller: Caller,
    State(groups): State<Groups>,
    path: Path<String>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Page> {
    let Some(session) = session(&headers, caller, &state).await? else { return Ok(log_in(uri.path())) };
    let group = groups.get(session.uid, gid(&path)?).await.map_err(Problem::from)?;
    Ok(page(&state, &group.name, group.gid.0, None))
}

/// What the form says.
#[derive(Deserialize)]
pub(super) struct Terms {
    days: u32,
    uses: u32,
}

/// `POST /groups/{gid}/invite`: here is the link.
pub(super) async fn make(
    State(state): State<HttpState>,
    caller: Caller,
    path: Path<String>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    Form(Terms { days, uses }): Form<Terms>,
) -> Result<Response, Page> {
    let Some(session) = session(&headers, caller, &state).await? else { return Ok(log_in(uri.path())) };
    state.rates.send(session.uid, 1)?;
    let group = state.groups.get(session.uid, gid(&path)?).await.map_err(Problem::from)?;
    let seconds = days.saturating_mul(DAY);
    let made = state.invites.create(session.uid, group.gid, Some(seconds), Some(uses)).await?;
    let link = format!("{}/invites/{}", origin(&state, caller, &headers), made.code);
    Ok(page(&state, &group.name, group.gid.0, Some(&link)))
}

fn page(state: &HttpState, group: &str, gid: u64, link: Option<&str>) -> Response {
    let most_days = (state.settings.limits.invite_seconds / DAY).max(1);
    let most_uses = state.settings.limits.invite_uses;
    let (days, uses) = (most_days.min(7), most_uses.min(10));
    let page = web::NewInvite { group, gid, link, most_days, most_uses, days, uses };
    Html(web::new_invite(&page)).into_response()
}

fn log_in(next: &str) -> Response {
    Redirect::to(&format!("/login?next={next}")).into_response()
}

/// Where this server is for the one who asks.
fn origin(state: &HttpState, caller: Caller, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let scheme = if caller.https { "https" } else { "http" };
    state.settings.public_origin.clone().unwrap_or_else(|| format!("{scheme}://{host}"))
}

/// A refusal, as people read it.
pub(super) struct Page(Problem);

impl<E: Into<Problem>> From<E> for Page {
    fn from(error: E) -> Page {
        Page(error.into())
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let Page(problem) = self;
        let title = problem.status.canonical_reason().unwrap_or("Refused");
        let status = problem.status.as_u16();
        (problem.status, Html(web::failure(&web::Failure { status, title, detail: &problem.detail })))
            .into_response()
    }
}
