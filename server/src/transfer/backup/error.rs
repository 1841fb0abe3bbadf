//! Why a backup is not made, or cannot be restored: one line that says what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// A backup or its restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is something else.
    #[error("{} is no backup of tidemark; name a file that `tidemark backup` wrote", path.display())]
    NotOne {
        /// Which.
        path: PathBuf,
    },
    /// A newer program wrote the file.
    #[error("{} was written by a newer version ({what}); restore it with that version", path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// What is unknown here.
        what: String,
    },
    /// Bytes are missing or not as they were written.
    #[error("{} is damaged ({what}); use an earlier backup, or another copy of this file", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Where.
        what: String,
    },
    /// A file that another one refers to is not there, or is another one.
    #[error("{} needs {needed}, which {why}; put that file beside it, or use another backup", path.display())]
    Needs {
        /// The one that refers to it.
        path: PathBuf,
        /// Its name.
        needed: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no backup.
    #[error("{} holds no backup; name the directory into which `tidemark backup` writes", directory.display())]
    Nothing {
        /// Where.
        directory: PathBuf,
    },
    /// A base backup of PostgreSQL is not as it was written.
    #[error("{} is no base backup that can be restored ({what}); make another one", path.display())]
    BaseBackup {
        /// Its directory.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// PostgreSQL's own check is missing.
    #[error(
        "pg_verifybackup is missing; install the programs of PostgreSQL {version}, or check it where they are"
    )]
    NoVerifier {
        /// Of PostgreSQL.
        version: String,
    },
    /// There is no backup as old as that.
    #[error("the first backup in {} is of {first}; choose a time that is not before it", path.display())]
    TooEarly {
        /// The directory, or the file.
        path: PathBuf,
        /// The oldest that is there.
        first: String,
    },
    /// The newest backup is of a time that has not come.
    #[error("the newest backup in {} is of {newest}, which is later than now; correct the clock, or move that file away", directory.display())]
    Later {
        /// Where.
        directory: PathBuf,
        /// The newest that is there.
        newest: String,
    },
    /// Another process writes a backup there.
    #[error("another backup into {} is running; wait for its end", directory.display())]
    Busy {
        /// Where.
        directory: PathBuf,
    },
    /// A restore would go where something is.
    #[error("{} is not empty; restore into an empty directory, or one that does not exist", directory.display())]
    NotEmpty {
        /// Where.
        directory: PathBuf,
    },
    /// The disk is too full.
    #[error("{} has {free} MiB of free space, and {needed} MiB are needed; make room, or choose another disk", directory.display())]
    NoSpace {
        /// Where.
        directory: PathBuf,
        /// MiB that are there.
        free: u64,
        /// MiB that it takes.
        needed: u64,
    },
    /// The installation is larger than a backup can be.
    #[error("{} has {gib} GiB, and a backup holds {most} at most; use a snapshot of the file system", path.display())]
    TooLarge {
        /// Its database.
        path: PathBuf,
        /// GiB that it has.
        gib: u64,
        /// GiB of the largest one.
        most: u64,
    },
    /// The backups there are of another installation.
    #[error("{} holds backups of another installation; choose another directory", directory.display())]
    OfAnother {
        /// Where.
        directory: PathBuf,
    },
    /// The installation cannot be read, or not be copied.
    #[error("{} cannot be backed up: {source}", path.display())]
    Installation {
        /// Its database.
        path: PathBuf,
        /// Why.
        source: StoreError,
    },
    /// The installation cannot be made.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BackupError {
    /// What the system says about the file at `path`.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
        let path = path.to_owned();
        move |source| BackupError::File { path, source }
    }
}
