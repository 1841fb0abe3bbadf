//! The opening handshake of a WebSocket (RFC 6455, section 4.2), up to the bare connection. The connection is handed on
//! as it is, since what passes over it is counted before the WebSocket library sees it.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http::error::Problem;
use crate::workers::watched;

/// A request that asks for a WebSocket.
pub(in crate::http) struct Handshake {
    accept: HeaderValue,
    on_upgrade: OnUpgrade,
}

impl<S: Send + Sync> FromRequestParts<S> for Handshake {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Handshake, Problem> {
        let refused = |what: &str| {
            let detail = format!("this address speaks WebSocket: {what}");
            Problem::new(StatusCode::UPGRADE_REQUIRED, "websocket_only", detail)
        };
        if !lists(&parts.headers, header::CONNECTION, "upgrade")
            || !lists(&parts.headers, header::UPGRADE, "websocket")
        {
            return Err(refused("send `Connection: Upgrade` and `Upgrade: websocket`"));
        }
        if parts.headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
            return Err(refused("send `Sec-WebSocket-Version: 13`"));
        }
        let key = parts.headers.get(header::SEC_WEBSOCKET_KEY);
        let key = key.ok_or_else(|| refused("send a `Sec-WebSocket-Key`"))?;
        let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).expect("base64");
        let on_upgrade = parts.extensions.remove::<OnUpgrade>();
        let on_upgrade = on_upgrade.ok_or_else(|| refused("open it over HTTP/1.1"))?;
        Ok(Handshake { accept, on_upgrade })
    }
}

impl Handshake {
    /// Answers the request; `serve` gets the connection once the answer is on its way.
    pub(super) fn complete<F>(self, serve: impl FnOnce(TokioIo<Upgraded>) -> F + Send + 'static) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let Handshake { accept, on_upgrade } = self;
        tokio::spawn(watched("socket", async move {
            match on_upgrade.await {
                Ok(upgraded) => serve(TokioIo::new(upgraded)).await,
                Err(error) => tracing::debug!(%error, "a socket was gone before it began"),
            }
        }));
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        response
    }
}

/// Whether one of the words of this header is `word`, in small or capital letters.
fn lists(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[tokio::test]
    async fn a_request_that_is_no_handshake_is_refused_by_what_it_lacks() {
        const WHOLE: [(&str, &str); 4] = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        for (left_out, _) in WHOLE {
            let mut request = Request::builder();
            for (name, value) in WHOLE.iter().filter(|(name, _)| *name != left_out) {
                request = request.header(*name, *value);
            }
            let (mut parts, ()) = request.body(()).expect("a request").into_parts();
            let problem = Handshake::from_request_parts(&mut parts, &()).await.err().expect("refused");
            assert_eq!(problem.code, "websocket_only");
            assert!(problem.detail.to_lowercase().contains(left_out), "{left_out}: {}", problem.detail);
        }
    }
}
