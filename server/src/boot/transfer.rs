//! The database for the commands that move data: one moment to read, an installation to fill, an inbox to add to.

use std::sync::Arc;

use super::storage::{Database, check_installed, direct_url};
use super::{BootError, Storage, new_history};
use crate::config::{Config, DatabaseKind};
use crate::notify::postgres::{Alone, keep_servers_away};
use crate::store::archive::{ExportSnapshot, InboxImport, Restore};
use crate::store::postgres::{PgExportSnapshot, PgInboxImport, PgRestore, listening};
use crate::store::sqlite::{SqliteExportSnapshot, SqliteInboxImport, SqliteRestore};

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
    /// A guard that keeps servers away until it is dropped: `None` on SQLite, where the lock of the database does.
    ///
    /// # Errors
    /// [`BootError::Hints`] when one is at work.
    pub async fn keep_servers_away(&self, config: &Config) -> Result<Option<Alone>, BootError> {
        match &self.database {
            Database::Sqlite(_) => Ok(None),
            Database::Postgres(db) => {
                let url = direct_url(config, db).await?;
                Ok(Some(keep_servers_away(&listening(url)?).await?))
            }
        }
    }

    /// This installation to be filled, if it is empty.
    ///
    /// # Errors
    /// When its tables are distributed.
    pub fn restore(&self) -> Result<Box<dyn Restore>, BootError> {
        match &self.database {
            Database::Sqlite(db) => Ok(Box::new(SqliteRestore::new(Arc::clone(db)))),
            Database::Postgres(db) => {
                db.only_plain(IMPORT)?;
                Ok(Box::new(PgRestore::new(Arc::clone(db), new_history())))
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
