//! Values that are drawn at random: names of installations and of lives of their data, and the secret of the codes of invitations.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use uuid::Uuid;

use super::error::BootError;
use crate::domain::HistoryId;
use crate::store::sqlite::private::{self, sync_directory_of};

/// A name for a life of the data that begins now (I14).
pub fn new_history() -> HistoryId {
    HistoryId(random_uuid())
}

#[expect(clippy::disallowed_methods, reason = "the one place where names are drawn; all else is handed them")]
pub(super) fn random_uuid() -> Uuid {
    Uuid::new_v4()
}

/// The secret in this file, which is made if it is not there.
pub(super) fn secret_in(path: &Path) -> Result<String, BootError> {
    match fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Ok(_) => replace_secret(path).and_then(|()| secret_in(path)),
        Err(why) if why.kind() == ErrorKind::NotFound => replace_secret(path).and_then(|()| secret_in(path)),
        Err(why) => Err(BootError::File { path: path.to_owned(), why }),
    }
}

/// A secret for the codes of invitations.
pub(super) fn new_secret() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Writes a new secret into this file, whole or not at all.
pub(super) fn replace_secret(path: &Path) -> Result<(), BootError> {
    let fresh = path.with_extension("key.new");
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(new_secret().as_bytes())?;
        file.sync_all()?;
        private::belong_to_directory(&fresh)?;
        fs::rename(&fresh, path)?;
        sync_directory_of(path)
    };
    write().map_err(|why| BootError::File { path: path.to_owned(), why })
}
