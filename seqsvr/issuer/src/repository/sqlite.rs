//! Rows in a SQLite file, which any number of processes of one machine may share. Owns one connection; a failed
//! statement gives it up, and the next call opens another.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, Row as _, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

use super::sql::repository;
use super::{Extension, Repository, RepositoryError, TagRow, Values, check_forward};
use crate::range::Range;
use crate::sql::sqlite_connection;
use crate::tag::Tag;

/// How long to wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS issuer_tags (biz_tag TEXT PRIMARY KEY, start INTEGER NOT NULL,
        max INTEGER NOT NULL, step INTEGER NOT NULL, updated_at INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS issuer_extensions (biz_tag TEXT NOT NULL, first INTEGER NOT NULL,
        last INTEGER NOT NULL, used_at INTEGER NOT NULL, PRIMARY KEY (biz_tag, first)) WITHOUT ROWID;";

/// A [`Repository`] in one SQLite file (WAL, `synchronous=FULL`).
#[derive(Debug)]
pub struct SqliteRepository {
    path: PathBuf,
    connection: Mutex<Option<SqliteConnection>>,
}

impl SqliteRepository {
    /// Uses the file, which is opened by the first call and made if there is none.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), connection: Mutex::new(None) }
    }

    /// The connection, opened if need be, out of its place.
    async fn hold(&self) -> Result<SqliteHold<'_>, RepositoryError> {
        let mut slot = self.connection.lock().await;
        let connection = match slot.take() {
            Some(connection) => connection,
            None => sqlite_connection(&self.path, BUSY_TIMEOUT, SCHEMA)
                .await
                .map_err(|error| self.unavailable(error))?,
        };
        Ok(SqliteHold { slot, connection })
    }

    fn unavailable(&self, error: sqlx::Error) -> RepositoryError {
        RepositoryError::Unavailable(format!("{}: {error}", self.path.display()))
    }
}

/// Dropped without having been kept, it closes the connection.
struct SqliteHold<'a> {
    slot: MutexGuard<'a, Option<SqliteConnection>>,
    connection: SqliteConnection,
}

impl SqliteHold<'_> {
    fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }

    fn keep(mut self) {
        *self.slot = Some(self.connection);
    }
}

repository!(
    SqliteRepository,
    SqliteRow,
    now = "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    begin = "BEGIN IMMEDIATE"
);

#[cfg(test)]
mod tests {
    use super::SqliteRepository;

    async fn fresh() -> (SqliteRepository, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (SqliteRepository::new(folder.path().join("issuer.db")), folder)
    }

    super::super::conformance::conformance!(fresh);
}
