//! The context of every request: its id, its time limit, and the headers that keep browsers strict.

use std::any::Any;
use std::borrow::Cow;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument as _;

use super::error::{Problem, REQUEST_ID, REQUEST_ID_HEADER};
use super::extract::caller;
use super::files::tus;
use super::origin;
use super::refusals;
use super::state::HttpState;
use crate::workers::watched;

/// Nothing runs in a page but what this server serves.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    media-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// How long a browser remembers that this server is to be asked by HTTPS.
const YEAR: &str = "max-age=31536000";

/// Headers of every answer, unless the handler set them.
const STRICT: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Gives the request an id, runs it within its time, and hardens the answer. Logs it without its query, where a
/// ticket may stand, and without the code of an invitation.
pub(super) async fn request_context(
    State(state): State<HttpState>,
    request: Request,
    next: Next,
) -> Response {
    let id = (state.new_request_id)();
    let caller = caller(request.extensions(), request.headers(), &state.settings);
    let (method, path) = (request.method().clone(), without_code(request.uri().path()).into_owned());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let span = tracing::info_span!("request", id, %method, path);
    let limit = match tus::brings_bytes(route, &method) {
        true => tus::LONGEST,
        false => Duration::from_secs(state.settings.server.request_seconds.into()),
    };
    let began = Instant::now();
    let mut response = REQUEST_ID
        .scope(id.clone(), async {
            let answering = watched(route, next.run(request));
            let response = tokio::time::timeout(limit, answering).await.unwrap_or_else(|_| {
                let detail = "the request took too long; send it faster, or try again";
                Problem::passing(StatusCode::REQUEST_TIMEOUT, "timeout", detail).into_response()
            });
            tracing::debug!(status = response.status().as_u16(), elapsed = ?began.elapsed(), "answered");
            response
        })
        .instrument(span)
        .await;
    state.metrics.answered(known(&method), route, response.status().as_u16(), began.elapsed());
    refusals::slow_down(&state, caller.address, response.status()).await;
    let headers = response.headers_mut();
    for (name, value) in STRICT {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if state.settings.https_alone() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(YEAR));
    }
    headers.insert(REQUEST_ID_HEADER, HeaderValue::from_str(&id).expect("digits"));
    response
}

/// A method that routes take; a stranger may send any word.
fn known(method: &Method) -> &str {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    if known.contains(method) { method.as_str() } else { "other" }
}

/// The path without the code of an invitation: whoever knows that may come into the group.
fn without_code(path: &str) -> Cow<'_, str> {
    const BEFORE: &str = "/invites/";
    match path.find(BEFORE) {
        Some(at) => Cow::Owned(format!("{}…", &path[..at + BEFORE.len()])),
        None => Cow::Borrowed(path),
    }
}

/// Refuses changing requests that come from another site.
pub(super) async fn own_origin(State(state): State<HttpState>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let verdict = origin::check(
        &parts.headers,
        caller(&parts.extensions, &parts.headers, &state.settings),
        &state.settings.origins,
    );
    match verdict {
        Ok(_) => next.run(Request::from_parts(parts, body)).await,
        Err(problem) => problem.into_response(),
    }
}

/// The answer when a handler panicked; the panic itself has been printed.
pub(super) fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request panicked");
    Problem::internal().into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_invitations_are_left_out_of_what_is_logged() {
        for (path, shown) in [
            ("/invites/ABCDEF", "/invites/…"),
            ("/api/v1/invites/ABCDEF", "/api/v1/invites/…"),
            ("/invites/ABCDEF/x", "/invites/…"),
            ("/groups/7/invite", "/groups/7/invite"),
        ] {
            assert_eq!(without_code(path), shown);
        }
    }
}
