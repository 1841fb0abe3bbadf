//! A client of a server that serves tables: one connection, one request after the other.

use std::time::Duration;

use axum::body::Body;
use clap::Args;
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tidemark_table::client::{Credentials, path};
use tokio::time::timeout;

use crate::cli::ExitError;
use crate::domain::Clock;
use crate::files::Address;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes of an answer: a page of 4 MiB, and what is around its rows.
const MOST_BYTES: usize = 64 << 20;

/// Which server, and who asks.
#[derive(Debug, Args)]
pub(super) struct TableServer {
    /// Where the server serves tables, http://HOST:PORT, or https://HOST behind a TLS proxy
    #[arg(
        long,
        env = "TIDEMARK_TABLE_ENDPOINT",
        value_name = "URL",
        default_value = "http://127.0.0.1:8081"
    )]
    endpoint: String,
    /// The instance
    #[arg(long, env = "TIDEMARK_TABLE_INSTANCE", value_name = "NAME")]
    instance: String,
    /// The id of the access key
    #[arg(long, env = "TIDEMARK_TABLE_ACCESS_KEY_ID", value_name = "ID")]
    access_key_id: String,
    /// The secret of the access key. Others on this machine can read a command line: prefer the variable
    #[arg(long, env = "TIDEMARK_TABLE_ACCESS_KEY_SECRET", value_name = "SECRET", hide_env_values = true)]
    access_key_secret: String,
}

/// A connection to a server.
pub(super) struct TableConnection {
    credentials: Credentials,
    endpoint: String,
    host: String,
    requests: SendRequest<Body>,
}

impl TableServer {
    /// Connects to it.
    pub(super) async fn connect(self) -> Result<TableConnection, ExitError> {
        let TableServer { endpoint, instance, access_key_id, access_key_secret } = self;
        let address = Address::of(&endpoint).map_err(|why| ExitError::usage(format!("--endpoint {why}")))?;
        let unreachable = |why: &dyn std::fmt::Display| {
            ExitError::failed(format!(
                "{endpoint} cannot be reached ({why}); is it where a server serves tables ([table] enabled)?"
            ))
        };
        let stream = timeout(PATIENCE, address.connect()).await;
        let stream = stream.map_err(|_| unreachable(&"no answer"))?.map_err(|why| unreachable(&why))?;
        let (requests, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|why| unreachable(&why))?;
        // A failure of the connection fails the request on it, which reports it.
        tokio::spawn(connection);
        let credentials = Credentials { instance, access_key_id, access_key_secret };
        Ok(TableConnection { credentials, endpoint, host: address.host, requests })
    }
}

impl TableConnection {
    /// Asks for an operation, and returns the answer's body when it is one.
    pub(super) async fn call(&mut self, operation: &str, body: Vec<u8>) -> Result<Vec<u8>, ExitError> {
        let date = Clock::system().now().to_rfc3339();
        let mut request = Request::post(path(operation)).header("host", &self.host);
        for (name, value) in self.credentials.headers(operation, &body, &date) {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body)).map_err(|_| {
            ExitError::usage("--instance, --access-key-id and --access-key-secret hold letters and digits")
        })?;
        let endpoint = &self.endpoint;
        let then = match operation {
            "PutRow" => {
                "the row may have been put; check with `tidemark table range` before you put it again"
            }
            _ => "try again",
        };
        let failed = |why: &dyn std::fmt::Display| {
            ExitError::failed(format!("{endpoint} did not answer ({why}); {then}"))
        };
        let (status, headers, body) = timeout(PATIENCE, answer(&mut self.requests, request))
            .await
            .map_err(|_| failed(&"within a minute"))?
            .map_err(|why| failed(&why))?;
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.credentials.check(operation, status, &headers, &body).map_err(ExitError::failed)?;
        Ok(body)
    }
}

type ServerAnswer = (u16, Vec<(String, String)>, Vec<u8>);

async fn answer(
    requests: &mut SendRequest<Body>,
    request: Request<Body>,
) -> Result<ServerAnswer, Box<dyn std::error::Error + Send + Sync>> {
    requests.ready().await?;
    let answer: hyper::Response<Incoming> = requests.send_request(request).await?;
    let status = answer.status().as_u16();
    let mut headers = Vec::new();
    for (name, value) in answer.headers() {
        headers.push((name.as_str().to_owned(), value.to_str()?.to_owned()));
    }
    let body = axum::body::to_bytes(Body::new(answer.into_body()), MOST_BYTES).await?;
    Ok((status, headers, body.into()))
}
