//! The way to a push service: one connection for each push, to an address that was looked at, with TLS, for a bounded time.
//!
//! A name is asked for at each push, and the connection goes to the very address that was checked: a name that leads elsewhere the next
//! time leads nowhere inside. Redirects are not followed. Knows no state but the key and the certificates that the system trusts.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::address::is_public;
use super::endpoint::Endpoint;
use super::message::DeviceKeys;
use super::vapid::VapidKey;
use crate::domain::{MessageId, Timestamp};
use crate::tls_roots::trusting_the_system;

/// How long a push may take, from the question for the address to the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 3;
/// For how long a push service keeps a push for a device that it does not reach, in seconds: four weeks, the most that all take.
const TTL: u32 = 28 * 24 * 60 * 60;
/// A later push takes the place of an earlier one that has not come yet.
const TOPIC: &str = "inbox";

/// The choices of the operator about pushes.
#[derive(Clone, Debug, Default)]
pub struct PushOptions {
    /// Addresses inside a network to which pushes may go nevertheless.
    pub allowed: Vec<IpNet>,
    /// An address of the operator, told to push services: an https or mailto URL.
    pub contact: Option<String>,
}

/// All push services, as this server reaches them.
pub struct PushServices {
    key: VapidKey,
    options: PushOptions,
    tls: OnceCell<TlsConnector>,
}

/// The answer of a push service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushAnswer {
    /// It has taken the push.
    Taken,
    /// The subscription has ended.
    Gone,
    /// It did not take it: its status, and after how long the same may succeed, where it says so.
    NotTaken(StatusCode, Option<Duration>),
}

/// No answer came.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// Nothing was sent.
    #[error(
        "its host has the address {0}, which is not on the internet; [push] allow lists addresses to which pushes may go nevertheless"
    )]
    Inside(IpAddr),
    /// It may have come.
    #[error("there is no answer: {0}")]
    Unanswered(String),
}

impl PushServices {
    /// They know this installation by `key`.
    pub fn new(key: VapidKey, options: PushOptions) -> PushServices {
        PushServices { key, options, tls: OnceCell::new() }
    }

    /// The public half of the key, as a browser takes it.
    pub fn public_key(&self) -> String {
        self.key.public()
    }

    /// Whether an endpoint names an address to which no push goes. The addresses of a name are seen when a push goes there.
    pub fn refuses(&self, endpoint: &Endpoint) -> bool {
        endpoint.literal().is_some_and(|address| !self.may_reach(address))
    }

    fn may_reach(&self, address: IpAddr) -> bool {
        is_public(address) || self.options.allowed.iter().any(|range| range.contains(&address.to_canonical()))
    }

    /// Tells a device that its inbox has rows up to `seq`.
    ///
    /// # Errors
    /// [`PushError`].
    pub async fn push(
        &self,
        endpoint: &Endpoint,
        keys: &DeviceKeys,
        seq: MessageId,
        now: Timestamp,
    ) -> Result<PushAnswer, PushError> {
        // Large, and rarely at work.
        let pushing = Box::pin(self.push_at(endpoint, keys, seq, now));
        timeout(PATIENCE, pushing)
            .await
            .unwrap_or_else(|_| Err(PushError::Unanswered(format!("within {} seconds", PATIENCE.as_secs()))))
    }

