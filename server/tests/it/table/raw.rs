//! Requests put together by hand, over connections of one's own.

use std::collections::HashMap;

use prost::Message;
use tidemark::domain::Clock;
use tidemark_table::wire::proto;
use tidemark_table::wire::sign::{Signer, content_md5};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::table::world::{Key, PATIENCE, World};

/// A request that may still be changed.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// With every header but the signature.
    pub(crate) fn new(key: &Key, operation: &str, body: Vec<u8>) -> Request {
        let headers = [
            ("x-ots-date", Clock::system().now().to_rfc3339()),
            ("x-ots-apiversion", "2015-12-31".to_owned()),
            ("x-ots-accesskeyid", key.id.clone()),
            ("x-ots-instancename", key.instance.clone()),
            ("x-ots-contentmd5", content_md5(&body)),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).into();
        Request { method: "POST", path: format!("/{operation}"), headers, body }
    }

    /// With this header, in place of another of its name.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Request {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Request {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// With a signature of version 2.
    pub(crate) fn signed(self, key: &Key) -> Request {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let signature = Signer::v2(&key.secret).sign_request(&self.path, &headers);
        self.with("x-ots-signature", &signature)
    }

    /// The bytes on the wire; `length` is the body's length in the head.
    pub(crate) fn bytes(&self, length: usize) -> Vec<u8> {
        let mut head =
            format!("{} {} HTTP/1.1\r\nhost: here\r\ncontent-length: {length}\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Checks that it refuses with this status and code in full form, and returns its text.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> String {
        let error = proto::Error::decode(&self.body[..]).expect("an error's message");
        assert_eq!((self.status, error.code.as_str()), (status, code), "{}", error.message);
        assert!(!error.message.is_empty());
        assert_eq!(self.headers["x-ots-requestid"].len(), 36);
        error.message
    }

    /// The message of a success.
    #[track_caller]
    pub(crate) fn message<M: Message + Default>(&self) -> M {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        M::decode(&self.body[..]).expect("the message")
    }
}

/// A connection that is kept.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Connection {
        let stream = TcpStream::connect(address).await.expect("it listens");
        stream.set_nodelay(true).expect("open");
        Connection { stream, read: Vec::new() }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn close_sending(&mut self) {
        self.stream.shutdown().await.expect("open");
    }

    /// The next answer; `None`: the other end closed before one began.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        timeout(PATIENCE, self.next_answer()).await.expect("in time")
    }

    async fn next_answer(&mut self) -> Option<Answer> {
        loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(self.read[..end].to_vec()).expect("text");
                let mut lines = head.lines();
                let status = lines.next()?.split(' ').nth(1)?.parse().expect("a status");
                let headers: HashMap<_, _> = lines
                    .filter_map(|line| line.split_once(':'))
                    .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                    .collect();
                let length: usize = headers["content-length"].parse().expect("a length");
                while self.read.len() < end + 4 + length {
                    assert!(self.more().await, "an answer was cut off");
                }
                let body = self.read[end + 4..end + 4 + length].to_vec();
                self.read.drain(..end + 4 + length);
                return Some(Answer { status, headers, body });
            }
            if !self.more().await {
                assert!(self.read.is_empty(), "an answer was cut off");
                return None;
            }
        }
    }

    async fn more(&mut self) -> bool {
        self.stream.read_buf(&mut self.read).await.is_ok_and(|bytes| bytes > 0)
    }
}

impl World {
    /// Sends a request as it is, over a connection of its own.
    pub(crate) async fn send(&self, request: &Request) -> Answer {
        let mut connection = Connection::open(&self.tables).await;
        connection.write(&request.bytes(request.body.len())).await.expect("open");
        connection.answer().await.expect("an answer")
    }

    /// Calls an operation as an SDK would.
    pub(crate) async fn call(&self, operation: &str, message: &impl Message) -> Answer {
        self.send(&Request::new(&self.key, operation, message.encode_to_vec()).signed(&self.key)).await
    }

    /// Makes a table with the key columns `g`, a text, and `id`, an integer that the server assigns.
    pub(crate) async fn make_table(&self, name: &str) {
        let column = |name: &str, kind: proto::KeyColumnType, option| proto::KeyColumn {
            name: name.to_owned(),
            r#type: Some(kind as i32),
            option,
        };
        let assigned = Some(proto::KeyColumnOption::AutoIncrement as i32);
        let meta = proto::TableMeta {
            table_name: name.to_owned(),
            key_columns: vec![
                column("g", proto::KeyColumnType::String, None),
                column("id", proto::KeyColumnType::Integer, assigned),
            ],
            ..proto::TableMeta::default()
        };
        let unit = proto::CapacityUnit { read: 0, write: 0 };
        let request = proto::CreateTableRequest {
            table_meta: Some(meta),
            reserved_throughput: Some(proto::ReservedThroughput { capacity_unit: unit }),
            table_options: Some(proto::Options {
                time_to_live: Some(-1),
                max_versions: Some(1),
                ..proto::Options::default()
            }),
            ..proto::CreateTableRequest::default()
        };
        self.call("CreateTable", &request).await.message::<proto::CreateTableResponse>();
    }
}
