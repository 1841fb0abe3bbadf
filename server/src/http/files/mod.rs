//! `/files`: uploads by tus 1.0, downloads by way of a row that names the file, and pictures of people and groups.

pub(super) mod download;
mod metadata;
pub(super) mod picture;
mod range;
pub(super) mod tus;

use axum::http::StatusCode;

use super::error::Problem;
use crate::app::{FileError, PictureRefusal};

impl From<PictureRefusal> for Problem {
    fn from(error: PictureRefusal) -> Problem {
        match error {
            PictureRefusal::File(error) => error.into(),
            PictureRefusal::Row(error) => error.into(),
        }
    }
}

impl From<FileError> for Problem {
    fn from(error: FileError) -> Problem {
        let (status, code) = match &error {
            FileError::Store(error) => return error.clone().into(),
            FileError::Unknown => (StatusCode::NOT_FOUND, "unknown_file"),
            FileError::Gone => (StatusCode::GONE, "file_gone"),
            FileError::Stalled => (StatusCode::REQUEST_TIMEOUT, "timeout"),
            FileError::Elsewhere(_) => (StatusCode::CONFLICT, "upload_elsewhere"),
            FileError::Named => (StatusCode::CONFLICT, "file_named"),
            FileError::TooLarge(_) | FileError::TooMuch => (StatusCode::PAYLOAD_TOO_LARGE, "file_too_large"),
            FileError::BadPicture => (StatusCode::UNPROCESSABLE_ENTITY, "bad_picture"),
            FileError::NoPicture => (StatusCode::UNPROCESSABLE_ENTITY, "no_picture"),
            FileError::PictureTooLarge => (StatusCode::UNPROCESSABLE_ENTITY, "picture_too_large"),
            FileError::Empty => (StatusCode::UNPROCESSABLE_ENTITY, "file_empty"),
            FileError::Name(_) => (StatusCode::UNPROCESSABLE_ENTITY, "bad_file_name"),
            FileError::TypeRefused(_) => (StatusCode::UNPROCESSABLE_ENTITY, "file_type_refused"),
            FileError::NoRoom(_) => (StatusCode::UNPROCESSABLE_ENTITY, "files_full"),
            FileError::TooManyUploads(_) | FileError::TooManyParts => {
                (StatusCode::UNPROCESSABLE_ENTITY, "too_many_uploads")
            }
            FileError::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
            FileError::Full => {
                tracing::error!("an upload is refused: there is no room for more files");
                (StatusCode::INSUFFICIENT_STORAGE, "no_room")
            }
            FileError::Unavailable(why) => {
                tracing::warn!(why, "a request is refused: files cannot be stored or read");
                (StatusCode::SERVICE_UNAVAILABLE, "files_unavailable")
            }
        };
        let retryable = matches!(
            error,
            FileError::Stalled
                | FileError::Elsewhere(_)
                | FileError::Stopping
                | FileError::Full
                | FileError::Unavailable(_)
        );
        Problem { retryable, ..Problem::new(status, code, error.to_string()) }
    }
}
