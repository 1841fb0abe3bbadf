//! `/ws`: checks the caller that opens a socket, and sets the socket up. `session` serves it.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use utoipa::IntoParams;

use super::error::Problem;
use super::extract::{Params, session};
use super::limits::{ClientNetwork, Rate};
use super::origin::Source;
use super::proxy::Caller;
use super::state::HttpState;

use handshake::Handshake;
use meter::Metered;
use session::SocketSession;

mod end;
mod frame;
mod handshake;
mod meter;
mod pace;
mod session;
#[cfg(test)]
mod tests;

/// Bytes read at a time. An idle connection keeps a buffer of this size, so it is small.
const READ_BUFFER: usize = 2_048;

/// Bytes collected before they are written without being asked to.
const WRITE_BUFFER: usize = 8_192;

/// A message so many times the limit is not read to its end, so that it can only be answered by closing.
const HARD_LIMIT: usize = 4;

/// Bytes that are still read, and ignored, after a connection was closed for what it sent.
const LINGER_BYTES: usize = 1 << 20;

/// The other way of showing who one is.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Entrance {
    /// In place of the `Authorization` header: what `POST /api/v1/sessions/current/ticket` gave.
    ticket: Option<String>,
}

/// Open a WebSocket.
///
/// Each frame is one text message with one JSON object. From the client: `heartbeat`, `send`, `read` and others. From the server:
/// `welcome`, `alive`, `entries`, `sent`, `error`, `typing` and `presence`. The frames and the codes with which the server closes are described at `/docs/websocket`.
#[utoipa::path(
    get, path = "/ws", operation_id = "socket", tag = "WebSocket",
    params(Entrance),
    responses((status = 101, description = "The connection is a WebSocket from here on")),
    extensions(("x-codes" = json!(["foreign_origin", "websocket_only", "too_many_connections"]))),
)]
pub(super) async fn open(
    State(state): State<HttpState>,
    source: Result<Source, Problem>,
    caller: Caller,
    Params(Entrance { ticket }): Params<Entrance>,
    headers: HeaderMap,
    handshake: Result<Handshake, Problem>,
) -> Result<Response, Problem> {
    let live = match ticket {
        Some(ticket) => state.accounts.redeem(&ticket).await?,
        None => {
            // A ticket was given to the page, wherever that comes from; a cookie comes by itself.
            source?;
            session(&headers, caller, &state).await?
        }
    };
    let live = live.ok_or_else(Problem::unauthorized)?;
    let handshake = handshake?;
    let permit = match caller.proxied {
        false => None,
        true => {
            let permit = state.sockets.limiter.take_beside(ClientNetwork::of(caller.address));
            Some(permit.ok_or_else(|| too_many("too many open connections from your address; close some"))?)
        }
    };
    let of_account = state.sockets.of_accounts.take(Some(live.uid));
    let of_account =
        of_account.ok_or_else(|| too_many("this account has too many open sockets; close some"))?;
    let watermark = state.sync.watermark(live.uid).await?;
    let limits = &state.settings.limits;
    let rate = Rate::new(limits.frames_per_connection_per_second, Duration::from_secs(1));
    let most = limits.frame_bytes.saturating_mul(HARD_LIMIT);
    let options = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(most))
        .max_frame_size(Some(most));
    let network = ClientNetwork::of(caller.address);
    let open = state.sockets.open.token();
    Ok(handshake.complete(async move |stream| {
        let stream = Metered::new(stream, rate);
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(options)).await;
        let session = Box::new(SocketSession::new(state, live, watermark, network));
        if session::run(&mut socket, session).await.is_unread() {
            linger(socket.get_mut().inner()).await;
        }
        drop((permit, of_account, open));
    }))
}

fn too_many(detail: &'static str) -> Problem {
    Problem::passing(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections", detail)
}

/// Lets the close frame arrive: a connection that is closed over bytes that were not read is reset, and what was sent last is lost.
async fn linger(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let read_on = async {
        stream.shutdown().await?;
        let mut left = LINGER_BYTES;
        // Not in the future itself: every idle connection would keep it.
        let mut ignored = vec![0; 4_096];
        while left > 0 {
            match stream.read(&mut ignored).await? {
                0 => break,
                some => left = left.saturating_sub(some),
            }
        }
        std::io::Result::Ok(())
    };
    // A client that goes on sending, or is gone, gets no more time; ignore the result.
    let _ = timeout(session::FAREWELL, read_on).await;
}
