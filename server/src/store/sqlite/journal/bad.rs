//! Faults of the files of the log.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// Why a file is not the part of the log that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLog {
    /// It is not there.
    #[error("it is missing")]
    Missing,
    /// It has not a byte.
    #[error("it is empty")]
    Empty,
    /// It is something else, or not all of it is as it was written: what, and from which byte on.
    #[error("{what} (byte {at})")]
    Damaged {
        /// The fault.
        what: &'static str,
        /// Where, in bytes from its beginning.
        at: u64,
    },
    /// This batch, which must be there, is not.
    #[error("batch {0} is missing; the files do not belong together")]
    Gap(u64),
    /// A newer version wrote it.
    #[error("it was written by a newer version")]
    Newer,
    /// It is the log of another moment, or of another installation.
    #[error("it is of another moment or installation")]
    Other,
    /// Another process has it.
    #[error("it is in use by another process; stop that one")]
    Busy,
    /// It is not there any more, while it is open: what is appended would be lost with the process.
    #[error("it was removed while it was in use")]
    Removed,
    /// It cannot be read or written now; why.
    #[error("{0}")]
    Io(String),
}

impl From<TryLockError> for BadLog {
    fn from(error: TryLockError) -> BadLog {
        match error {
            TryLockError::WouldBlock => BadLog::Busy,
            TryLockError::Error(why) => why.into(),
        }
    }
}

impl From<io::Error> for BadLog {
    fn from(error: io::Error) -> BadLog {
        match error.kind() {
            io::ErrorKind::NotFound => BadLog::Missing,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                BadLog::Io("the disk is full".into())
            }
            _ => BadLog::Io(error.to_string()),
        }
    }
}

/// A file of the log, and its fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// The file.
    pub path: PathBuf,
    /// The fault.
    pub bad: BadLog,
}

impl LogError {
    /// Of the file at `path`.
    pub(super) fn at<E: Into<BadLog>>(path: &Path) -> impl FnOnce(E) -> LogError {
        let path = path.to_owned();
        move |error| LogError { path, bad: error.into() }
    }
}

impl From<LogError> for StoreError {
    /// Names the file and not where it lies: callers over the network are told.
    fn from(LogError { path, bad }: LogError) -> StoreError {
        let name = path.file_name().unwrap_or(path.as_os_str()).display();
        match bad {
            BadLog::Io(_) | BadLog::Busy | BadLog::Removed => {
                StoreError::unavailable(format!("{name}: {bad}"))
            }
            BadLog::Newer => StoreError::corrupt(format!("{name}: {bad}; run that version")),
            BadLog::Missing | BadLog::Empty | BadLog::Damaged { .. } | BadLog::Gap(_) | BadLog::Other => {
                StoreError::corrupt(format!(
                    "{name}: {bad}; restore files of one moment, or move it away and run `tidemark restored` to go on without what only it holds"
                ))
            }
        }
    }
}
