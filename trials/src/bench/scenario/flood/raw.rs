//! Connections that do what no client library does: bare bytes, from an address of their own.

use rand::RngExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::{Failure, Result};

/// Where a flood goes, and as whom.
#[derive(Clone, Debug)]
pub(super) struct Victim {
    pub(super) address: String,
    pub(super) token: String,
}

impl Victim {
    /// A connection from another address of this machine, which takes in little of what is not read.
    pub(super) async fn dial(&self) -> Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(16 << 10)?;
        socket.bind(([127, 0, 0, 2], 0).into())?;
        Ok(socket.connect(self.address.parse()?).await?)
    }

    /// The head of a request with a token and these further lines.
    pub(super) fn head(&self, request: &str, token: &str, lines: &str) -> String {
        let Victim { address, .. } = self;
        format!("{request} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{lines}\r\n")
    }

    /// A request with a JSON body, without a token.
    pub(super) fn post(&self, path: &str, body: &str) -> String {
        let (address, length) = (&self.address, body.len());
        format!("POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n\r\n{body}")
    }

    /// An open WebSocket.
    pub(super) async fn socket(&self) -> Result<TcpStream> {
        let lines = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                     sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let mut stream = self.dial().await?;
        stream.write_all(self.head("GET /ws", &self.token, lines).as_bytes()).await?;
        let mut first = [0; 12];
        stream.read_exact(&mut first).await?;
        match &first == b"HTTP/1.1 101" {
            true => Ok(stream),
            false => Err(Failure::new("no socket was opened")),
        }
    }
}

/// Asks, and waits for the first bytes of the answer.
pub(super) async fn ask(stream: &mut TcpStream, request: &str) -> Result<()> {
    stream.write_all(request.as_bytes()).await?;
    let mut answer = [0; 4_096];
    match stream.read(&mut answer).await? {
        0 => Err(Failure::new("the server closed the connection")),
        _ => Ok(()),
    }
}

/// A frame under a mask of zeros, which leaves the payload as it is.
pub(super) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match u8::try_from(payload.len()) {
        Ok(short) if short < 126 => bytes.push(0x80 | short),
        _ => {
            bytes.push(0x80 | 126);
            bytes.extend((payload.len() as u16).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

/// Reads on and forgets, until the end.
pub(super) async fn swallow(mut stream: tokio::net::tcp::OwnedReadHalf) {
    let mut ignored = vec![0; 64 << 10];
    while stream.read(&mut ignored).await.is_ok_and(|some| some > 0) {}
}

/// A word that nobody has used.
pub(super) fn word() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}
