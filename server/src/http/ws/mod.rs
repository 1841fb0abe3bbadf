//! `/ws`: who may open one, and the socket's settings. What happens on it is `session`'s.

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{State, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;

use super::error::Problem;
use super::extract::{Params, session};
use super::origin::Source;
use super::proxy::Caller;
use super::state::HttpState;

mod frame;
mod session;
#[cfg(test)]
mod tests;

/// Bytes read at a time. An idle connection keeps a buffer of this size, so it is small.
const READ_BUFFER: usize = 2_048;

/// Bytes collected before they are written without being asked to.
const WRITE_BUFFER: usize = 16_384;

/// A message so many times the limit is not read to its end, so that it can only be answered by closing.
const HARD_LIMIT: usize = 4;

/// The other way of showing who one is.
#[derive(Deserialize)]
pub(super) struct Entrance {
    ticket: Option<String>,
}

/// `GET /ws`
pub(super) async fn open(
    State(state): State<HttpState>,
    _: Source,
    caller: Caller,
    Params(Entrance { ticket }): Params<Entrance>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let live = match ticket {
        Some(ticket) => state.accounts.redeem(&ticket),
        None => session(&headers, &state.accounts).await?,
    };
    let live = live.ok_or_else(Problem::unauthorized)?;
    let upgrade = upgrade.map_err(|rejection| {
        let detail = format!("this address speaks WebSocket: {}", rejection.body_text());
        Problem::new(StatusCode::UPGRADE_REQUIRED, "websocket_only", detail)
    })?;
    let seat = match caller.proxied {
        false => None,
        true => Some(state.sockets.seats.take_behind_proxy(caller.address).ok_or_else(|| {
            let detail = "too many open connections from your address; close some";
            Problem::passing(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections", detail)
        })?),
    };
    let mark = state.sync.mark(live.uid).await?;
    let limit = state.settings.limits.frame_bytes.saturating_mul(HARD_LIMIT);
    let open = state.sockets.open.token();
    Ok(upgrade
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(limit)
        .max_frame_size(limit)
        .on_upgrade(async move |mut socket| {
            session::run(&mut socket, Box::new(session::Session::new(state, live, mark))).await;
            drop((seat, open));
        }))
}
