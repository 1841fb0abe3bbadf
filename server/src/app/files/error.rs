//! Why a file is not taken, or not given.

use crate::domain::{BadFileName, MOST_SEGMENTS};
use crate::files::PlaceError;
use crate::store::StoreError;

/// See the module.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FileError {
    /// There is none, or not for this caller.
    #[error("there is no such file, or you cannot see it")]
    Unknown,
    /// A row of the caller names it, and its bytes are not here any more.
    #[error("the file is gone: a row names it, and this server does not have it")]
    Gone,
    /// It has no bytes.
    #[error("the file has no bytes; choose one that has")]
    Empty,
    /// It has more bytes than a file may have.
    #[error("a file has at most {} MiB; choose a smaller one", .0 >> 20)]
    TooLarge(u64),
    /// More has come than its sender had said.
    #[error("more bytes came than Upload-Length says; begin the upload again")]
    TooMuch,
    /// Its name breaks a rule.
    #[error(transparent)]
    Name(#[from] BadFileName),
    /// The operator takes none of this type.
    #[error("this server takes no files of the type {0}")]
    TypeRefused(String),
    /// It has the first bytes of a picture, and is none.
    #[error("the picture is damaged; send another one, or put it into an archive")]
    BadPicture,
    /// It is to be somebody's picture, and nothing here can show it.
    #[error("a picture is a JPEG, PNG, GIF or WebP; choose another file")]
    NoPicture,
    /// It is a picture with too many pixels or bytes.
    #[error(
        "a picture has at most 50 megapixels, 16,384 of them in a row, and 32 MiB; make it smaller, or put it into an archive"
    )]
    PictureTooLarge,
    /// The account has as many unfinished uploads as it may.
    #[error("at most {0} uploads of an account are unfinished at a time; finish or end one first")]
    TooManyUploads(u64),
    /// The account has no room for it.
    #[error("the files of an account have at most {} MiB in all; delete messages with files first", .0 >> 20)]
    NoRoom(u64),
    /// The upload stands elsewhere.
    #[error("the upload has come to {0} bytes by now; go on from there")]
    Elsewhere(u64),
    /// The upload stopped too often.
    #[error("the upload came in more than {MOST_SEGMENTS} parts; begin it again")]
    TooManyParts,
    /// A message names it.
    #[error("a message names this file; delete the message, and the file goes with it")]
    Named,
    /// No byte came for a while.
    #[error("no more bytes came; what had come is stored, go on from there")]
    Stalled,
    /// The server goes down.
    #[error("the server is stopping; go on with the upload in a moment")]
    Stopping,
    /// The disk or the bucket is full.
    #[error("the server has no room for more files; its operator can make some")]
    Full,
    /// The bytes cannot be written or read now.
    #[error("files cannot be stored or read right now; try again in a moment")]
    Unavailable(String),
    /// What is known of it is not there, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PlaceError> for FileError {
    fn from(error: PlaceError) -> FileError {
        match error {
            PlaceError::Full => FileError::Full,
            PlaceError::Missing(_) | PlaceError::Unavailable(_) => FileError::Unavailable(error.to_string()),
        }
    }
}
