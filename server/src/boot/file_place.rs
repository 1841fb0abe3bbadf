//! Where the bytes of files lie, and whether all servers of a database have that place.
//!
//! A directory has a mark: a file with a text by chance, which the database knows, too. A server whose directory has another mark, or
//! none, has not the directory in which the files of the others lie.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tracing::{info, warn};

use super::chance::random_uuid;
use super::database::{Database, Storage};
use super::error::BootError;
use crate::config::{Config, ConfigError};
use crate::files::FilePlace;
use crate::store::postgres::PgDb;
use crate::store::sqlite::private;

/// The name of the mark. No object has one with a dot.
const MARK: &str = "tidemark.place";

/// Under which key PostgreSQL keeps the mark.
const FILES: &str = "files";

/// Where the files of this configuration lie.
///
/// # Errors
/// The fault of the configuration, or a directory that cannot be one.
pub fn files_place(config: &Config) -> Result<FilePlace, BootError> {
    let refuse = |why| BootError::Config(ConfigError::Value { section: "files", key: "store", why });
    match config.files.store.bucket() {
        Some(url) => FilePlace::bucket(url).map_err(refuse),
        None => {
            let path = directory(config);
            FilePlace::directory(&path).map_err(|why| BootError::File { path, why })
        }
    }
}

fn directory(config: &Config) -> PathBuf {
    config.files.store.directory(&config.storage.place()).unwrap_or_default()
}

/// The same for a server. Says in the log when other servers of its database do not have that place.
pub(super) async fn of_server(config: &Config, storage: &Storage) -> Result<FilePlace, BootError> {
    let place = files_place(config)?;
    if let (None, Database::Postgres(db)) = (config.files.store.bucket(), &storage.database) {
        check_directory(&directory(config), db).await?;
    }
    Ok(place)
}

async fn check_directory(path: &Path, db: &PgDb) -> Result<(), BootError> {
    let own = match mark_of(path) {
        Ok(own) => own,
        Err(error) => {
            warn!(path = %path.display(), %error, "files cannot be stored in this directory; set [files] store to another place");
            return Ok(());
        }
    };
    let agreed = db.agreed(FILES, &own).await?;
    if agreed == own {
        info!(path = %path.display(), "files lie in this directory, which every server of the database must have");
    } else {
        warn!(
            path = %path.display(),
            "the other servers of the database have their files in another directory: what is uploaded by way of one cannot be read at \
             another; set [files] store to a bucket or a shared directory on all of them, and copy the files there; if this directory is \
             the right one, write {agreed} into {MARK} in it"
        );
    }
    Ok(())
}

/// The mark of the directory, which is made if it has none. Of servers that start at a time over one directory one makes it.
fn mark_of(path: &Path) -> io::Result<String> {
    private::make_directory(path)?;
    let (mark, text) = (path.join(MARK), random_uuid().to_string());
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&mark) {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            Ok(text)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Ok(fs::read_to_string(&mark)?.trim().to_owned())
        }
        Err(error) => Err(error),
    }
}
