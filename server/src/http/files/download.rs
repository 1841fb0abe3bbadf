//! Gives the bytes of files to those who have a row that names them.
//!
//! No answer runs anything: its type is the one that its bytes have, browsers must not guess another one, all but pictures, sound and
//! films is saved and not shown, and whatever is shown stands in a sandbox without scripts.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;

use super::range::{RangeAsked, asked};
use crate::app::{FileError, Files};
use crate::domain::{FileId, MessageId, Preview};
use crate::files::{OCTETS, is_inline, media_type};
use crate::http::error::Problem;
use crate::http::extract::{Segments, Session};
use crate::http::limits::Rates;

/// A file never changes, and is nobody else's business.
const CACHE: &str = "private, max-age=31536000, immutable";

/// Nothing runs, and nothing is loaded.
const SANDBOX: &str =
    "default-src 'none'; style-src 'unsafe-inline'; media-src 'self'; sandbox; frame-ancestors 'none'";

/// Download a file.
///
/// The file is one that a row in the caller's inbox names; it can be read for as long as that row names it. Ranges of bytes are answered.
#[utoipa::path(
    get, path = "/files/{message_id}/{id}", operation_id = "file", tag = "Files",
    params(
        ("message_id" = u64, Path, description = "A row of the caller's inbox that names the file"),
        ("id" = String, Path, description = "The file"),
        ("Range" = Option<String>, Header, description = "One range of bytes"),
    ),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream", description = "The bytes, under their own type"),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream", description = "The range"),
        (status = 304, description = "The caller has it already"),
    ),
    extensions(("x-codes" = json!(["rate_limited", "unknown_file", "file_gone", "files_unavailable", "no_such_range"]))),
)]
pub(in crate::http) async fn whole(
    State(files): State<Files>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    headers: HeaderMap,
    Segments((message_id, id)): Segments<(String, String)>,
) -> Result<Response, Problem> {
    rates.may_read(session.uid).map_err(Problem::rate_limited)?;
    let (row, id) = named(&message_id, &id)?;
    let file = files.open(session.uid, row, id).await?;
    let shown = &file.shown;
    let tag = format!("\"{id}\"");
    if is_known(&headers, &tag) {
        return Ok(unchanged(&tag));
    }
    // A part of another version would not fit; there is no other one.
    let may_be_part = headers.get(header::IF_RANGE).is_none_or(|known| known.as_bytes() == tag.as_bytes());
    let range = headers.get(header::RANGE).filter(|_| may_be_part).and_then(|range| range.to_str().ok());
    let (status, range) = match asked(range, shown.size) {
        RangeAsked::All => (StatusCode::OK, 0..shown.size),
        RangeAsked::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        RangeAsked::Nothing => {
            let detail = format!("the file has {} bytes, and none in that range", shown.size);
            let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "no_such_range", detail);
            let mut answer = problem.into_response();
            answer.headers_mut().insert(header::CONTENT_RANGE, text(format!("bytes */{}", shown.size)));
            return Ok(answer);
        }
    };
    let bytes = file
        .bytes(range.clone())
        .await?
        .map(move |piece| piece.inspect_err(|error| tracing::warn!(%id, %error, "a download is cut off")));
    let mut answer = (status, Body::from_stream(bytes)).into_response();
    let fields = answer.headers_mut();
    describe(fields, &shown.name, &shown.media_type, &tag);
    fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    if status == StatusCode::PARTIAL_CONTENT {
        let said = format!("bytes {}-{}/{}", range.start, range.end - 1, shown.size);
        fields.insert(header::CONTENT_RANGE, text(said));
    }
    Ok(answer)
}

/// Download a preview of a picture.
///
/// There are those that the row names under `previews`. They hold no metadata of the picture.
#[utoipa::path(
    get, path = "/files/{message_id}/{id}/{preview}", operation_id = "preview", tag = "Files",
    params(
        ("message_id" = u64, Path, description = "A row of the caller's inbox that names the file"),
        ("id" = String, Path, description = "The file"),
        ("preview" = String, Path, description = "`small` or `large`"),
    ),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream", description = "A picture: JPEG or PNG"),
        (status = 304, description = "The caller has it already"),
    ),
    extensions(("x-codes" = json!(["rate_limited", "unknown_file", "file_gone", "files_unavailable"]))),
)]
pub(in crate::http) async fn preview(
    State(files): State<Files>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    headers: HeaderMap,
    Segments((message_id, id, preview)): Segments<(String, String, String)>,
) -> Result<Response, Problem> {
    rates.may_read(session.uid).map_err(Problem::rate_limited)?;
    let (row, id) = named(&message_id, &id)?;
    let preview = Preview::ALL.into_iter().find(|one| one.as_str() == preview).ok_or(FileError::Unknown)?;
    let file = files.open(session.uid, row, id).await?;
    let tag = format!("\"{id}-{}\"", preview.as_str());
    if is_known(&headers, &tag) {
        return Ok(unchanged(&tag));
    }
    let bytes = file.preview(preview).await?;
    let kind = media_type(&bytes);
    let mut answer = Body::from(bytes).into_response();
    describe(answer.headers_mut(), &file.shown.name, kind, &tag);
    Ok(answer)
}

fn named(message_id: &str, id: &str) -> Result<(MessageId, FileId), Problem> {
    let row = message_id.parse().ok().and_then(MessageId::new).ok_or(FileError::Unknown)?;
    Ok((row, id.parse().map_err(|_| FileError::Unknown)?))
}

pub(super) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    known.is_some_and(|known| known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag))
}

pub(super) fn unchanged(tag: &str) -> Response {
    let fields = [(header::ETAG, tag), (header::CACHE_CONTROL, CACHE)];
    (StatusCode::NOT_MODIFIED, fields).into_response()
}

/// Says what the bytes are, and how a browser may treat them.
pub(super) fn describe(fields: &mut HeaderMap, name: &str, media_type: &str, tag: &str) {
    let is_inline = is_inline(media_type);
    let kind = if is_inline { media_type } else { OCTETS };
    let how = if is_inline { "inline" } else { "attachment" };
    fields.insert(header::CONTENT_TYPE, text(kind.to_owned()));
    fields.insert(header::CONTENT_DISPOSITION, text(format!("{how}; filename*=UTF-8''{}", encoded(name))));
    fields.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static(CACHE));
    fields.insert(header::ETAG, text(tag.to_owned()));
    let own = HeaderName::from_static("cross-origin-resource-policy");
    fields.insert(own, HeaderValue::from_static("same-origin"));
}

/// A name as RFC 8187 writes it.
fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(one).collect()
}

fn text(text: String) -> HeaderValue {
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_no_header_of_its_own() {
        assert_eq!(encoded("a b\".jpg"), "a%20b%22.jpg");
        assert_eq!(encoded("潮.png"), "%E6%BD%AE.png");
        assert_eq!(encoded("x;y\r\nz"), "x%3By%0D%0Az");
    }
}
