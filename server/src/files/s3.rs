//! A bucket that speaks S3, over HTTP of our own: hyper and rustls, which this program has anyway.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::{Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tower_service::Service;

use super::address::{Address, Stream};

/// How long a connection, and how long the head of an answer, may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// For how long a request is tried again.
const TRIED_FOR: Duration = Duration::from_secs(10);
/// How often it is.
const TRIES: usize = 3;
/// Connections that are kept open while nothing is asked, and for how long.
const KEPT: usize = 16;
const KEPT_FOR: Duration = Duration::from_secs(30);

/// A URL of a bucket is written so.
const FORM: &str =
    "write s3://KEY:SECRET@HOST/BUCKET, perhaps with /PREFIX and ?region=REGION; s3+http:// is without TLS";

/// The bucket that a URL names, and the prefix within it. Nothing is asked of it yet.
pub(super) fn open(url: &str) -> Result<(Arc<dyn ObjectStore>, Path), String> {
    let schemes = [("s3://", "https"), ("s3+http://", "http")];
    let found = schemes.into_iter().find_map(|(scheme, http)| Some((url.strip_prefix(scheme)?, http)));
    let (rest, http) = found.ok_or_else(|| format!("is not understood; {FORM}"))?;
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let region = match query.split_once('=') {
        None if query.is_empty() => "us-east-1",
        Some(("region", region)) if !region.is_empty() && !region.contains('&') => region,
        _ => return Err(format!("has a parameter that is not region; {FORM}")),
    };
    // A secret may have slashes and the like.
    let (who, place) = place.rsplit_once('@').ok_or_else(|| format!("has no key; {FORM}"))?;
    let (key, secret) = who.split_once(':').ok_or_else(|| format!("has no secret; {FORM}"))?;
    let (host, path) = place.split_once('/').ok_or_else(|| format!("names no bucket; {FORM}"))?;
    let (bucket, prefix) =
        path.trim_end_matches('/').split_once('/').unwrap_or((path.trim_end_matches('/'), ""));
    if key.is_empty() || secret.is_empty() || bucket.is_empty() {
        return Err(format!("lacks a key, a secret or a bucket; {FORM}"));
    }
    let endpoint = format!("{http}://{host}");
    Address::of(&endpoint)?;
    let prefix = Path::parse(prefix).map_err(|error| error.to_string())?;
    let retry = RetryConfig { max_retries: TRIES, retry_timeout: TRIED_FOR, ..RetryConfig::default() };
    let store = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_region(region)
        .with_bucket_name(bucket)
        .with_access_key_id(key)
        .with_secret_access_key(secret)
        .with_allow_http(http == "http")
        .with_conditional_put(S3ConditionalPut::Disabled)
        .with_retry(retry)
        .with_http_connector(Connector)
        .build()
        .map_err(|error| format!("names no bucket that can be used: {error}"))?;
    Ok((Arc::new(store), prefix))
}

/// Makes clients.
#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(KEPT_FOR)
            .pool_max_idle_per_host(KEPT)
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(Dial);
        Ok(HttpClient::new(Requests(client)))
    }
}

/// Sends requests over connections that it keeps.
struct Requests(Client<Dial, HttpRequestBody>);

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Requests")
    }
}

#[async_trait]
impl HttpService for Requests {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = timeout(PATIENCE, self.0.request(request)).await;
        let answer = answer.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
        let answer = answer.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
            HttpError::new(kind, error)
        })?;
        let (head, body) = answer.into_parts();
        Ok(Response::from_parts(head, HttpResponseBody::new(Pieces(body))))
    }
}

/// A body whose errors are those of the store.
struct Pieces(Incoming);

impl Body for Pieces {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let frame = std::task::ready!(Pin::new(&mut self.0).poll_frame(cx));
        Poll::Ready(
            frame.map(|frame| frame.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))),
        )
    }
}

/// Connects to the host of an address.
#[derive(Clone, Debug)]
struct Dial;

impl Service<Uri> for Dial {
    type Response = TokioIo<Dialled>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Dialled>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        Box::pin(async move {
            let scheme = to.scheme_str().unwrap_or_default();
            let host = to.authority().map(|authority| authority.as_str()).unwrap_or_default();
            let address = Address::of(&format!("{scheme}://{host}")).map_err(io::Error::other)?;
            Ok(TokioIo::new(Dialled(timeout(PATIENCE, address.connect()).await??)))
        })
    }
}

/// A connection.
struct Dialled(Pin<Box<dyn Stream>>);

impl Connection for Dialled {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Dialled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Dialled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_bucket_or_says_what_it_lacks() {
        for good in [
            "s3://key:secret@s3.example.org/files",
            "s3+http://key:se/c+ret=@127.0.0.1:9000/files/of/chat?region=eu-central-1",
        ] {
            open(good).expect(good);
        }
        for (bad, said) in [
            ("files", "is not understood"),
            ("s3://s3.example.org/files", "has no key"),
            ("s3://key@s3.example.org/files", "has no secret"),
            ("s3://key:secret@s3.example.org", "names no bucket"),
            ("s3://key:secret@s3.example.org/", "lacks a key"),
            ("s3://key:secret@s3.example.org/files?x=1", "has a parameter"),
        ] {
            let reported = open(bad).map(drop).expect_err(bad);
            assert!(reported.starts_with(said), "{bad}: {reported}");
        }
    }
}
