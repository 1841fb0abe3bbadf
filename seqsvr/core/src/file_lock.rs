//! A lock on a file, by which one process at a time uses that file, or what lies beside it.
//!
//! The system releases it however the process ends. The file is never removed: removing it would let two processes lock
//! two different files of the same name.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl FileLock {
    /// Locks the file at `path`; makes it, for its owner alone, if there is none.
    ///
    /// # Errors
    ///
    /// [`TryLockError::WouldBlock`]: somebody else holds the lock. [`TryLockError::Error`]: the system refuses.
    pub fn take(path: &Path) -> Result<Self, TryLockError> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        Self::of(file.map_err(TryLockError::Error)?)
    }

    /// Locks an open file.
    ///
    /// # Errors
    ///
    /// As [`FileLock::take`].
    pub fn of(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self { file })
    }

    /// The locked file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for FileLock {
    /// Closing the file is not enough. A process that this one starts has a copy of the open file until it runs its own
    /// program, and the lock would last as long as that copy.
    fn drop(&mut self) {
        // Only a file that is not locked or not open could refuse.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let first = FileLock::take(&path).expect("free");
        assert!(matches!(FileLock::take(&path), Err(TryLockError::WouldBlock)));
        drop(first);
        FileLock::take(&path).expect("free again");
    }

    /// As between fork and exec of a process that another thread starts.
    #[test]
    fn a_copy_of_the_open_file_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let first = FileLock::take(&path).expect("free");
        let copy = first.file().try_clone().expect("a copy");
        drop(first);
        FileLock::take(&path).expect("free again");
        drop(copy);
    }

    #[test]
    fn a_folder_that_is_missing_is_an_error_of_the_system() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = FileLock::take(&folder.path().join("none").join("lock"));
        assert!(matches!(missing, Err(TryLockError::Error(_))));
    }
}
