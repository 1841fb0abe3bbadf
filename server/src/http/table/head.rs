//! The head of a request: which operation, and whether the caller may call at all. Nothing of the body is needed for that, since its
//! MD5 is among the headers that are signed.

use std::sync::Arc;

use axum::http::{HeaderMap, Method, Uri};
use tidemark_table::wire::sign::{HEADER_PREFIX, Signer};
use tidemark_table::{ErrorCode, TableError};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{ExchangeParts, busy};
use crate::store::{AccessKey, StoreError};

const DATE: &str = "x-ots-date";
const VERSION: &str = "x-ots-apiversion";
const ACCESS_KEY: &str = "x-ots-accesskeyid";
const INSTANCE: &str = "x-ots-instancename";
pub(super) const MD5: &str = "x-ots-contentmd5";
const SIGNATURE_V2: &str = "x-ots-signature";
const SIGNATURE_V4: &str = "x-ots-signaturev4";
const SIGN_DATE: &str = "x-ots-signdate";
const SIGN_REGION: &str = "x-ots-signregion";
const REQUEST_COMPRESSION: &str = "x-ots-request-compress-type";
const REQUEST_SIZE: &str = "x-ots-request-compress-size";
pub(super) const ANSWER_COMPRESSION: &str = "x-ots-response-compress-type";

/// The one compression of the protocol: zlib.
pub(super) const DEFLATE: &str = "deflate";

/// The version of the protocol that is spoken here.
const SPOKEN: &str = "2015-12-31";

/// The longest name of an operation that errors repeat.
const LONGEST_OPERATION: usize = 64;

/// The parts of a request before the body.
pub(super) struct Received<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) headers: &'a HeaderMap,
}

/// A head that was found good.
pub(super) struct CheckedHead {
    /// The operation's name.
    pub(super) operation: String,
    /// The caller's access key.
    pub(super) key: Arc<AccessKey>,
    /// Signs the answer.
    pub(super) signer: Signer,
    /// The MD5 of the body, as the client says.
    pub(super) md5: String,
    /// Bytes of the body when it was decompressed, as the client says; `None`: it is not compressed.
    pub(super) decompressed: Option<usize>,
    /// Whether the answer may be compressed.
    pub(super) compress: bool,
}

impl CheckedHead {
    /// The path of the operation, as it is signed.
    pub(super) fn path(&self) -> String {
        format!("/{}", self.operation)
    }
}

/// Checks a head.
///
/// # Errors
///
/// Another method than POST, an address that is no operation, a header that is missing or wrong, a clock that differs, an unknown access
/// key or instance, a wrong signature.
pub(super) async fn check(state: &ExchangeParts, received: &Received<'_>) -> Result<CheckedHead, TableError> {
    if received.method != Method::POST {
        let message = format!("{} is not allowed; use POST.", received.method);
        return Err(TableError::new(ErrorCode::MethodNotAllowed, message));
    }
    let path = received.uri.path();
    let operation = operation(path)?;
    if received.uri.query().is_some_and(|query| !query.is_empty()) {
        return Err(TableError::invalid("Operations take no query; the body holds all that they need."));
    }
    let headers = Headers::of(received.headers)?;
    let date = headers.get(DATE)?;
    check_date(date, state.clock.now().0)?;
    let version = headers.get(VERSION)?;
    if version != SPOKEN {
        return Err(TableError::invalid(format!(
            "Invalid {VERSION}: {version}; this server speaks {SPOKEN}."
        )));
    }
    let (instance, md5) = (headers.get(INSTANCE)?, headers.get(MD5)?);
    let key = match state.keys.access_key(headers.get(ACCESS_KEY)?).await {
        Ok(Some(key)) => key,
        Ok(None) => return Err(denied("The AccessKeyID does not exist.")),
        Err(StoreError::Corrupt(why)) => {
            tracing::error!(%why, "an access key cannot be read");
            return Err(TableError::new(ErrorCode::InternalServerError, "Internal server error."));
        }
        Err(StoreError::Unavailable(_) | StoreError::Busy) => return Err(busy()),
    };
    let signer = headers.signer(path, &key.secret)?;
    if instance != key.instance {
        return Err(denied("The instance is not found."));
    }
    let head = CheckedHead {
        operation: operation.to_owned(),
        key,
        signer,
        md5: md5.to_owned(),
        decompressed: headers.decompressed()?,
        compress: headers.find(ANSWER_COMPRESSION) == Some(DEFLATE),
    };
    Ok(head)
}

/// A refusal of whoever calls.
fn denied(message: impl Into<String>) -> TableError {
    TableError::new(ErrorCode::AuthFailed, message)
}

/// The operation that a path names.
fn operation(path: &str) -> Result<&str, TableError> {
    let name = path.strip_prefix('/').unwrap_or(path);
    let good =
        (1..=LONGEST_OPERATION).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric());
    if good {
        return Ok(name);
    }
    let shown: String = name.chars().take(LONGEST_OPERATION).collect();
    Err(TableError::new(ErrorCode::UnsupportedOperation, format!("Unsupported operation: {shown}.")))
}

