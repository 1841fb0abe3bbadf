//! Why data does not get in or out: one line that says what to do.

use std::path::PathBuf;

use seqsvr_core::NextError;

use crate::domain::FileId;
use crate::files::PlaceError;
use crate::store::StoreError;
use crate::store::archive::ImportError;

/// An export, an import or a `restored` failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The file cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The archive.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file to be written is there already.
    #[error("{} exists already; choose another name, or finish it with --resume", path.display())]
    Exists {
        /// The archive.
        path: PathBuf,
    },
    /// A file is no interrupted export that may be finished.
    #[error("{}: {why}; export into another file", path.display())]
    CannotResume {
        /// The archive.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A line is not what it should be. Nothing was imported.
    #[error("{} line {number}: {why}", path.display())]
    Line {
        /// The archive.
        path: PathBuf,
        /// Counted from 1.
        number: u64,
        /// The fault of the line.
        why: String,
    },
    /// The file ends too early. Nothing was imported.
    #[error(
        "{} is cut off after line {complete}: its footer is missing; finish the export with --resume, or copy the file again",
        path.display()
    )]
    CutOff {
        /// The archive.
        path: PathBuf,
        /// The last complete line; 0 without one.
        complete: u64,
    },
    /// The bytes of a file cannot be read for an export.
    #[error(
        "the bytes of the file {file} cannot be read: {source}; see to `[files] store`, and finish the export with --resume"
    )]
    UnreadFile {
        /// Which.
        file: FileId,
        /// Why.
        source: PlaceError,
    },
    /// The bytes of a file cannot be written by an import.
    #[error(
        "the bytes of the file {file} cannot be written: {source}; see to `[files] store`, and run the same import again"
    )]
    UnwrittenFile {
        /// Which.
        file: FileId,
        /// Why.
        source: PlaceError,
    },
    /// The installation does not take it.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A ceiling could not be raised.
    #[error("cannot raise a ceiling: {0}")]
    Ceiling(#[from] NextError),
}
