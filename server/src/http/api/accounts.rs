//! Signing up, logging in, logging out, changing the password, tickets.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::json;
use crate::app::{AccountError, Accounts, Busy, SignedIn};
use crate::http::cookies::{SESSION, is_secure};
use crate::http::error::Problem;
use crate::http::extract::{Json, Session};
use crate::http::origin::Source;
use crate::http::proxy::Caller;
use crate::http::state::{HttpState, Settings};

/// What one signs up or logs in with.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Credentials {
    /// Unique without regard to case: visible characters, and single spaces between them.
    #[schema(min_length = 1, max_length = 40, example = "Ada")]
    name: String,
    /// Any characters.
    #[schema(min_length = 8, max_length = 200, example = "correct horse")]
    password: String,
}

/// An account and its session.
#[derive(Serialize, ToSchema)]
struct Account<'a> {
    #[schema(example = 10_001)]
    uid: u32,
    name: &'a str,
    /// For `Authorization: Bearer TOKEN`; shown this once.
    token: &'a str,
}

/// Make an account and log it in.
#[utoipa::path(
    post, path = "/api/v1/accounts", operation_id = "signUp", tag = "Accounts", security(),
    request_body = Credentials,
    responses((
        status = 201, body = Account<'_>,
        description = "Made. A request with an `Origin` of this server gets the token as a cookie as well",
        headers(("Set-Cookie" = String, description = "The session, for the page of this server")),
    )),
    extensions(("x-codes" = json!([
        "rate_limited", "busy", "unavailable", "sign_up_closed", "bad_name", "bad_password", "name_taken",
    ]))),
)]
pub(in crate::http) async fn sign_up(
    State(state): State<HttpState>,
    source: Source,
    caller: Caller,
    Json(Credentials { name, password }): Json<Credentials>,
) -> Result<Response, Problem> {
    state.accounts.count(&state.rates.sign_up(caller.address)?).await?;
    let signed_in = in_line(&state, caller, state.accounts.sign_up(&name, password, &state.ids)).await?;
    Ok(welcome(&signed_in, source, caller, &state.settings))
}

/// Log in.
///
/// Each log-in is a session of its own, for `[accounts] session_days`.
#[utoipa::path(
    post, path = "/api/v1/sessions", operation_id = "logIn", tag = "Accounts", security(),
    request_body = Credentials,
    responses((
        status = 201, body = Account<'_>,
        description = "Logged in. A request with an `Origin` of this server gets the token as a cookie as well",
        headers(("Set-Cookie" = String, description = "The session, for the page of this server")),
    )),
    extensions(("x-codes" = json!(["rate_limited", "busy", "unavailable", "wrong_credentials"]))),
)]
pub(in crate::http) async fn log_in(
    State(state): State<HttpState>,
    source: Source,
    caller: Caller,
    Json(Credentials { name, password }): Json<Credentials>,
) -> Result<Response, Problem> {
    state.accounts.count(&state.rates.log_in(caller.address, &name)?).await?;
    let signed_in = in_line(&state, caller, state.accounts.log_in(&name, password)).await?;
    Ok(welcome(&signed_in, source, caller, &state.settings))
}

/// What changes a password.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewPassword {
    /// The password as it is now.
    #[schema(example = "correct horse")]
    current: String,
    /// The password as it is to be; any characters.
    #[schema(min_length = 8, max_length = 200, example = "battery staple")]
    new: String,
}

/// Change the password.
///
/// All other sessions of the account end, and their WebSockets close with 4401; this one goes on. An attempt counts as an
/// attempt to log in under the account's name.
#[utoipa::path(
    put, path = "/api/v1/me/password", operation_id = "changePassword", tag = "Accounts",
    request_body = NewPassword,
    responses((status = 204, description = "Changed")),
    extensions(("x-codes" = json!(["rate_limited", "bad_password", "wrong_credentials"]))),
)]
pub(in crate::http) async fn change_password(
    State(state): State<HttpState>,
    Session(session): Session,
    caller: Caller,
    Json(NewPassword { current, new }): Json<NewPassword>,
) -> Result<StatusCode, Problem> {
    let name = state.accounts.name(session.uid).await?.ok_or_else(Problem::unauthorized)?;
    state.accounts.count(&state.rates.log_in(caller.address, &name)?).await?;
    in_line(&state, caller, state.accounts.change_password(&session, current, new)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Carries out what hashes a password while its address has a place in the line for that.
async fn in_line<T>(
    state: &HttpState,
    caller: Caller,
    hashing: impl Future<Output = Result<T, AccountError>>,
) -> Result<T, AccountError> {
    let done = match state.password_places.take(Some(caller.address)) {
        Some(_place) => hashing.await,
        None => Err(AccountError::Busy(Busy)),
    };
    if matches!(done, Err(AccountError::Busy(_))) {
        state.metrics.passwords_refused.inc();
    }
    done
}

/// A page gets its token as a cookie too, where its scripts cannot read it.
fn welcome(signed_in: &SignedIn, source: Source, caller: Caller, settings: &Settings) -> Response {
    let SignedIn { uid, name, token, lifetime_seconds } = signed_in;
    let mut response = json(StatusCode::CREATED, &Account { uid: uid.0, name, token: token.as_str() });
    if source == Source::OwnPage {
        let cookie = SESSION.set(token.as_str(), *lifetime_seconds, is_secure(caller, settings));
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// End this session.
///
/// Its WebSockets close with 4401.
#[utoipa::path(
    delete, path = "/api/v1/sessions/current", operation_id = "logOut", tag = "Accounts",
    responses((status = 204, description = "Ended")),
)]
pub(in crate::http) async fn log_out(
    State(accounts): State<Accounts>,
    State(settings): State<Arc<Settings>>,
    caller: Caller,
    Session(session): Session,
) -> Result<Response, Problem> {
    accounts.log_out(&session).await?;
    Ok(goodbye(caller, &settings))
}

/// End all sessions of the account.
///
/// Their WebSockets close with 4401.
#[utoipa::path(
    delete, path = "/api/v1/sessions", operation_id = "logOutEverywhere", tag = "Accounts",
    responses((status = 204, description = "Ended")),
)]
pub(in crate::http) async fn log_out_everywhere(
    State(accounts): State<Accounts>,
    State(settings): State<Arc<Settings>>,
    caller: Caller,
    Session(session): Session,
) -> Result<Response, Problem> {
    accounts.log_out_everywhere(session.uid).await?;
    Ok(goodbye(caller, &settings))
}

/// The answer to whose session has ended: the cookie goes, too.
pub(super) fn goodbye(caller: Caller, settings: &Settings) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    for cookie in SESSION.clear(is_secure(caller, settings)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// What opens a WebSocket.
#[derive(Serialize, ToSchema)]
struct Ticket<'a> {
    /// For `/ws?ticket=TICKET`, once.
    ticket: &'a str,
}

/// Get a ticket that opens `/ws?ticket=` once within 30 seconds.
///
/// For clients that cannot set headers; tokens never stand in addresses.
#[utoipa::path(
    post, path = "/api/v1/sessions/current/ticket", operation_id = "ticket", tag = "Accounts",
    responses((status = 200, body = Ticket<'_>, description = "The ticket")),
    extensions(("x-codes" = json!(["too_many_tickets"]))),
)]
pub(in crate::http) async fn ticket(
    State(accounts): State<Accounts>,
    Session(session): Session,
) -> Result<Response, Problem> {
    let ticket = accounts.ticket(&session).await?;
    Ok(json(StatusCode::OK, &Ticket { ticket: ticket.as_str() }))
}
