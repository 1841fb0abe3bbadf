//! Uploads by tus 1.0 (<https://tus.io/protocols/resumable-upload>), with the extensions creation, creation-with-upload, expiration and
//! termination.
//!
//! The bytes are received by a task of their own: what has come is stored also when the request is dropped with its connection.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use time::OffsetDateTime;
use time::macros::format_description;

use super::metadata;
use crate::app::{FileError, Files, Incoming, Upload};
use crate::domain::{FileId, Timestamp, Uid};
use crate::http::error::Problem;
use crate::http::extract::{Segments, Session};
use crate::http::limits::ClientNetwork;
use crate::http::origin::{TUS_RESUMABLE, UPLOAD_EXPIRES, UPLOAD_LENGTH, UPLOAD_METADATA, UPLOAD_OFFSET};
use crate::http::proxy::Caller;
use crate::http::state::HttpState;

/// How long one request with bytes may last, in place of `[server] request_seconds`.
pub(in crate::http) const LONGEST: Duration = Duration::from_secs(6 * 3_600);

const VERSION: HeaderValue = HeaderValue::from_static("1.0.0");
const EXTENSIONS: HeaderValue =
    HeaderValue::from_static("creation,creation-with-upload,expiration,termination");
/// The type of bodies with bytes.
const BYTES: &str = "application/offset+octet-stream";

const TUS_VERSION: HeaderName = HeaderName::from_static("tus-version");
const TUS_EXTENSION: HeaderName = HeaderName::from_static("tus-extension");
const TUS_MAX_SIZE: HeaderName = HeaderName::from_static("tus-max-size");

/// Whether a request brings bytes of a file, for as long as they need.
pub(in crate::http) fn brings_bytes(route: &str, method: &Method) -> bool {
    match *method {
        Method::POST => route == "/files",
        Method::PATCH => route == "/files/{id}",
        _ => false,
    }
}

/// Answers what may be asked without a session, and keeps to the version of the protocol. Downloads pass.
pub(in crate::http) async fn version(
    State(state): State<HttpState>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    if !matches!(route, "/files" | "/files/{id}") {
        return next.run(request).await;
    }
    let is_preflight = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut answer = match *request.method() {
        Method::OPTIONS if !is_preflight => StatusCode::NO_CONTENT.into_response(),
        Method::OPTIONS => return next.run(request).await,
        _ if request.headers().get(&TUS_RESUMABLE) == Some(&VERSION) => next.run(request).await,
        _ => {
            let detail = "the header Tus-Resumable is missing or not 1.0.0; uploads go by tus 1.0.0";
            Problem::new(StatusCode::PRECONDITION_FAILED, "tus_version", detail).into_response()
        }
    };
    let fields = answer.headers_mut();
    fields.insert(TUS_RESUMABLE, VERSION);
    fields.insert(TUS_VERSION, VERSION);
    fields.insert(TUS_EXTENSION, EXTENSIONS);
    fields.insert(TUS_MAX_SIZE, HeaderValue::from(state.files.most_bytes()));
    answer
}

/// Begin an upload.
///
/// By tus 1.0.0, as all calls of `/files`. The body may have the first bytes already; its type is then
/// `application/offset+octet-stream`. The last part of `Location` is the id of the file. `OPTIONS /files` says what the server takes.
#[utoipa::path(
    post, path = "/files", operation_id = "beginUpload", tag = "Files",
    params(
        ("Tus-Resumable" = String, Header, description = "`1.0.0`"),
        ("Upload-Length" = u64, Header, description = "The bytes of the file"),
        ("Upload-Metadata" = Option<String>, Header, description = "`filename`, in Base64"),
    ),
    responses((
        status = 201, description = "It is begun",
        headers(
            ("Location" = String, description = "Its address"),
            ("Upload-Offset" = u64, description = "Bytes that are there"),
            ("Upload-Expires" = String, description = "When it goes unless more of it comes"),
        ),
    )),
    extensions(("x-codes" = json!(["rate_limited", "tus_version", "file_empty", "file_too_large", "bad_file_name", "file_type_refused", "bad_picture", "picture_too_large", "files_full", "too_many_uploads", "no_room", "files_unavailable", "stopping", "wrong_body_type"]))),
)]
pub(in crate::http) async fn begin(
    State(state): State<HttpState>,
    Session(session): Session,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    state.rates.send(session.uid, 1)?;
    let length = number(&headers, &UPLOAD_LENGTH)?;
    let name = metadata::name(headers.get(&UPLOAD_METADATA).map(HeaderValue::as_bytes))?;
    let has_bytes = headers.contains_key(header::CONTENT_TYPE) && !is_bodiless(&headers);
    if has_bytes {
        check_type(&headers)?;
    }
    let mut upload = state.files.begin(session.uid, &name, length).await?;
    if has_bytes {
        upload = receive(&state, session.uid, caller, upload.id, 0, body).await?;
    }
    let location = HeaderValue::from_str(&format!("/files/{}", upload.id)).expect("hex digits");
    let mut answer = told(StatusCode::CREATED, upload);
    answer.headers_mut().insert(header::LOCATION, location);
    Ok(answer)
}

