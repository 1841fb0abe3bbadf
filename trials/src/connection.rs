//! A connection that costs as little as it can: the measured side is the server, and both share the processor.
//!
//! Frames out are texts made beforehand; of frames in only what is counted is read. Nothing is stored, nothing is
//! repeated: a broken connection fails the run.

use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tidemark_client::{Socket, SocketOptions};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use uuid::Uuid;

use crate::{Failure, Result};

/// One connection.
pub(crate) struct ClientConnection {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

/// The fields that are read of a frame.
#[derive(Deserialize)]
pub(crate) struct Heard<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: &'a str,
    #[serde(default)]
    pub(crate) synced: u64,
    /// Counted, not read.
    #[serde(default)]
    pub(crate) entries: Vec<IgnoredAny>,
    #[serde(default)]
    pub(crate) detail: Option<String>,
}

impl ClientConnection {
    /// Connects to `url` as the owner of `token`, and reads the welcome.
    pub(crate) async fn open(url: &str, token: &str) -> Result<ClientConnection> {
        let socket = Socket::connect(url, token, &SocketOptions::default()).await?;
        let mut connection = ClientConnection { stream: socket.into_stream() };
        connection.expect("welcome").await?;
        Ok(connection)
    }

    /// Speaks over a connection that has no welcome to read.
    pub(crate) fn over(stream: WebSocketStream<MaybeTlsStream<TcpStream>>) -> ClientConnection {
        ClientConnection { stream }
    }

    /// Sends a text at once.
    pub(crate) async fn say(&mut self, text: impl Into<Utf8Bytes>) -> Result<()> {
        Ok(self.stream.send(Message::Text(text.into())).await?)
    }

    /// Puts a text behind the others; [`ClientConnection::flush`] sends them in one go.
    pub(crate) async fn feed(&mut self, text: impl Into<Utf8Bytes>) -> Result<()> {
        Ok(self.stream.feed(Message::Text(text.into())).await?)
    }

    /// Sends what was fed.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        Ok(self.stream.flush().await?)
    }

    /// "I have everything up to `seq`."
    pub(crate) async fn heartbeat(&mut self, seq: u64) -> Result<()> {
        self.say(heartbeat(seq)).await
    }

    /// The next text.
    pub(crate) async fn hear(&mut self) -> Result<Utf8Bytes> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(Message::Close(frame))) => {
                    return Err(Failure::new(format!("the server closed a connection: {frame:?}")));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(Failure::new("the server dropped a connection")),
            }
        }
    }

    /// The next text, which must be of this kind.
    pub(crate) async fn expect(&mut self, kind: &str) -> Result<Utf8Bytes> {
        let text = self.hear().await?;
        let heard = parse(&text)?;
        if heard.kind == kind {
            return Ok(text);
        }
        Err(Failure::new(format!(
            "expected {kind}, heard {} {}",
            heard.kind,
            heard.detail.unwrap_or_default()
        )))
    }

    /// Follows the inbox from `cursor` on and acknowledges, until `wanted` more rows have come; answers the cursor.
    pub(crate) async fn follow(
        &mut self,
        mut cursor: u64,
        wanted: usize,
        mut each: impl FnMut(usize),
    ) -> Result<u64> {
        let mut rows = 0;
        while rows < wanted {
            let text = self.hear().await?;
            let heard = parse(&text)?;
            match heard.kind {
                "entries" => {
                    rows += heard.entries.len();
                    cursor = heard.synced;
                    self.heartbeat(cursor).await?;
                    each(heard.entries.len());
                }
                "alive" => {}
                other => return Err(Failure::new(format!("a reader heard {other} {:?}", heard.detail))),
            }
        }
        Ok(cursor)
    }

    /// Waits until the inbox has a first row.
    pub(crate) async fn first_row(&mut self) -> Result<()> {
        self.heartbeat(0).await?;
        self.follow(0, 1, |_| {}).await.map(drop)
    }

    /// Catches up from `cursor` on until nothing is newer; answers the cursor.
    pub(crate) async fn begin_at(&mut self, mut cursor: u64) -> Result<u64> {
        loop {
            self.heartbeat(cursor).await?;
            let text = self.hear().await?;
            let heard = parse(&text)?;
            match heard.kind {
                "alive" => return Ok(cursor),
                "entries" => cursor = heard.synced,
                other => return Err(Failure::new(format!("a reader heard {other} {:?}", heard.detail))),
            }
        }
    }
}

/// Reads a frame.
pub(crate) fn parse(text: &Utf8Bytes) -> Result<Heard<'_>> {
    Ok(serde_json::from_str(text.as_str())?)
}

/// The text of a heartbeat.
pub(crate) fn heartbeat(seq: u64) -> String {
    format!(r#"{{"type":"heartbeat","seq":{seq}}}"#)
}

/// A new name for a message.
pub(crate) fn client_id() -> Uuid {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid()
}

/// The text of a send to `to`, which is JSON; `text` must need no escaping.
pub(crate) fn send_frame(client_id: Uuid, to: &str, text: &str) -> String {
    format!(r#"{{"type":"send","client_id":"{client_id}","to":{to},"body":{{"text":"{text}"}}}}"#)
}
