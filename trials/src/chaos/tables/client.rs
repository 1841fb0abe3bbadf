//! A client of tables over one connection, as other programs have it: signed requests, checked answers. A broken connection is made anew
//! with the next server.

use std::time::Duration;

use axum::body::Body;
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use prost::Message;
use tidemark_table::client::{AnswerError, Credentials, path};
use tidemark_table::wire::proto;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::table_setup::{create_table, now};
use crate::{Failure, Result};

/// How long an answer may take: longer than a server stands still.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause before the next server is tried.
const PAUSE: Duration = Duration::from_millis(20);
/// The most bytes of an answer: a page of 4 MiB, and what is around its rows.
const MOST_BYTES: usize = 64 << 20;
/// The table of a fault run.
pub(super) const TABLE: &str = "ledger";

/// The outcome of a call.
pub(super) enum Called<A> {
    /// The answer.
    Done(A),
    /// The server refuses, and has done nothing.
    Refused,
    /// No answer, or one that leaves it open.
    Unknown,
}

/// See the module.
pub(super) struct TableCaller {
    credentials: Credentials,
    /// Where tables are served, `HOST:PORT`.
    addresses: Vec<String>,
    /// The one that it talks to.
    at: usize,
    requests: Option<SendRequest<Body>>,
}

impl TableCaller {
    /// A client of any of `addresses`, which begins with the one at `first`.
    pub(super) fn new(credentials: &Credentials, addresses: &[String], first: usize) -> TableCaller {
        TableCaller {
            credentials: credentials.clone(),
            addresses: addresses.to_vec(),
            at: first,
            requests: None,
        }
    }

    /// Asks for an operation, once.
    ///
    /// # Errors
    /// When the server answers what it never may.
    pub(super) async fn call<A: Message + Default>(
        &mut self,
        operation: &str,
        message: &impl Message,
    ) -> Result<Called<A>> {
        let body = message.encode_to_vec();
        let mut requests = self.connect().await?;
        let mut request = Request::post(path(operation)).header("host", self.address());
        for (name, value) in self.credentials.headers(operation, &body, &now()?) {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body))?;
        let Ok(Ok((status, headers, body))) = timeout(PATIENCE, answer(&mut requests, request)).await else {
            self.at += 1;
            return Ok(Called::Unknown);
        };
        self.requests = Some(requests);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        match self.credentials.check(operation, status, &headers, &body) {
            Ok(()) => Ok(Called::Done(A::decode(&body[..])?)),
            Err(AnswerError::Refused { code, message }) => match code.as_str() {
                "OTSServerBusy" | "OTSRowOperationConflict" | "OTSRequestTimeout" => Ok(Called::Refused),
                "OTSTimeout" => Ok(Called::Unknown),
                _ => Err(Failure::new(format!("{operation} was refused for good: {code}: {message}"))),
            },
            Err(untrusted) => Err(untrusted.into()),
        }
    }

    /// Asks until there is an answer. For operations that may be repeated.
    ///
    /// # Errors
    /// When there is none for a long time, and as [`TableCaller::call`].
    pub(super) async fn ask<A: Message + Default>(
        &mut self,
        operation: &str,
        message: &impl Message,
    ) -> Result<A> {
        let answered = async {
            loop {
                match self.call(operation, message).await? {
                    Called::Done(answer) => return Ok(answer),
                    Called::Refused | Called::Unknown => sleep(PAUSE).await,
                }
            }
        };
        let late = |_| Failure::new(format!("{operation} was not answered within {:?}", 4 * PATIENCE));
        timeout(4 * PATIENCE, answered).await.map_err(late)?
    }

    /// A connection to a server that takes one.
    async fn connect(&mut self) -> Result<SendRequest<Body>> {
        if let Some(requests) = self.requests.take() {
            return Ok(requests);
        }
        let connected = async {
            loop {
                if let Ok(stream) = TcpStream::connect(self.address()).await
                    && stream.set_nodelay(true).is_ok()
                    && let Ok((requests, connection)) = http1::handshake(TokioIo::new(stream)).await
                {
                    // A failure of the connection fails the request on it.
                    tokio::spawn(connection);
                    return requests;
                }
                self.at += 1;
                sleep(PAUSE).await;
            }
        };
        let connected = timeout(4 * PATIENCE, connected).await;
        connected.map_err(|_| Failure::new("no server takes connections for tables"))
    }

    fn address(&self) -> &str {
        &self.addresses[self.at % self.addresses.len()]
    }
}

type RawAnswer = (u16, Vec<(String, String)>, Vec<u8>);

async fn answer(requests: &mut SendRequest<Body>, request: Request<Body>) -> Result<RawAnswer> {
    requests.ready().await?;
    let answer = requests.send_request(request).await?;
    let status = answer.status().as_u16();
    let mut headers = Vec::new();
    for (name, value) in answer.headers() {
        headers.push((name.as_str().to_owned(), value.to_str()?.to_owned()));
    }
    let body = axum::body::to_bytes(Body::new(answer.into_body()), MOST_BYTES).await?;
    Ok((status, headers, body.into()))
}

/// Makes the table: `group`, a text, and `id`, an integer that the server assigns.
pub(super) async fn make_table(client: &mut TableCaller) -> Result<()> {
    let request = create_table(TABLE, "group");
    client.ask::<proto::CreateTableResponse>("CreateTable", &request).await.map(drop)
}
