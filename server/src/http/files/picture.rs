//! Gives the pictures of people and groups to those who are shown their names.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use super::download::{describe, is_known, unchanged};
use crate::app::{FileError, Pictures};
use crate::domain::{Conversation, FileId};
use crate::files::media_type;
use crate::http::error::Problem;
use crate::http::extract::{Segments, Session};
use crate::http::limits::Rates;

/// Download the picture of a user or a group.
///
/// Every account sees the picture of a user, members that of a group. It is a square of at most 256 pixels a side, without metadata; of an
/// animation the first image. Another picture has another `picture`, so a copy of it stays right.
#[utoipa::path(
    get, path = "/files/pictures/{of}/{picture}", operation_id = "picture", tag = "Files",
    params(
        ("of" = String, Path, pattern = "^[ug]:[0-9]+$", description = "`u:UID` or `g:GID`"),
        ("picture" = String, Path, description = "`picture` of the user or the group"),
    ),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream", description = "A picture: JPEG"),
        (status = 304, description = "The caller has it already"),
    ),
    extensions(("x-codes" = json!(["rate_limited", "unknown_file", "files_unavailable"]))),
)]
pub(in crate::http) async fn show(
    State(pictures): State<Pictures>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    headers: HeaderMap,
    Segments((of, picture)): Segments<(String, String)>,
) -> Result<Response, Problem> {
    rates.may_read(session.uid).map_err(Problem::rate_limited)?;
    let of: Conversation = of.parse().map_err(|_| FileError::Unknown)?;
    let id: FileId = picture.parse().map_err(|_| FileError::Unknown)?;
    let bytes = pictures.get(session.uid, of, id).await?;
    let tag = format!("\"{id}-square\"");
    if is_known(&headers, &tag) {
        return Ok(unchanged(&tag));
    }
    let kind = media_type(&bytes);
    let mut answer = Body::from(bytes).into_response();
    describe(answer.headers_mut(), "picture.jpg", kind, &tag);
    Ok(answer)
}