/// How far the clock of a client may differ from that of the server, in milliseconds.
const MOST_APART_MS: i128 = 900_000;

/// Whether the client's time is that of the server, roughly; both in milliseconds but for the text.
fn check_date(date: &str, now: i64) -> Result<(), TableError> {
    let parsed = OffsetDateTime::parse(date, &Rfc3339).ok().filter(|parsed| parsed.offset().is_utc());
    let Some(parsed) = parsed else {
        return Err(TableError::invalid(format!("Invalid date format: {date}.")));
    };
    let apart = i128::from(now) - parsed.unix_timestamp_nanos() / 1_000_000;
    if apart.abs() > MOST_APART_MS {
        return Err(denied(format!("Mismatch between system time and {DATE}: {date}.")));
    }
    Ok(())
}

/// All headers of the protocol that a request has: what is signed, and the signature.
struct Headers<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Headers<'a> {
    fn of(headers: &'a HeaderMap) -> Result<Headers<'a>, TableError> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for (name, value) in headers {
            let name = name.as_str();
            if !name.starts_with(HEADER_PREFIX) {
                continue;
            }
            let Ok(value) = str::from_utf8(value.as_bytes()) else {
                return Err(TableError::invalid(format!("Invalid header: '{name}' is not UTF-8.")));
            };
            if found.iter().any(|(known, _)| *known == name) {
                return Err(TableError::invalid(format!("Invalid header: '{name}' is there twice.")));
            }
            found.push((name, value.trim()));
        }
        Ok(Headers(found))
    }

    fn find(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn get(&self, name: &str) -> Result<&'a str, TableError> {
        self.find(name).ok_or_else(|| TableError::invalid(format!("Missing header: '{name}'.")))
    }

    /// The signer of the request, if the signature is right. Its version follows the signature header that is there.
    fn signer(&self, path: &str, secret: &str) -> Result<Signer, TableError> {
        let (name, signer) = match self.find(SIGNATURE_V4) {
            Some(_) => (SIGNATURE_V4, Signer::v4(secret, self.get(SIGN_DATE)?, self.get(SIGN_REGION)?)),
            None => (SIGNATURE_V2, Signer::v2(secret)),
        };
        let signature = self.get(name)?;
        let signed: Vec<_> = self.0.iter().copied().filter(|(known, _)| *known != name).collect();
        match signer.verifies_request(path, &signed, signature) {
            true => Ok(signer),
            false => Err(denied("Signature mismatch.")),
        }
    }

    fn decompressed(&self) -> Result<Option<usize>, TableError> {
        match self.find(REQUEST_COMPRESSION) {
            None => Ok(None),
            Some(DEFLATE) => match self.get(REQUEST_SIZE)?.parse() {
                Ok(size) => Ok(Some(size)),
                Err(_) => {
                    Err(TableError::invalid(format!("Invalid header: '{REQUEST_SIZE}' is not a number.")))
                }
            },
            Some(other) => {
                let message = format!("Invalid {REQUEST_COMPRESSION}: {other}; this server knows {DEFLATE}.");
                Err(TableError::invalid(message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_an_operation() {
        assert_eq!(operation("/PutRow"), Ok("PutRow"));
        for (path, shown) in [("/", ""), ("/a/b", "a/b"), ("/Put-Row", "Put-Row")] {
            let refused = operation(path).unwrap_err();
            assert_eq!(refused.code, ErrorCode::UnsupportedOperation);
            assert_eq!(refused.message, format!("Unsupported operation: {shown}."));
        }
        assert!(operation(&format!("/{}", "x".repeat(100_000))).unwrap_err().message.len() < 100);
    }

    #[test]
    fn a_clock_may_differ_by_a_quarter_of_an_hour() {
        let now = 1_795_309_323_000;
        assert_eq!(check_date("2026-11-22T01:02:03.000Z", now), Ok(()));
        assert_eq!(check_date("2026-11-22T01:17:03Z", now), Ok(()));
        assert_eq!(check_date("2026-11-22T00:47:03.000Z", now), Ok(()));
        let refused = check_date("2026-11-22T01:17:03.001Z", now).unwrap_err();
        assert_eq!(refused.code, ErrorCode::AuthFailed);
        assert_eq!(refused.message, "Mismatch between system time and x-ots-date: 2026-11-22T01:17:03.001Z.");
        for wrong in ["", "yesterday", "Sun, 22 Nov 2026 01:02:03 GMT", "2026-11-22T01:02:03.000+01:00"] {
            let refused = check_date(wrong, now).unwrap_err();
            assert_eq!(refused, TableError::invalid(format!("Invalid date format: {wrong}.")));
        }
    }
}
