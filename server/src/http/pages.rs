//! Pages for people and the files that belong to them; what they look like is crate `web`'s.

use axum::extract::{OriginalUri, Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;
use tidemark_web as web;

use super::cookies::SESSION;
use super::error::Problem;
use super::extract::{Params, session};
use super::proxy::Caller;
use super::state::HttpState;
use super::{API, language};
use crate::app::SignUp;

/// Of a body in that format.
const GZIP: [(header::HeaderName, &str); 1] = [(header::CONTENT_ENCODING, "gzip")];

/// The chat, or the way to the log-in card and back.
pub(super) async fn shell(
    State(state): State<HttpState>,
    caller: Caller,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Response {
    let language = language::read_by(&headers);
    let shown = async {
        let Some(session) = session(&headers, caller, &state).await? else {
            return Ok(to_log_in(&uri, &headers));
        };
        let chosen = language::chosen_by(session.uid, &headers, &state.people).await?;
        let language = chosen.unwrap_or(language);
        let name = state.accounts.name(session.uid).await?.unwrap_or_default();
        let made_at = state.accounts.made_at(session.uid).await?.map_or(0, |at| at.0);
        let view = web::Shell {
            uid: session.uid.0.into(),
            name: &name,
            account: &format!("{}-{made_at}", session.uid),
            text_characters: state.settings.limits.text_characters,
            invites: state.settings.sign_up == SignUp::Invitation,
            chosen,
        };
        let page = web::shell(&view, language);
        // It is no secret, and holds nothing that a stranger chose.
        Ok(match takes_gzip(&headers) {
            true => (GZIP, Html(web::gzip(page.as_bytes()))).into_response(),
            false => Html(page).into_response(),
        })
    };
    shown.await.unwrap_or_else(|problem| failure(&problem, language))
}

/// The way to the log-in card and back to `uri`; the card tells a browser whose session has ended.
pub(super) fn to_log_in(uri: &Uri, headers: &HeaderMap) -> Response {
    let ended = has_token(headers).then(|| "ended=yes".to_owned());
    let next = Some(uri.path()).filter(|path| *path != "/").map(|path| format!("next={path}"));
    let query: Vec<String> = ended.into_iter().chain(next).collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    Redirect::to(&format!("/login{query}")).into_response()
}

/// Whether a browser brings the token of a session, live or not.
fn has_token(headers: &HeaderMap) -> bool {
    SESSION.any(headers).is_some_and(|token| !token.is_empty())
}

/// The query of the cards.
#[derive(Deserialize)]
pub(super) struct CardQuery {
    /// Where to go afterwards.
    #[serde(default)]
    next: String,
    /// Whether the session that was there has ended.
    ended: Option<String>,
    /// The code in the link of an invitation to sign up.
    #[serde(default)]
    invite: String,
}

/// The card with which one logs in; for those who are logged in, the way on.
pub(super) async fn log_in(
    state: State<HttpState>,
    caller: Caller,
    wanted: Params<CardQuery>,
    headers: HeaderMap,
) -> Response {
    card(web::CardPurpose::LogIn, state, caller, wanted, headers).await
}

/// The card with which one creates an account.
pub(super) async fn sign_up(
    state: State<HttpState>,
    caller: Caller,
    wanted: Params<CardQuery>,
    headers: HeaderMap,
) -> Response {
    card(web::CardPurpose::SignUp, state, caller, wanted, headers).await
}

/// The card with which one sets another password with a recovery code.
pub(super) async fn recover(
    state: State<HttpState>,
    caller: Caller,
    wanted: Params<CardQuery>,
    headers: HeaderMap,
) -> Response {
    card(web::CardPurpose::Recover, state, caller, wanted, headers).await
}

async fn card(
    way: web::CardPurpose,
    State(state): State<HttpState>,
    caller: Caller,
    Params(CardQuery { next, ended, invite }): Params<CardQuery>,
    headers: HeaderMap,
) -> Response {
    // Only an address of ours: `//evil` and the like would lead away.
    let is_page = ["/moments", "/contacts", "/admin", "/admin/audit"].contains(&next.as_str());
    let next = if is_page
        || next.starts_with("/c/")
        || next.starts_with("/invites/")
        || next.starts_with("/groups/")
    {
        next.as_str()
    } else {
        "/"
    };
    let language = language::read_by(&headers);
    match session(&headers, caller, &state).await {
        Ok(Some(_)) => Redirect::to(next).into_response(),
        Ok(None) => {
            let is_code = invite.len() <= 64 && invite.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let invite = if is_code { invite.as_str() } else { "" };
            let sign_up = match state.settings.sign_up {
                SignUp::Open => web::SignUp::Open,
                SignUp::Invitation if !invite.is_empty() => web::SignUp::Invited,
                SignUp::Invitation => web::SignUp::ByInvitation,
                SignUp::Closed => web::SignUp::Closed,
            };
            let view = web::SignIn { way, next, sign_up, invite, has_ended: ended.is_some() };
            let mut response = Html(web::sign_in(&view, language)).into_response();
            // Here and not on the way: a page, its service worker and other tabs may go that way at once, and whoever shows
            // the card must still know why.
            if has_token(&headers) {
                for cookie in SESSION.clear(state.settings.is_secure(caller)) {
                    response.headers_mut().append(header::SET_COOKIE, cookie);
                }
            }
            response
        }
        Err(problem) => failure(&problem, language),
    }
}

/// A refusal, as people read it.
pub(super) fn failure(problem: &Problem, language: web::Language) -> Response {
    let view = web::PageFailure { status: problem.status.as_u16(), code: problem.code };
    (problem.status, Html(web::failure(&view, language))).into_response()
}

/// A static file; under its own hash it never changes. Compressed for who takes that, as the chat is. Other pages and answers are not:
/// their length would tell about secrets beside what a stranger chose (BREACH).
pub(super) async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = web::asset(&path) else { return page_not_found(&headers) };
    let cache = if asset.immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let about = [
        (header::CONTENT_TYPE, asset.content_type),
        (header::CACHE_CONTROL, cache),
        (header::VARY, "accept-encoding"),
    ];
    match takes_gzip(&headers) {
        true => (about, GZIP, asset.gzip).into_response(),
        false => (about, asset.bytes).into_response(),
    }
}

/// The service worker: opens the chat without the server. Another version has other bytes, for which browsers ask.
pub(super) async fn service_worker() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], web::service_worker())
}

/// The manifest: makes the chat installable.
pub(super) async fn manifest() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/manifest+json")], web::manifest())
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
pub(super) async fn not_found(uri: Uri, headers: HeaderMap) -> Response {
    if uri.path().starts_with(API) {
        return Problem::not_found("there is no such call; /docs lists all calls").into_response();
    }
    page_not_found(&headers)
}

pub(super) fn page_not_found(headers: &HeaderMap) -> Response {
    (StatusCode::NOT_FOUND, Html(web::not_found(language::read_by(headers)))).into_response()
}
