//! Extractors for handlers: the caller's session, address and page, and the body or query as a checked value.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;
use std::sync::Arc;

use axum::RequestExt as _;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, FromRef, FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::cookies::SESSION;
use super::error::Problem;
use super::limits::ClientNetwork;
use super::listen::Peer;
use super::object;
use super::origin::{self, Source};
use super::proxy::{self, Caller};
use super::state::{HttpState, Settings};
use super::{BATCH_BODY_BYTES, refusals};
use crate::app::LiveSession;
use crate::domain::ClientId;
use crate::workers::aside;

/// The caller's session; refuses callers that are not logged in.
pub(super) struct Session(pub(super) Arc<LiveSession>);

impl FromRequestParts<HttpState> for Session {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &HttpState) -> Result<Session, Problem> {
        let caller = caller(&parts.extensions, &parts.headers, &state.settings);
        session(&parts.headers, caller, state).await?.map(Session).ok_or_else(Problem::unauthorized)
    }
}

/// The caller's session, if there is one.
pub(super) async fn session(
    headers: &HeaderMap,
    caller: Caller,
    state: &HttpState,
) -> Result<Option<Arc<LiveSession>>, Problem> {
    let secure = state.settings.is_secure(caller);
    let Some(token) = token(headers, secure) else { return Ok(None) };
    if let Some(live) = state.accounts.known_session(token) {
        return Ok(Some(live));
    }
    refusals::wait_turn(state, caller.address).await;
    let session = state.accounts.session(token).await?;
    if session.is_none() {
        state.rates.refused(caller.address);
    }
    Ok(session)
}

/// The token that a request shows: in its own header, else in a browser's cookie.
fn token(headers: &HeaderMap, secure: bool) -> Option<&str> {
    let Some(line) = headers.get(header::AUTHORIZATION) else { return SESSION.of(headers, secure) };
    let (scheme, token) = line.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The way that a request came: its real address, and whether it was HTTPS.
impl<S: Send + Sync> FromRequestParts<S> for Caller
where
    Arc<Settings>: FromRef<S>,
{
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let settings = Arc::<Settings>::from_ref(state);
        Ok(caller(&parts.extensions, &parts.headers, &settings))
    }
}

pub(super) fn caller(extensions: &Extensions, headers: &HeaderMap, settings: &Settings) -> Caller {
    let peer = extensions.get::<ConnectInfo<Peer>>();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(Peer(address))| address.ip());
    proxy::caller(peer, headers, &settings.server.trusted_proxies)
}

/// Which page a request comes from; refuses foreign ones.
impl FromRequestParts<HttpState> for Source {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &HttpState) -> Result<Source, Problem> {
        let caller = caller(&parts.extensions, &parts.headers, &state.settings);
        origin::check(&parts.headers, caller, &state.settings.origins)
    }
}

/// A body of so many bytes is not counted in the budget of memory: the buffers of its connection are as large.
const SMALL_BODY: usize = 4_096;

/// The body, as JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<HttpState> for Json<T> {
    type Rejection = Problem;

    async fn from_request(mut request: Request, state: &HttpState) -> Result<Json<T>, Problem> {
        let length = request.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        // No call takes more, and what says so beforehand is not read.
        if length.is_some_and(|length| length > BATCH_BODY_BYTES) {
            return Err(body_too_large());
        }
        let length = length.unwrap_or(BATCH_BODY_BYTES);
        let _held = match length > SMALL_BODY {
            true => {
                let caller = request.extract_parts_with_state::<Caller, _>(state).await;
                let Ok(caller) = caller;
                Some(state.budget.take_soon(ClientNetwork::of(caller.address), length).await?)
            }
            false => None,
        };
        let bytes = Bytes::from_request(request, state).await.map_err(body_problem)?;
        let read = || {
            let text = std::str::from_utf8(&bytes).map_err(|_| Problem::invalid_utf8())?;
            object::from_text(text).map_err(|error| Problem::from_json(&error))
        };
        aside(bytes.len(), read).await.map(Json)
    }
}

fn body_too_large() -> Problem {
    let detail = "the body is too large; it may have 128 KiB, and that of a batch 4 MiB";
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

fn body_problem(rejection: BytesRejection) -> Problem {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => body_too_large(),
        _ => Problem::new(
            StatusCode::BAD_REQUEST,
            "body_incomplete",
            "the body did not arrive whole; send it again",
        ),
    }
}

/// By what a client calls the thing that a request makes, so that a repetition makes no second one. Absent: each request is new.
pub(super) struct IdempotencyKey(pub(super) Option<ClientId>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<IdempotencyKey, Problem> {
        let Some(key) = parts.headers.get("idempotency-key") else { return Ok(IdempotencyKey(None)) };
        let key = key.to_str().ok().and_then(|text| Uuid::try_parse(text).ok());
        let key = key.ok_or_else(|| Problem::invalid_query("the header Idempotency-Key must be a UUID"))?;
        Ok(IdempotencyKey(Some(ClientId(key))))
    }
}

/// The query of an address.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Params<T>, Problem> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Params(params)),
            Err(rejection) => Err(Problem::invalid_query(rejection.body_text())),
        }
    }
}

/// The variable parts of an address, as texts.
pub(super) struct Segments<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Segments<T>, Problem> {
        let Path(texts) = Path::<T>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Problem::invalid_query(rejection.body_text()))?;
        Ok(Segments(texts))
    }
}

/// The one variable part of an address, such as a conversation.
pub(super) struct Segment<T>(pub(super) T);

impl<T: FromStr<Err: std::fmt::Display>, S: Send + Sync> FromRequestParts<S> for Segment<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Segment<T>, Problem> {
        let Segments(text) = Segments::<String>::from_request_parts(parts, state).await?;
        text.parse().map(Segment).map_err(|error: T::Err| Problem::invalid_query(format!("{text}: {error}")))
    }
}
