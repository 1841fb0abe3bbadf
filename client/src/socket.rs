//! One WebSocket connection: frames out, frames in, nothing remembered.
//!
//! It owns the connection and its small buffers. [`crate::Client`] drives it; benchmarks and tests, which want to
//! decide every frame, use it directly. Dropping it drops the connection.

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header::AUTHORIZATION};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, WebSocketConfig};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::error::Error;
use crate::wire::{ClientFrame, ServerFrame};

/// "Logged out, disabled: do not come back with this token."
pub(crate) const CLOSE_LOGGED_OUT: u16 = 4401;
/// "Restart: come back after a random second or two."
pub(crate) const CLOSE_RESTART: u16 = 1012;

/// Sizes of a connection.
#[derive(Clone, Copy, Debug)]
pub struct SocketOptions {
    /// Bytes of the read buffer, allocated at once and kept (default 4 KiB; larger frames still fit).
    pub read_buffer: usize,
    /// Bytes gathered before they are written without a flush (default 4 KiB).
    pub write_buffer: usize,
    /// The largest frame accepted from the server, in bytes (default 16 MiB).
    pub max_frame: usize,
}

impl Default for SocketOptions {
    fn default() -> Self {
        SocketOptions { read_buffer: 4 << 10, write_buffer: 4 << 10, max_frame: 16 << 20 }
    }
}

impl SocketOptions {
    pub(crate) fn config(&self) -> WebSocketConfig {
        WebSocketConfig::default()
            .read_buffer_size(self.read_buffer)
            .write_buffer_size(self.write_buffer)
            .max_message_size(Some(self.max_frame))
            .max_frame_size(Some(self.max_frame))
    }
}

/// A connection to `/ws`.
#[derive(Debug)]
pub struct Socket<S = MaybeTlsStream<TcpStream>> {
    stream: WebSocketStream<S>,
}

impl Socket {
    /// Connects to `url` (`ws://HOST/ws`, see [`crate::Http::socket_url`]) as the owner of `token`.
    ///
    /// # Errors
    /// [`Error::LoggedOut`] when the token is refused; else as the network or the server says.
    pub async fn connect(url: &str, token: &str, options: &SocketOptions) -> Result<Socket, Error> {
        let mut request = url.into_client_request()?;
        let bearer = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Error::Usage("the token holds invalid characters: log in again".to_owned()))?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
        match connect_async_with_config(request, Some(options.config()), true).await {
            Ok((stream, _)) => Ok(Socket { stream }),
            Err(error) => match Error::from(error) {
                Error::Refused(problem) if problem.status == 401 => Err(Error::LoggedOut),
                other => Err(other),
            },
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// Speaks over a WebSocket that is open already.
    pub fn from_stream(stream: WebSocketStream<S>) -> Self {
        Socket { stream }
    }

    /// The WebSocket itself, for callers to whom typed frames cost too much.
    pub fn into_stream(self) -> WebSocketStream<S> {
        self.stream
    }

    /// Sends a frame at once.
    pub async fn send(&mut self, frame: &ClientFrame<'_>) -> Result<(), Error> {
        Ok(self.stream.send(Message::text(frame.to_json())).await?)
    }

    /// Puts a frame behind the others; [`Socket::flush`] sends what has gathered. Many frames cost one write so.
    pub async fn feed(&mut self, frame: &ClientFrame<'_>) -> Result<(), Error> {
        Ok(self.stream.feed(Message::text(frame.to_json())).await?)
    }

    /// Sends what [`Socket::feed`] has gathered.
    pub async fn flush(&mut self) -> Result<(), Error> {
        Ok(self.stream.flush().await?)
    }

    /// The next frame. Loses nothing when dropped before it is done.
    ///
    /// # Errors
    /// [`Error::LoggedOut`] on close code 4401, [`Error::Closed`] on any other end.
    pub async fn receive(&mut self) -> Result<ServerFrame, Error> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => return ServerFrame::parse(&text),
                Some(Ok(Message::Close(frame))) => return Err(closed(frame)),
                // Pings are answered by tungstenite; the protocol has no binary frames.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(closed(None)),
            }
        }
    }

    /// Says goodbye and waits for nothing.
    pub async fn close(mut self) -> Result<(), Error> {
        let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        Ok(self.stream.close(Some(frame)).await?)
    }
}

fn closed(frame: Option<CloseFrame>) -> Error {
    match frame.map(|frame| (u16::from(frame.code), frame.reason.to_string())) {
        Some((CLOSE_LOGGED_OUT, _)) => Error::LoggedOut,
        Some((code, reason)) => Error::Closed { code: Some(code), reason },
        None => Error::Closed { code: None, reason: String::new() },
    }
}
