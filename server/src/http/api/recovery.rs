//! Recovery codes: setting another password with one, how many are left, new ones.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::accounts::{Account, Password, count_attempt, in_line, known_device, welcome};
use super::json;
use crate::app::Accounts;
use crate::http::device_name::device_name;
use crate::http::error::Problem;
use crate::http::extract::{Json, Session};
use crate::http::origin::Source;
use crate::http::proxy::Caller;
use crate::http::state::HttpState;

/// A request to set another password in place of a forgotten one.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Recovery {
    /// In whatever case.
    #[schema(min_length = 1, max_length = 40, example = "Ada")]
    name: String,
    /// One of the account's recovery codes, in whatever case, with or without signs between the letters.
    #[schema(example = "K7QF-9D2M-XA4T-0ZRC")]
    code: String,
    /// The new password; any characters.
    #[schema(min_length = 8, max_length = 200, example = "battery staple")]
    password: String,
}

/// Set another password with a recovery code, and log in.
///
/// The code is used up. All sessions of the account end, and their WebSockets close with 4401. An attempt counts as an attempt to log in.
#[utoipa::path(
    post, path = "/api/v1/recovery", operation_id = "recover", tag = "Accounts", security(),
    request_body = Recovery,
    responses((
        status = 201, body = Account<'_>,
        description = "Set. A request with an `Origin` of this server gets the token as a cookie as well",
        headers(("Set-Cookie" = String, description = "The session, for the page of this server")),
    )),
    extensions(("x-codes" = json!([
        "rate_limited", "busy", "unavailable", "bad_password", "common_password", "wrong_recovery_code",
    ]))),
)]
pub(in crate::http) async fn recover(
    State(state): State<HttpState>,
    source: Source,
    caller: Caller,
    headers: HeaderMap,
    Json(Recovery { name, code, password }): Json<Recovery>,
) -> Result<Response, Problem> {
    let device = known_device(&state, caller, &headers, &name, None).await?;
    state.accounts.count(&state.rates.log_in(caller.address, &name, device.as_ref())?).await?;
    let label = device_name(&headers);
    let signed_in = in_line(&state, caller, state.accounts.recover(&name, &code, password, label)).await?;
    Ok(welcome(&signed_in, None, source, caller, &state.settings))
}

/// The count of unused recovery codes.
#[derive(Serialize, ToSchema)]
struct Left {
    /// How many may still be used.
    #[schema(example = 8)]
    left: u64,
}

/// How many recovery codes are left?
#[utoipa::path(
    get, path = "/api/v1/me/recovery-codes", operation_id = "recoveryCodesLeft", tag = "Accounts",
    responses((status = 200, body = Left, description = "None in an account that was made before there were codes")),
)]
pub(in crate::http) async fn left(
    State(accounts): State<Accounts>,
    Session(session): Session,
) -> Result<Response, Problem> {
    let left = accounts.recovery_codes_left(session.uid).await?;
    Ok(json(StatusCode::OK, &Left { left }))
}

/// New recovery codes.
#[derive(Serialize, ToSchema)]
struct Codes<'a> {
    /// Shown this once.
    #[schema(example = json!(["K7QF-9D2M-XA4T-0ZRC"]))]
    codes: &'a [String],
}

/// Make new recovery codes; the old ones are worth nothing any more.
///
/// An attempt counts as an attempt to log in, on a device that is known by its session.
#[utoipa::path(
    post, path = "/api/v1/me/recovery-codes", operation_id = "makeRecoveryCodes", tag = "Accounts",
    request_body = Password,
    responses((status = 201, body = Codes<'_>, description = "Made")),
    extensions(("x-codes" = json!(["rate_limited", "busy", "unavailable", "wrong_credentials"]))),
)]
pub(in crate::http) async fn create(
    State(state): State<HttpState>,
    Session(session): Session,
    caller: Caller,
    Json(Password { password }): Json<Password>,
) -> Result<Response, Problem> {
    count_attempt(&state, caller, &session).await?;
    let codes = in_line(&state, caller, state.accounts.new_recovery_codes(&session, password)).await?;
    Ok(json(StatusCode::CREATED, &Codes { codes: codes.texts() }))
}
