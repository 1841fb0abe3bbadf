//! A bare WebSocket: frames out and in, nothing kept in step. It tests what the client library hides.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::contract::contract;
use super::{PATIENCE, client_id};

/// One connection.
pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// Opens one with this Authorization header and takes nothing off it yet.
    pub(crate) async fn open(address: &str, authorization: &str) -> Socket {
        Socket::dial(address, "/ws", &[("authorization", authorization)]).await.expect("opened")
    }

    /// Tries to open one; the refusal's status where it was refused.
    pub(crate) async fn dial(
        address: &str,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Socket, u16> {
        let mut request = format!("ws://{address}{path}").into_client_request().expect("an address");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        match timeout(PATIENCE, connect_async(request)).await.expect("in time") {
            Ok((stream, _)) => Ok(Socket(stream)),
            Err(Error::Http(response)) => {
                let status = response.status().as_u16();
                assert!(contract().await.names("socket", status), "{status} is not described");
                Err(status)
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends any message.
    pub(crate) async fn send_raw(&mut self, message: Message) {
        self.0.send(message).await.expect("sent");
    }

    /// Sends bytes as a text frame, whether they are a text or not.
    pub(crate) async fn send_raw_text_bytes(&mut self, bytes: &'static [u8]) {
        let text = OpCode::Data(Data::Text);
        self.send_raw(Message::Frame(Frame::message(bytes, text, true))).await;
    }

    /// Sends a text as it is; the other side may have closed already.
    pub(crate) async fn try_send(&mut self, text: String) -> bool {
        self.try_send_raw(Message::text(text)).await
    }

    /// The same with any message.
    pub(crate) async fn try_send_raw(&mut self, message: Message) -> bool {
        self.0.send(message).await.is_ok()
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, frame: &Value) {
        self.send_raw(Message::text(frame.to_string())).await;
    }

    pub(crate) async fn heartbeat(&mut self, seq: u64) {
        self.send(&json!({"type": "heartbeat", "seq": seq})).await;
    }

    /// Sends a message under the `n`th name.
    pub(crate) async fn say(&mut self, to: &Value, n: u128, text: &str) {
        let frame = json!({"type": "send", "client_id": client_id(n), "to": to, "body": {"text": text}});
        self.send(&frame).await;
    }

    /// The next frame, or the code with which the other side closed.
    pub(crate) async fn next(&mut self) -> Result<Value, u16> {
        loop {
            match timeout(PATIENCE, self.0.next()).await.expect("a frame in time") {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Close(Some(close)))) => return Err(close.code.into()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("neither a frame nor a close: {other:?}"),
            }
        }
    }

    /// The next frame, which must have this type.
    pub(crate) async fn expect(&mut self, kind: &str) -> Value {
        let frame = self.next().await.unwrap_or_else(|code| panic!("closed with {code} instead of {kind}"));
        assert_eq!(frame["type"], kind, "{frame}");
        frame
    }

    /// Takes `welcome` and heartbeats what it says; returns the cursor.
    pub(crate) async fn begin(&mut self) -> u64 {
        let seq = self.expect("welcome").await["seq"].as_u64().expect("a number");
        self.heartbeat(seq).await;
        self.expect("alive").await;
        seq
    }

    /// Checks that nothing is on its way but the answer to a heartbeat, which is returned.
    pub(crate) async fn only_answer_to(&mut self, seq: u64) -> Value {
        self.heartbeat(seq).await;
        self.next().await.expect("open")
    }

    /// Reads frames until the other side closes, and returns the code.
    pub(crate) async fn closed(&mut self) -> u16 {
        loop {
            if let Err(code) = self.next().await {
                return code;
            }
        }
    }
}
