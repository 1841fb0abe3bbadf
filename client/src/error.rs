//! Errors: the server refused, the way to it broke, or it spoke another protocol.
//!
//! Callers mostly ask one question, [`Error::is_retryable`]; the rest is for people.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use tokio_tungstenite::tungstenite;

/// A refusal by the server: an RFC 9457 problem document, or an `error` frame on the WebSocket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The HTTP status, 400 to 599; 0 where it came as a frame, which has none.
    #[serde(default)]
    pub status: u16,
    /// A stable word to decide by, for example `name_taken`.
    pub code: String,
    /// The problem and its remedy, for people.
    #[serde(default)]
    pub detail: String,
    /// Whether the same request may succeed later without a change.
    #[serde(default)]
    pub retryable: bool,
    /// Seconds after which it may, or after which a new request like it may, where that is known: in slow mode, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.as_str() {
            "" => write!(f, "the server refused: {}", self.code),
            detail => write!(f, "the server refused: {detail} ({})", self.code),
        }
    }
}

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with a refusal.
    #[error("{0}")]
    Refused(Problem),
    /// The token is no longer good (close code 4401, or status 401 at the handshake): log in again.
    #[error("logged out: log in again")]
    LoggedOut,
    /// The WebSocket was closed; `code` is `None` when the connection ended without a close frame.
    #[error("the connection was closed (code {code:?}) {reason}")]
    Closed {
        /// The close code: 1012 is a restart of the server, 1008 a breach of its rules.
        code: Option<u16>,
        /// The words that came with the code.
        reason: String,
    },
    /// The server could not be reached, or the connection broke.
    #[error("the connection to the server failed: {0}")]
    Transport(String),
    /// The server sent something that this client cannot read.
    #[error("the server's answer was not understood: {0}")]
    Protocol(String),
    /// The local store failed; nothing of what was being stored counts as stored.
    #[error("the local store failed: {0}")]
    Store(#[from] io::Error),
    /// The address or the token cannot be used as given.
    #[error("{0}")]
    Usage(String),
    /// The client was stopped before the message was settled; send it again under the same `client_id`.
    #[error("the client has stopped")]
    Stopped,
}

impl Error {
    /// Whether doing the same again, later, may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Refused(problem) => problem.retryable,
            Error::Closed { .. } | Error::Transport(_) | Error::Store(_) | Error::Stopped => true,
            Error::LoggedOut | Error::Protocol(_) | Error::Usage(_) => false,
        }
    }

    /// The refusal's stable code, if it is a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Refused(problem) => Some(&problem.code),
            _ => None,
        }
    }

    /// The refusal's HTTP status, if it is a refusal that came over HTTP.
    pub fn status(&self) -> Option<u16> {
        match self {
            Error::Refused(problem) if problem.status != 0 => Some(problem.status),
            _ => None,
        }
    }
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        let text = with_causes(&error);
        // Bodies are taken as bytes: what reqwest calls an error of decoding is one that was cut off.
        if error.is_builder() { Error::Usage(text) } else { Error::Transport(text) }
    }
}

impl From<tungstenite::Error> for Error {
    fn from(error: tungstenite::Error) -> Self {
        use tungstenite::Error as Ws;
        match error {
            Ws::ConnectionClosed | Ws::AlreadyClosed => Error::Closed { code: None, reason: String::new() },
            Ws::Http(response) => Error::from_response(
                response.status().as_u16(),
                response.body().as_deref().unwrap_or_default(),
            ),
            Ws::Url(_) | Ws::HttpFormat(_) => Error::Usage(with_causes(&error)),
            Ws::Capacity(_) | Ws::Utf8(_) => Error::Protocol(with_causes(&error)),
            other => Error::Transport(with_causes(&other)),
        }
    }
}

impl Error {
    /// Reads a refusal; a body that is no problem document (a proxy's page) is judged by its status.
    pub(crate) fn from_response(status: u16, body: &[u8]) -> Error {
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => Error::Refused(Problem { status, ..problem }),
            Err(_) => Error::Refused(Problem {
                status,
                code: format!("http_{status}"),
                detail: String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned(),
                retryable: status == 429 || status >= 500,
                retry_after: None,
            }),
        }
    }
}

/// The error with its chain of causes: reqwest and tungstenite say the useful part last.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_document_keeps_its_code_and_advice() {
        let body = br#"{"type":"/docs#code-name_taken","title":"Conflict","status":409,"code":"name_taken",
            "detail":"ann is taken","retryable":false}"#;
        let error = Error::from_response(409, body);
        assert_eq!((error.code(), error.status()), (Some("name_taken"), Some(409)));
        assert!(!error.is_retryable());
        assert_eq!(error.to_string(), "the server refused: ann is taken (name_taken)");
    }

    #[test]
    fn a_page_of_a_proxy_is_judged_by_its_status() {
        let busy = Error::from_response(503, b"<html>down for maintenance</html>");
        assert!(busy.is_retryable());
        assert_eq!(busy.code(), Some("http_503"));
        assert!(!Error::from_response(404, b"").is_retryable());
    }
}
