//! Answers: headers that clients check, signed, and a protobuf message.

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, HeaderName};
use axum::http::{HeaderValue, Response, StatusCode};
use tidemark_table::TableError;
use tidemark_table::wire::compress::compress;
use tidemark_table::wire::encode_error;
use tidemark_table::wire::sign::content_md5;
use time::OffsetDateTime;
use uuid::Uuid;

use super::super::budget::Charge;
use super::busy;
use super::head::{ANSWER_COMPRESSION, CheckedHead, DEFLATE, MD5};
use crate::domain::Timestamp;
use crate::workers::aside;

const CONTENT_TYPE: &str = "x-ots-contenttype";
const PROTOBUF: &str = "protocol buffer";
const REQUEST_ID: &str = "x-ots-requestid";
const DATE: &str = "x-ots-date";
const ANSWER_SIZE: &str = "x-ots-response-compress-size";

/// The name of an answer: an id and a time.
pub(super) struct Named {
    /// In the form of a UUID. The first half is the time in microseconds.
    pub(super) id: String,
    date: String,
}

impl Named {
    /// `own` is the decimal id of the request among all of the installation.
    pub(super) fn new(now: Timestamp, own: &str) -> Named {
        let micros = now.0.saturating_mul(1_000).cast_unsigned();
        let own: u64 = own.parse().unwrap_or_default();
        Named { id: Uuid::from_u64_pair(micros, own).to_string(), date: date(now) }
    }
}

/// In UTC, with microseconds, which clients look for.
fn date(now: Timestamp) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(now.0) * 1_000_000);
    let time = time.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second, micros) = time.to_hms_micro();
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z", u8::from(month))
}

/// An operation was done; `message` is its answer.
pub(super) async fn success(
    named: &Named,
    head: Option<&CheckedHead>,
    message: Vec<u8>,
    charge: Charge,
) -> Response<Body> {
    let mut extra = Vec::new();
    let (size, is_compressed) = (message.len(), head.is_some_and(|head| head.compress));
    if is_compressed {
        extra.push((ANSWER_COMPRESSION, DEFLATE.to_owned()));
        extra.push((ANSWER_SIZE, size.to_string()));
    }
    let packed = move || {
        let bytes = if is_compressed { compress(&message) } else { message };
        (content_md5(&bytes), bytes)
    };
    let (md5, bytes) = aside(size, packed).await;
    response(StatusCode::OK, named, head, md5, extra, charge.body_as_settled(bytes))
}

/// An operation was not done.
pub(super) fn refusal(named: &Named, head: Option<&CheckedHead>, error: &TableError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let bytes = encode_error(error);
    response(status, named, head, content_md5(&bytes), Vec::new(), Body::from(bytes))
}

/// Signed, where it is known with what.
fn response(
    status: StatusCode,
    named: &Named,
    head: Option<&CheckedHead>,
    md5: String,
    extra: Vec<(&'static str, String)>,
    body: Body,
) -> Response<Body> {
    let mut headers = vec![
        (MD5, md5),
        (REQUEST_ID, named.id.clone()),
        (DATE, named.date.clone()),
        (CONTENT_TYPE, PROTOBUF.to_owned()),
    ];
    headers.extend(extra);
    let authorization = head.map(|head| {
        let signed: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        format!("OTS {}:{}", head.key.id, head.signer.sign_answer(&head.path(), &signed))
    });
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().reserve(headers.len() + 1);
    let written = headers.into_iter().map(|(name, value)| (HeaderName::from_static(name), value));
    for (name, value) in written.chain(authorization.map(|value| (AUTHORIZATION, value))) {
        let value = HeaderValue::try_from(value).expect("digits, base64 and ids that came in a header");
        response.headers_mut().insert(name, value);
    }
    response
}

/// The answer when too many connections are open. The connection is closed after it.
pub(super) fn full() -> Vec<u8> {
    let body = encode_error(&busy());
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\n{REQUEST_ID}: 00000000-0000-0000-0000-000000000000\r\n{CONTENT_TYPE}: \
         {PROTOBUF}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_named_by_their_time() {
        let named = Named::new(Timestamp(1_795_309_323_004), "258");
        assert_eq!(named.date, "2026-11-22T01:02:03.004000Z");
        assert_eq!(&named.id[18..], "-0000-000000000102");
        assert_eq!(u64::from_str_radix(&named.id[..18].replace('-', ""), 16), Ok(1_795_309_323_004_000));
        assert_eq!(named.id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    }

    #[test]
    fn the_refusal_of_a_full_house_is_a_whole_answer() {
        let full = full();
        let end = full.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let (head, body) = full.split_at(end + 4);
        assert_eq!(body, b"\x0A\x0DOTSServerBusy\x12\x0FServer is busy.");
        assert!(String::from_utf8_lossy(head).contains(&format!("content-length: {}\r\n", body.len())));
    }
}
