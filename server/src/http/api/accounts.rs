//! Signing up, logging in, logging out, changing the password, tickets.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::json;
use crate::app::{AccountError, Accounts, Busy, DeviceToken, KnownDevice, LiveSession, SignedIn};
use crate::http::cookies::{DEVICE, SESSION};
use crate::http::device_name::device_name;
use crate::http::error::Problem;
use crate::http::extract::{Json, Session};
use crate::http::limits::ClientNetwork;
use crate::http::origin::Source;
use crate::http::proxy::Caller;
use crate::http::refusals;
use crate::http::state::{HttpState, Settings};

/// A request to sign up.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewAccount {
    /// Unique without regard to case: visible characters, and single spaces between them.
    #[schema(min_length = 1, max_length = 40, example = "Ada")]
    name: String,
    /// Any characters.
    #[schema(min_length = 8, max_length = 200, example = "correct horse")]
    password: String,
    /// The code in the link of an invitation; needed where `[accounts] sign_up` is `invitation`.
    #[serde(default)]
    invite: Option<String>,
}

/// A request to log in.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Credentials {
    /// In whatever case.
    #[schema(min_length = 1, max_length = 40, example = "Ada")]
    name: String,
    /// The password.
    #[schema(min_length = 8, max_length = 200, example = "correct horse")]
    password: String,
    /// The `device` that an earlier log-in on this device got, if any; a page of this server shows its cookie.
    #[serde(default)]
    device: Option<String>,
}

/// An account and its session.
#[derive(Serialize, ToSchema)]
pub(super) struct Account<'a> {
    #[schema(example = 10_001)]
    uid: u32,
    name: &'a str,
    /// For `Authorization: Bearer TOKEN`; shown this once.
    token: &'a str,
    /// For `device` of the next log-in under this account: with it, the attempts of strangers do not count. It opens nothing by itself, and
    /// ends with the password, or after a year.
    device: &'a str,
    /// Of a new account: each sets another password once (`POST /recovery`). Shown this once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = json!(["K7QF-9D2M-XA4T-0ZRC"]))]
    recovery_codes: Option<&'a [String]>,
}

/// Make an account and log it in.
#[utoipa::path(
    post, path = "/api/v1/accounts", operation_id = "signUp", tag = "Accounts", security(),
    request_body = NewAccount,
    responses((
        status = 201, body = Account<'_>,
        description = "Made. A request with an `Origin` of this server gets the token as a cookie as well",
        headers(("Set-Cookie" = String, description = "The session, for the page of this server")),
    )),
    extensions(("x-codes" = json!([
        "rate_limited", "busy", "unavailable", "sign_up_closed", "not_invited", "bad_name", "bad_password", "common_password", "name_taken",
        "name_resembles",
    ]))),
)]
pub(in crate::http) async fn sign_up(
    State(state): State<HttpState>,
    source: Source,
    caller: Caller,
    headers: HeaderMap,
    Json(NewAccount { name, password, invite }): Json<NewAccount>,
) -> Result<Response, Problem> {
    state.accounts.count(&state.rates.sign_up(caller.address)?).await?;
    let (label, invite) = (device_name(&headers), invite.as_deref().filter(|code| !code.is_empty()));
    let sign_up = state.accounts.sign_up((&name, password), invite, label, &state.ids);
    let (signed_in, codes) = in_line(&state, caller, sign_up).await?;
    Ok(welcome(&signed_in, Some(codes.texts()), source, caller, &state.settings))
}

/// Log in.
///
/// Each log-in is a session of its own, for `[accounts] session_days`. Attempts are counted by the name and the address that they come
/// from, and by the name from all addresses; those of a known device, by that device alone.
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
    headers: HeaderMap,
    Json(Credentials { name, password, device }): Json<Credentials>,
) -> Result<Response, Problem> {
    let device = known_device(&state, caller, &headers, &name, device.as_deref()).await?;
    state.accounts.count(&state.rates.log_in(caller.address, &name, device.as_ref())?).await?;
    let label = device_name(&headers);
    let device = device.and_then(|device| device.token);
    let signed_in = in_line(&state, caller, state.accounts.log_in(&name, password, label, device)).await?;
    Ok(welcome(&signed_in, None, source, caller, &state.settings))
}

/// The device that shows by its cookie, or else by `shown`, that somebody has logged in on it as `name` before.
pub(super) async fn known_device(
    state: &HttpState,
    caller: Caller,
    headers: &HeaderMap,
    name: &str,
    shown: Option<&str>,
) -> Result<Option<KnownDevice>, Problem> {
    match DEVICE
        .of(headers, state.settings.is_secure(caller))
        .or(shown)
        .filter(|text| state.accounts.may_be_known(text))
    {
        Some(text) => {
            refusals::wait_turn(state, caller.address).await;
            Ok(state.accounts.known_device(name, text).await?)
        }
        None => Ok(None),
    }
}

