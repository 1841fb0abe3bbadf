//! SQLite's errors in the words of the store.

use std::path::{Path, PathBuf};

use sqlx::migrate::MigrateError;

use crate::store::StoreError;
use crate::store::sql::NO_ROOM;

/// Why a database cannot be opened; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A directory or file cannot be made, opened or locked.
    #[error("cannot use {path}: {source}; check that the directory exists and may be written")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another process has it.
    #[error("{path} is in use by another process; stop that one, or choose another data directory")]
    InUse {
        /// Which.
        path: PathBuf,
    },
    /// Its base schema is that of the time before 0.1.0.
    #[error(
        "{path} was made by another build before 0.1.0; export it with that program (tidemark export), and import it into an empty data \
         directory with this one (tidemark import)"
    )]
    Earlier {
        /// Which.
        path: PathBuf,
    },
    /// A newer server has changed it.
    #[error(
        "{path} was written by a newer version (its migration {migration} is unknown here); run that version"
    )]
    Newer {
        /// Which.
        path: PathBuf,
        /// The first migration that this server does not know.
        migration: i64,
    },
    /// A migration that was applied is not the one that this server knows, or failed.
    #[error("{path} cannot be migrated: {source}")]
    Migration {
        /// Which.
        path: PathBuf,
        /// Why.
        source: MigrateError,
    },
    /// SQLite refuses it.
    #[error("{path} cannot be opened: {text}")]
    Database {
        /// Which.
        path: PathBuf,
        /// Why.
        text: String,
    },
    /// It opens, but what it holds cannot be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: StoreError,
    },
}

impl OpenError {
    /// The meaning of `error` for the database at `path`.
    pub(super) fn of(path: &Path, error: sqlx::Error) -> OpenError {
        let path = path.to_owned();
        let text = error.to_string();
        match StoreError::from(error) {
            source @ StoreError::Corrupt(_) => OpenError::Unreadable { path, source },
            StoreError::Unavailable(why) if *why == *NO_ROOM => {
                OpenError::Database { path, text: why.to_string() }
            }
            _ => OpenError::Database { path, text },
        }
    }
}