    async fn push_at(
        &self,
        endpoint: &Endpoint,
        keys: &DeviceKeys,
        seq: MessageId,
        now: Timestamp,
    ) -> Result<PushAnswer, PushError> {
        let tls = self.tls.get_or_try_init(async || trusting_the_system().map(TlsConnector::from));
        let tls = tls.await.map_err(unanswered)?;
        let request = self.request(endpoint, keys, seq, now).map_err(unanswered)?;
        let stream = self.connect(endpoint).await?;
        let name = ServerName::try_from(endpoint.host().to_owned()).map_err(unanswered)?;
        let stream = tls.connect(name, stream).await.map_err(unanswered)?;
        let (mut requests, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(unanswered)?;
        let mut connection = pin!(connection);
        let mut answer = pin!(requests.send_request(request));
        let answer = tokio::select! {
            answer = &mut answer => answer,
            ended = &mut connection => match ended {
                // The answer came with the end.
                Ok(()) => answer.await,
                Err(error) => Err(error),
            },
        };
        answer.map(|answer| read(&answer)).map_err(unanswered)
    }

    fn request(
        &self,
        endpoint: &Endpoint,
        keys: &DeviceKeys,
        seq: MessageId,
        now: Timestamp,
    ) -> Result<Request<Whole>, Box<dyn std::error::Error + Send + Sync>> {
        let body =
            keys.encrypt(format!("{{\"seq\":{seq}}}").as_bytes()).map_err(|error| error.to_string())?;
        let token = self.key.authorization(&endpoint.origin(), self.options.contact.as_deref(), now)?;
        let request = Request::post(endpoint.path())
            .header(header::HOST, endpoint.authority())
            .header(header::AUTHORIZATION, token)
            .header(header::CONTENT_ENCODING, "aes128gcm")
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header("ttl", TTL)
            .header("urgency", "high")
            .header("topic", TOPIC);
        Ok(request.body(Whole(Some(body.into())))?)
    }

    /// A connection to one of the host's addresses, none of which is inside a network.
    async fn connect(&self, endpoint: &Endpoint) -> Result<TcpStream, PushError> {
        let found: Vec<SocketAddr> =
            lookup_host((endpoint.host(), endpoint.port())).await.map_err(unanswered)?.collect();
        if let Some(inside) = found.iter().find(|address| !self.may_reach(address.ip())) {
            return Err(PushError::Inside(inside.ip()));
        }
        let mut failed = PushError::Unanswered("its host has no address".to_owned());
        for address in found.into_iter().take(MOST_ADDRESSES) {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = unanswered(error),
            }
        }
        Err(failed)
    }
}

/// A body that is there at once.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

fn unanswered(error: impl std::fmt::Display) -> PushError {
    PushError::Unanswered(error.to_string())
}

/// The body of an answer is not looked at.
fn read<B>(answer: &Response<B>) -> PushAnswer {
    match answer.status() {
        status if status.is_success() => PushAnswer::Taken,
        StatusCode::NOT_FOUND | StatusCode::GONE => PushAnswer::Gone,
        status => {
            let wait = answer.headers().get(header::RETRY_AFTER);
            let wait = wait.and_then(|wait| wait.to_str().ok()?.trim().parse().ok());
            PushAnswer::NotTaken(status, wait.map(Duration::from_secs))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_taken_gone_or_not_taken() {
        let answer = |status: u16, wait: Option<&str>| {
            let mut answer = Response::builder().status(status);
            if let Some(wait) = wait {
                answer = answer.header(header::RETRY_AFTER, wait);
            }
            read(&answer.body(()).expect("an answer"))
        };
        assert_eq!([200, 201, 202].map(|status| answer(status, None)), [PushAnswer::Taken; 3]);
        assert_eq!([404, 410].map(|status| answer(status, None)), [PushAnswer::Gone; 2]);
        let later = PushAnswer::NotTaken(StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_secs(120)));
        assert_eq!(answer(429, Some(" 120")), later);
        assert_eq!(answer(307, None), PushAnswer::NotTaken(StatusCode::TEMPORARY_REDIRECT, None));
        assert_eq!(answer(500, Some("soon")), PushAnswer::NotTaken(StatusCode::INTERNAL_SERVER_ERROR, None));
    }

    #[tokio::test]
    async fn nothing_goes_inside_a_network_unless_that_is_allowed() {
        let key = || VapidKey::from_stored(&VapidKey::draw().expect("random")).expect("a key");
        let closed = PushServices::new(key(), PushOptions::default());
        for inside in
            ["https://127.0.0.1:1/x", "https://localhost:1/x", "https://[::1]:1/x", "https://10.0.0.1/x"]
        {
            let endpoint: Endpoint = inside.parse().expect("an endpoint");
            assert!(closed.refuses(&endpoint), "{inside}");
            let refused = closed.connect(&endpoint).await.expect_err(inside);
            assert!(matches!(refused, PushError::Inside(_)), "{inside}: {refused}");
        }
        // A number is an address to whoever looks it up.
        let number: Endpoint = "https://2130706433:1/x".parse().expect("an endpoint");
        let refused = closed.connect(&number).await.expect_err("loopback");
        assert!(matches!(refused, PushError::Inside(_) | PushError::Unanswered(_)), "{refused}");
        let allowed = vec!["127.0.0.0/8".parse().expect("a range")];
        let open = PushServices::new(key(), PushOptions { allowed, contact: None });
        let endpoint: Endpoint = "https://127.0.0.1:1/x".parse().expect("an endpoint");
        assert!(!open.refuses(&endpoint));
        let refused = open.connect(&endpoint).await.expect_err("nobody listens");
        assert!(matches!(refused, PushError::Unanswered(_)), "{refused}");
    }
}