/// A change of the password.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewPassword {
    /// The password as it is now.
    #[schema(example = "correct horse")]
    current: String,
    /// The new password; any characters.
    #[schema(min_length = 8, max_length = 200, example = "battery staple")]
    new: String,
}

/// Change the password.
///
/// All other sessions of the account end, and their WebSockets close with 4401; this one goes on. An attempt counts as an
/// attempt to log in, on a device that is known by its session.
#[utoipa::path(
    put, path = "/api/v1/me/password", operation_id = "changePassword", tag = "Accounts",
    request_body = NewPassword,
    responses((status = 204, description = "Changed")),
    extensions(("x-codes" = json!(["rate_limited", "bad_password", "common_password", "wrong_credentials"]))),
)]
pub(in crate::http) async fn change_password(
    State(state): State<HttpState>,
    Session(session): Session,
    source: Source,
    caller: Caller,
    Json(NewPassword { current, new }): Json<NewPassword>,
) -> Result<Response, Problem> {
    count_attempt(&state, caller, &session).await?;
    let device = in_line(&state, caller, state.accounts.change_password(&session, current, new)).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    if source == Source::OwnPage {
        response.headers_mut().append(header::SET_COOKIE, remembering(&device, caller, &state.settings));
    }
    Ok(response)
}

/// Counts a password that is asked for within a session: an attempt to log in, on a device that is known by the session.
pub(super) async fn count_attempt(
    state: &HttpState,
    caller: Caller,
    session: &LiveSession,
) -> Result<(), Problem> {
    let name = state.accounts.name(session.uid).await?.ok_or_else(Problem::unauthorized)?;
    let device = KnownDevice { name: format!("session {}", session.id()), token: None };
    Ok(state.accounts.count(&state.rates.log_in(caller.address, &name, Some(&device))?).await?)
}

/// The header by which a browser is known when somebody logs in there again.
fn remembering(device: &DeviceToken, caller: Caller, settings: &Settings) -> HeaderValue {
    DEVICE.set(&device.text, device.lifetime_seconds, settings.is_secure(caller))
}

/// Runs `hashing` when it is the turn of the caller's address.
pub(super) async fn in_line<T>(
    state: &HttpState,
    caller: Caller,
    hashing: impl Future<Output = Result<T, AccountError>>,
) -> Result<T, AccountError> {
    let done = match state.password_turns.take(ClientNetwork::of(caller.address)).await {
        Some(_turn) => hashing.await,
        None => Err(AccountError::Busy(Busy)),
    };
    if matches!(done, Err(AccountError::Busy(_))) {
        state.metrics.passwords_refused.inc();
    }
    done
}

/// A page gets its token as a cookie too, where its scripts cannot read it.
pub(super) fn welcome(
    signed_in: &SignedIn,
    recovery_codes: Option<&[String]>,
    source: Source,
    caller: Caller,
    settings: &Settings,
) -> Response {
    let SignedIn { uid, name, token, lifetime_seconds, device } = signed_in;
    let account = Account { uid: uid.0, name, token: token.as_str(), device: &device.text, recovery_codes };
    let mut response = json(StatusCode::CREATED, &account);
    if source == Source::OwnPage {
        let cookie = SESSION.set(token.as_str(), *lifetime_seconds, settings.is_secure(caller));
        response.headers_mut().append(header::SET_COOKIE, cookie);
        response.headers_mut().append(header::SET_COOKIE, remembering(device, caller, settings));
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

/// The answer to a caller whose session has ended: the cookie goes, too.
pub(super) fn goodbye(caller: Caller, settings: &Settings) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    for cookie in SESSION.clear(settings.is_secure(caller)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// The password that confirms a request.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Password {
    /// The password of the account.
    #[schema(example = "correct horse")]
    pub(super) password: String,
}

/// Delete the account, for good.
///
/// At once: its sessions end and their WebSockets close with 4401, nobody logs in or signs up under its name, and nothing can be sent to
/// it (`account_deleted`). Soon after: its moments, comments and likes are taken back, its friendships end, it leaves its groups, and its
/// own rows are removed. Others keep the rows that they have received from it. An attempt counts as an attempt to log in, on a device
/// that is known by its session.
#[utoipa::path(
    post, path = "/api/v1/me/delete", operation_id = "deleteAccount", tag = "Accounts",
    request_body = Password,
    responses((status = 204, description = "Deleted")),
    extensions(("x-codes" = json!(["rate_limited", "busy", "unavailable", "wrong_credentials"]))),
)]
pub(in crate::http) async fn delete(
    State(state): State<HttpState>,
    Session(session): Session,
    caller: Caller,
    Json(Password { password }): Json<Password>,
) -> Result<Response, Problem> {
    count_attempt(&state, caller, &session).await?;
    in_line(&state, caller, state.accounts.delete_own(&session, password)).await?;
    Ok(goodbye(caller, &state.settings))
}

/// A ticket that opens a WebSocket.
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