/// Ask how far an upload has come.
#[utoipa::path(
    head, path = "/files/{id}", operation_id = "upload", tag = "Files",
    params(
        ("id" = String, Path, description = "The file"),
        ("Tus-Resumable" = String, Header, description = "`1.0.0`"),
    ),
    responses((
        status = 200, description = "It is there",
        headers(
            ("Upload-Offset" = u64, description = "Bytes that are there"),
            ("Upload-Length" = u64, description = "Bytes in all"),
            ("Upload-Expires" = String, description = "When it goes unless more of it comes; absent: it is whole"),
        ),
    )),
    extensions(("x-codes" = json!(["tus_version", "unknown_file", "file_type_refused", "bad_picture", "picture_too_large", "no_room", "files_unavailable"]))),
)]
pub(in crate::http) async fn state(
    State(files): State<Files>,
    Session(session): Session,
    Segments(id): Segments<String>,
) -> Result<Response, Problem> {
    let upload = files.upload(session.uid, of(&id)?).await?;
    Ok(told(StatusCode::OK, upload))
}

/// Send the next bytes of an upload.
///
/// What has come when the connection is lost is kept. The last byte makes the file whole: from then on a message can name it.
#[utoipa::path(
    patch, path = "/files/{id}", operation_id = "continueUpload", tag = "Files",
    params(
        ("id" = String, Path, description = "The file"),
        ("Tus-Resumable" = String, Header, description = "`1.0.0`"),
        ("Upload-Offset" = u64, Header, description = "Bytes that are there already"),
    ),
    responses((
        status = 204, description = "They are stored",
        headers(
            ("Upload-Offset" = u64, description = "Bytes that are there now"),
            ("Upload-Expires" = String, description = "When it goes unless more of it comes; absent: it is whole"),
        ),
    )),
    extensions(("x-codes" = json!(["rate_limited", "tus_version", "unknown_file", "upload_elsewhere", "file_too_large", "file_type_refused", "bad_picture", "picture_too_large", "too_many_uploads", "no_room", "files_unavailable", "stopping", "wrong_body_type"]))),
)]
pub(in crate::http) async fn add(
    State(state): State<HttpState>,
    Session(session): Session,
    caller: Caller,
    headers: HeaderMap,
    Segments(id): Segments<String>,
    body: Body,
) -> Result<Response, Problem> {
    state.rates.send(session.uid, 1)?;
    check_type(&headers)?;
    let offset = number(&headers, &UPLOAD_OFFSET)?;
    let upload = receive(&state, session.uid, caller, of(&id)?, offset, body).await?;
    Ok(told(StatusCode::NO_CONTENT, upload))
}

/// End an upload.
///
/// Also a file that is whole, unless a message names it.
#[utoipa::path(
    delete, path = "/files/{id}", operation_id = "endUpload", tag = "Files",
    params(
        ("id" = String, Path, description = "The file"),
        ("Tus-Resumable" = String, Header, description = "`1.0.0`"),
    ),
    responses((status = 204, description = "It is gone")),
    extensions(("x-codes" = json!(["tus_version", "unknown_file", "file_named", "files_unavailable"]))),
)]
pub(in crate::http) async fn end(
    State(files): State<Files>,
    Session(session): Session,
    Segments(id): Segments<String>,
) -> Result<StatusCode, Problem> {
    files.end(session.uid, of(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Receives bytes, in a task that outlives the request.
async fn receive(
    state: &HttpState,
    uid: Uid,
    caller: Caller,
    id: FileId,
    offset: u64,
    body: Body,
) -> Result<Upload, Problem> {
    let (files, stopping) = (state.files.clone(), state.sockets.stopping.clone());
    let charge = state.budget.take_soon(ClientNetwork::of(caller.address), files.in_memory()).await?;
    let receiving = async move {
        let incoming = Incoming { offset, bytes: body.into_data_stream(), stopping };
        let received = files.receive(uid, id, incoming).await;
        drop(charge);
        received
    };
    let received = state.sockets.open.spawn(receiving).await;
    Ok(received.map_err(|_| Problem::internal())??)
}

/// An answer that says how far the upload has come.
fn told(status: StatusCode, upload: Upload) -> Response {
    let mut answer = status.into_response();
    let fields = answer.headers_mut();
    fields.insert(UPLOAD_OFFSET, HeaderValue::from(upload.stored));
    fields.insert(UPLOAD_LENGTH, HeaderValue::from(upload.length));
    if let Some(expires) = upload.expires.and_then(http_date) {
        fields.insert(UPLOAD_EXPIRES, expires);
    }
    answer
}

fn of(id: &str) -> Result<FileId, FileError> {
    id.parse().map_err(|_| FileError::Unknown)
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Result<u64, Problem> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.filter(is_number).and_then(|text| text.parse().ok());
    number.filter(|number| *number < 1 << 53).ok_or_else(|| {
        Problem::invalid_query(format!("the header {name} must be there, and a whole number of 0 or more"))
    })
}

fn is_bodiless(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    length == Some("0") || (length.is_none() && !headers.contains_key(header::TRANSFER_ENCODING))
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == BYTES.as_bytes()) {
        return Ok(());
    }
    let detail = format!("the body of an upload has the Content-Type {BYTES}");
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "wrong_body_type", detail))
}

/// A time as HTTP writes it.
fn http_date(at: Timestamp) -> Option<HeaderValue> {
    let form = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let at = OffsetDateTime::from_unix_timestamp(at.0 / 1_000).ok()?;
    HeaderValue::from_str(&at.format(form).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_http_does() {
        let date = http_date(Timestamp(1_795_261_438_042)).expect("a date");
        assert_eq!(date, "Sat, 21 Nov 2026 11:43:58 GMT");
    }
}
