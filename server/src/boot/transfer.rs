//! The database for the commands that move data: one moment to read, an installation to fill, an inbox to add to.

use std::path::PathBuf;
use std::sync::Arc;

use super::chance::new_history;
use super::database::{Database, Storage, check_installed};
use super::error::BootError;
use super::files::issuer_files;
use crate::config::{Config, DatabaseKind};
use crate::store::archive::{ExportSnapshot, Import, InboxImport};
use crate::store::postgres::{PgExportSnapshot, PgImport, PgInboxImport};
use crate::store::sqlite::{SqliteExportSnapshot, SqliteImport, SqliteInboxImport};
use crate::transfer::backup::Place;

/// The command that fills an installation, as an error names it.
const IMPORT: &str = "tidemark import";

/// The moment that is now, also of an installation that is served.
///
/// # Errors
/// When there is no installation, or one that this version would have to migrate first.
pub async fn export_snapshot(config: &Config) -> Result<Box<dyn ExportSnapshot>, BootError> {
    let storage = &config.storage;
    match storage.database_url.kind() {
        DatabaseKind::Sqlite => {
            check_installed(config)?;
            Ok(Box::new(SqliteExportSnapshot::take(&storage.file()?).await?))
        }
        DatabaseKind::Postgres => {
            let url = storage.database_url.with_password();
            Ok(Box::new(PgExportSnapshot::take(url, &storage.postgres()).await?))
        }
    }
}

impl Storage {
    /// This installation to be filled, if it is empty.
    ///
    /// # Errors
    /// When its tables are distributed.
    pub fn import(&self) -> Result<Box<dyn Import>, BootError> {
        match &self.database {
            Database::Sqlite(db) => Ok(Box::new(SqliteImport::new(Arc::clone(db)))),
            Database::Postgres(db) => {
                db.only_plain(IMPORT)?;
                Ok(Box::new(PgImport::new(Arc::clone(db), new_history())))
            }
        }
    }

    /// An inbox of this installation to be added to.
    ///
    /// # Errors
    /// When the database does not answer, or its tables are distributed.
    pub async fn inbox_import(&self, config: &Config) -> Result<Box<dyn InboxImport>, BootError> {
        match &self.database {
            Database::Sqlite(db) => {
                Ok(Box::new(SqliteInboxImport::open(Arc::clone(db), &config.storage.sqlite()).await?))
            }
            Database::Postgres(db) => {
                db.only_plain(IMPORT)?;
                Ok(Box::new(PgInboxImport::open(db).await?))
            }
        }
    }
}

/// The main database of an installation of SQLite, and the numbers beside it, for a backup.
///
/// # Errors
/// When there is no installation, or one of PostgreSQL.
pub fn files_to_back_up(config: &Config) -> Result<(PathBuf, PathBuf), BootError> {
    only_sqlite_files(config)?;
    check_installed(config)?;
    Ok((config.storage.file()?, issuer_files(config)?.0))
}

/// Where a restore puts the files.
///
/// # Errors
/// When the installation is one of PostgreSQL.
pub fn place_to_restore(config: &Config) -> Result<Place, BootError> {
    only_sqlite_files(config)?;
    Ok(Place { main: config.storage.file()?, ids: issuer_files(config)?.0 })
}

/// The directory of the files of messages, unless they lie in a bucket.
pub fn directory_of_files(config: &Config) -> Option<PathBuf> {
    config.files.store.directory(&config.storage.place())
}

fn only_sqlite_files(config: &Config) -> Result<(), BootError> {
    match config.storage.database_url.kind() {
        DatabaseKind::Sqlite => Ok(()),
        DatabaseKind::Postgres => Err(BootError::BackUpPostgres),
    }
}
