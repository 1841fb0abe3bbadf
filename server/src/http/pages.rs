//! Pages for people and the files that belong to them; what they look like is crate `web`'s.

use axum::extract::{OriginalUri, Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;
use tidemark_web as web;

use super::error::Problem;
use super::extract::{Params, session};
use super::proxy::Caller;
use super::state::HttpState;
use super::{API, extract};

/// The chat, or the way to the log-in card and back.
pub(super) async fn shell(
    State(state): State<HttpState>,
    caller: Caller,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some(session) = session(&headers, caller, &state).await? else {
        let next = match uri.path() {
            "/" => String::new(),
            path => format!("?next={path}"),
        };
        return Ok(Redirect::to(&format!("/login{next}")).into_response());
    };
    let name = state.accounts.name(session.uid).await?.unwrap_or_default();
    let text_limit = state.settings.limits.text_characters;
    Ok(Html(web::shell(&web::Shell { uid: session.uid.0.into(), name: &name, text_limit })).into_response())
}

/// Where to go after logging in.
#[derive(Deserialize)]
pub(super) struct Next {
    #[serde(default)]
    next: String,
}

/// The log-in card; for those who are logged in, the way on.
pub(super) async fn sign_in(
    State(state): State<HttpState>,
    caller: Caller,
    Params(Next { next }): Params<Next>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // Only an address of ours: `//evil` and the like would lead away.
    let next = if next.starts_with("/c/") || next.starts_with("/invites/") || next.starts_with("/groups/") {
        next.as_str()
    } else {
        "/"
    };
    if extract::session(&headers, caller, &state).await?.is_some() {
        return Ok(Redirect::to(next).into_response());
    }
    Ok(Html(web::sign_in(&web::SignIn { next, offers_sign_up: state.settings.sign_up_is_open }))
        .into_response())
}

/// A static file; under its own hash it never changes. Compressed for who takes that. Pages and answers are not: their length would
/// tell about secrets beside what a stranger chose (BREACH).
pub(super) async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = web::asset(&path) else { return page_not_found() };
    let cache = if asset.immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let about = [
        (header::CONTENT_TYPE, asset.content_type),
        (header::CACHE_CONTROL, cache),
        (header::VARY, "accept-encoding"),
    ];
    match takes_gzip(&headers) {
        true => (about, [(header::CONTENT_ENCODING, "gzip")], asset.gzip).into_response(),
        false => (about, asset.bytes).into_response(),
    }
}

/// Whether `accept-encoding` names gzip, and not with a weight of zero (RFC 9110, 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        named && weight.is_none_or(|weight| weight.parse().is_ok_and(|weight: f32| weight > 0.0))
    })
}

/// Any other address.
pub(super) async fn not_found(uri: Uri) -> Response {
    if uri.path().starts_with(API) {
        return Problem::not_found("there is no such call; /docs lists all").into_response();
    }
    page_not_found()
}

fn page_not_found() -> Response {
    (StatusCode::NOT_FOUND, Html(web::not_found())).into_response()
}
