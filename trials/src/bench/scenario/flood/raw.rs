//! Connections that do what no client library does: bare bytes, from an address of their own.

use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use tidemark_table::client::Credentials;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::{Failure, Result, table_setup};

/// The last number of the address that one comes from who does not flood.
pub(super) const QUIET: u8 = 1;

/// Where a flood goes, and as whom. It is written to a file, from which the process that floods reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Victim {
    pub(super) address: String,
    pub(super) token: String,
    /// The owner of the token.
    pub(super) login: Login,
    /// The person whose log-in is flooded.
    pub(super) person: Login,
    /// People that the flooder has never heard of.
    pub(super) strangers: Vec<u32>,
    /// Where tables are served.
    pub(super) tables: String,
    /// The key that opens them: the instance, the id and the secret.
    pub(super) key: [String; 3],
    /// The last number of the address that the flood comes from.
    pub(super) from: u8,
}

/// Somebody who logs in on a device that is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Login {
    pub(super) name: String,
    pub(super) password: String,
    pub(super) device: String,
}

impl Login {
    /// The body of a log-in with this password.
    pub(super) fn body(&self, password: &str) -> String {
        let Login { name, device, .. } = self;
        format!(r#"{{"name":"{name}","password":"{password}","device":"{device}"}}"#)
    }
}

impl Victim {
    /// A connection from another address of this machine, which takes in little of what is not read.
    pub(super) async fn dial(&self) -> Result<TcpStream> {
        self.dial_at(&self.address).await
    }

    /// The same to where tables are served.
    pub(super) async fn dial_tables(&self) -> Result<TcpStream> {
        self.dial_at(&self.tables).await
    }

    async fn dial_at(&self, address: &str) -> Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(16 << 10)?;
        socket.bind(([127, 0, 0, self.from], 0).into())?;
        Ok(socket.connect(address.parse()?).await?)
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

    /// The same with the token.
    pub(super) fn post_as(&self, path: &str, body: &str) -> String {
        let length = format!("content-length: {}\r\n", body.len());
        self.head(&format!("POST {path}"), &self.token, &length) + body
    }

    /// A request for an operation on tables, signed now.
    pub(super) fn table_request(&self, operation: &str, body: &[u8]) -> Result<Vec<u8>> {
        let [instance, access_key_id, access_key_secret] = self.key.clone();
        let credentials = Credentials { instance, access_key_id, access_key_secret };
        table_setup::request(&credentials, operation, body)
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

/// Asks over and over for what `request` makes, as fast as the server takes it, and reads the answers.
pub(super) async fn repeat(stream: TcpStream, mut request: impl FnMut() -> Vec<u8>) -> Result<()> {
    let (reading, mut writing) = stream.into_split();
    tokio::select! {
        () = swallow(reading) => Ok(()),
        done = async { loop { writing.write_all(&request()).await?; } } => done,
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
