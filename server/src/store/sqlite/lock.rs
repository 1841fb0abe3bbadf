//! One process a database: a lock on a file beside it.
//!
//! The lock belongs to the open file, so the system releases it however the process ends. The file itself is
//! never removed: removing it would let two processes lock two different files of the same name.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::OpenError;

/// Held as long as the database is open.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the database at `database`, or says who is in the way.
    pub(super) fn take(database: &Path) -> Result<Lock, OpenError> {
        let mut path = database.as_os_str().to_owned();
        path.push(".lock");
        let path = Path::new(&path);
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: database.to_owned() }),
            Err(TryLockError::Error(source)) => Err(io(source)),
        }
    }
}
