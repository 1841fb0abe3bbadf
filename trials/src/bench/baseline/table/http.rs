//! A bare hyper server of PutRow: it reads a request, checks its signature and the MD5 of its body, decodes the row, and
//! signs an answer of the same form as the server's. It stores nothing, or, to show what durable rows cost at the least, it appends each body to a
//! file and syncs it before it answers.
//!
//! It runs in a process of its own, as the server does.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::body::{Body, to_bytes};
use axum::http::HeaderValue;
use axum::http::header::AUTHORIZATION;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tidemark_table::client::Credentials;
use tidemark_table::operations::write::{self, WriteKind, WriteRequest};
use tidemark_table::rows::capacity::Consumed;
use tidemark_table::wire::sign::{HEADER_PREFIX, Signer, content_md5};
use tidemark_table::{Row, TableDefinition, TableError};
use tokio::net::TcpListener;

use super::append::Appender;
use crate::bench::tables;
use crate::{Failure, Result};

const SIGNATURE: &str = "x-ots-signature";
const MOST_BYTES: usize = 1 << 20;
/// The cost of a row.
const ONE: Consumed = Consumed { read: 0, write: 1 };
/// As long as a real one.
const DATE: &str = "2026-11-22T01:02:03.000004Z";

/// The access key that it takes: names as long as real ones.
pub(crate) fn credentials() -> Credentials {
    Credentials {
        instance: tables::INSTANCE.to_owned(),
        access_key_id: "TIDEbarebarebarebarebare".to_owned(),
        access_key_secret: "bare-secret-bare-secret-bare-secret-bare".to_owned(),
    }
}

struct BareTable {
    file: Option<Appender>,
    credentials: Credentials,
    definition: TableDefinition,
    last: AtomicI64,
}

/// Serves until the process is killed; prints the address first. With `file`, rows are durable there before the answer.
pub(crate) async fn serve(file: Option<&Path>) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let bare = Arc::new(BareTable {
        file: file.map(Appender::new).transpose()?,
        credentials: credentials(),
        definition: tables::definition(),
        last: AtomicI64::new(0),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let bare = Arc::clone(&bare);
        let service = service_fn(move |request| {
            let bare = Arc::clone(&bare);
            async move { Ok::<_, Infallible>(bare.answer(request).await.unwrap_or_else(failed)) }
        });
        let connection =
            http1::Builder::new().half_close(true).serve_connection(TokioIo::new(stream), service);
        // A connection ends with the load.
        tokio::spawn(async move { drop(connection.await) });
    }
}

fn refused(error: TableError) -> Failure {
    Failure::new(format!("{error}"))
}

/// Nothing that the load sends is refused; this says why a run fails.
fn failed(failure: Failure) -> Response<Body> {
    let mut response = Response::new(Body::from(failure.to_string()));
    *response.status_mut() = hyper::StatusCode::BAD_REQUEST;
    response
}

impl BareTable {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>> {
        let (parts, body) = request.into_parts();
        let mut headers = Vec::with_capacity(8);
        let mut signature = "";
        for (name, value) in &parts.headers {
            match name.as_str() {
                SIGNATURE => signature = value.to_str()?,
                name if name.starts_with(HEADER_PREFIX) => headers.push((name, value.to_str()?)),
                _ => {}
            }
        }
        let path = parts.uri.path();
        let signer = Signer::v2(&self.credentials.access_key_secret);
        if !signer.verifies_request(path, &headers, signature) {
            return Err(Failure::new("the signature is wrong"));
        }
        let body = to_bytes(Body::new(body), MOST_BYTES).await?;
        let md5 = content_md5(&body);
        if !headers.contains(&("x-ots-contentmd5", &md5)) {
            return Err(Failure::new("the body has another MD5"));
        }
        let (_, request) = write::decode(WriteKind::Put, &body).map_err(refused)?;
        let answer = write::answer(ONE, Some(&self.row(&request)?));
        if let Some(file) = &self.file {
            file.append(body.to_vec()).await?;
        }
        self.signed(&signer, path, answer)
    }

    /// The answer for a row: its key, with the next number.
    fn row(&self, request: &WriteRequest) -> Result<Row> {
        let row = request.checked(&self.definition).map_err(refused)?;
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Row { key: row.key.with(Some(id)), cells: Vec::new() })
    }

    fn signed(&self, signer: &Signer, path: &str, answer: Vec<u8>) -> Result<Response<Body>> {
        let md5 = content_md5(&answer);
        let id = self.last.load(Ordering::Relaxed);
        let id = format!("00064a1c-3f2e-8d10-0000-{id:012x}");
        let headers = [
            ("x-ots-contentmd5", md5.as_str()),
            ("x-ots-requestid", &id),
            ("x-ots-date", DATE),
            ("x-ots-contenttype", "protocol buffer"),
        ];
        let signature = signer.sign_answer(path, &headers);
        let authorization = format!("OTS {}:{signature}", self.credentials.access_key_id);
        let mut response = Response::new(Body::from(answer));
        let written = response.headers_mut();
        for (name, value) in headers {
            written.insert(name, HeaderValue::from_str(value)?);
        }
        written.insert(AUTHORIZATION, HeaderValue::try_from(authorization)?);
        Ok(response)
    }
}
