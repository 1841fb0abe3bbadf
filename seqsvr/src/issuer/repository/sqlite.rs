//! Rows in a SQLite file, which any number of processes of one machine may share. Owns one connection; a failed
//! statement gives it up, and the next call opens another.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous};
use sqlx::{Connection, Row as _, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

use super::{Extension, Repository, RepositoryError, Row, Values, check_forward};
use crate::issuer::range::Range;
use crate::issuer::tag::Tag;

/// How long to wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS issuer_tags (biz_tag TEXT PRIMARY KEY, start INTEGER NOT NULL,
        max INTEGER NOT NULL, step INTEGER NOT NULL, updated_at INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS issuer_extensions (biz_tag TEXT NOT NULL, first INTEGER NOT NULL,
        last INTEGER NOT NULL, used_at INTEGER NOT NULL, PRIMARY KEY (biz_tag, first)) WITHOUT ROWID;";

/// Milliseconds since 1970, by SQLite's clock.
macro_rules! now {
    () => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    };
}

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

    /// The connection, opened if need be, out of its place. Who succeeds puts it back.
    async fn checked_out(
        &self,
    ) -> Result<(MutexGuard<'_, Option<SqliteConnection>>, SqliteConnection), RepositoryError> {
        let mut slot = self.connection.lock().await;
        let connection = match slot.take() {
            Some(connection) => connection,
            None => connect(&self.path).await.map_err(|error| self.unavailable(error))?,
        };
        Ok((slot, connection))
    }

    fn unavailable(&self, error: sqlx::Error) -> RepositoryError {
        RepositoryError::Unavailable(format!("{}: {error}", self.path.display()))
    }
}

async fn connect(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(BUSY_TIMEOUT)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    sqlx::raw_sql(SCHEMA).execute(&mut connection).await?;
    Ok(connection)
}

/// A row as `biz_tag, start, max, step, updated_at`.
fn row(stored: &SqliteRow) -> Result<Row, sqlx::Error> {
    let number = |index| stored.try_get::<i64, _>(index).map(i64::cast_unsigned);
    let values = Values { start: number(1)?, max: number(2)?, step: number(3)? };
    Ok(Row { tag: tag(stored)?, values, updated_at: number(4)? })
}

fn tag(stored: &SqliteRow) -> Result<Tag, sqlx::Error> {
    Tag::new(stored.try_get(0)?).map_err(|bad| sqlx::Error::Decode(bad.into()))
}

async fn reconcile(
    connection: &mut SqliteConnection,
    Extension { tag, range, used_at }: &Extension,
) -> Result<bool, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let inserted =
        sqlx::query("INSERT INTO issuer_extensions VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")
            .bind(tag.as_str())
            .bind(range.first.cast_signed())
            .bind(range.last.cast_signed())
            .bind(used_at.cast_signed())
            .execute(&mut *transaction)
            .await?;
    sqlx::query(concat!(
        "INSERT INTO issuer_tags VALUES (?1, ?2, ?3, ?4, ",
        now!(),
        ") ON CONFLICT (biz_tag) DO UPDATE SET max = excluded.max, updated_at = excluded.updated_at \
         WHERE excluded.max > issuer_tags.max"
    ))
    .bind(tag.as_str())
    .bind(range.first.cast_signed())
    .bind(range.last.cast_signed())
    .bind(range.count().cast_signed())
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(inserted.rows_affected() > 0)
}

/// Runs a query, and puts the connection back if it succeeded.
macro_rules! run {
    ($self:ident, $query:expr, $run:ident) => {{
        let (mut slot, mut connection) = $self.checked_out().await?;
        let done = $query.$run(&mut connection).await.map_err(|error| $self.unavailable(error))?;
        *slot = Some(connection);
        done
    }};
}

#[async_trait]
impl Repository for SqliteRepository {
    async fn get(&self, tag: &Tag) -> Result<Option<Row>, RepositoryError> {
        let query =
            sqlx::query("SELECT biz_tag, start, max, step, updated_at FROM issuer_tags WHERE biz_tag = ?1");
        let found = run!(self, query.bind(tag.as_str()), fetch_optional);
        found.as_ref().map(row).transpose().map_err(|error| self.unavailable(error))
    }

    async fn list(&self) -> Result<Vec<Row>, RepositoryError> {
        let query =
            sqlx::query("SELECT biz_tag, start, max, step, updated_at FROM issuer_tags ORDER BY biz_tag");
        let found = run!(self, query, fetch_all);
        found.iter().map(row).collect::<Result<_, _>>().map_err(|error| self.unavailable(error))
    }

    async fn create(&self, tag: &Tag, values: Values) -> Result<bool, RepositoryError> {
        let query = sqlx::query(concat!(
            "INSERT INTO issuer_tags VALUES (?1, ?2, ?3, ?4, ",
            now!(),
            ") ON CONFLICT DO NOTHING"
        ));
        let query = query
            .bind(tag.as_str())
            .bind(values.start.cast_signed())
            .bind(values.max.cast_signed())
            .bind(values.step.cast_signed());
        Ok(run!(self, query, execute).rows_affected() > 0)
    }

    async fn take(&self, tag: &Tag, expected: u64, values: Values) -> Result<bool, RepositoryError> {
        check_forward(tag, expected, values)?;
        let query = sqlx::query(concat!(
            "UPDATE issuer_tags SET start = ?3, max = ?4, step = ?5, updated_at = ",
            now!(),
            " WHERE biz_tag = ?1 AND max = ?2"
        ));
        let query = query
            .bind(tag.as_str())
            .bind(expected.cast_signed())
            .bind(values.start.cast_signed())
            .bind(values.max.cast_signed())
            .bind(values.step.cast_signed());
        Ok(run!(self, query, execute).rows_affected() > 0)
    }

    async fn remove(&self, tag: &Tag) -> Result<bool, RepositoryError> {
        let query = sqlx::query("DELETE FROM issuer_tags WHERE biz_tag = ?1").bind(tag.as_str());
        Ok(run!(self, query, execute).rows_affected() > 0)
    }

    async fn reconcile(&self, extension: &Extension) -> Result<bool, RepositoryError> {
        let (mut slot, mut connection) = self.checked_out().await?;
        let first = reconcile(&mut connection, extension).await.map_err(|error| self.unavailable(error))?;
        *slot = Some(connection);
        Ok(first)
    }

    async fn extensions(&self, of: &Tag) -> Result<Vec<Extension>, RepositoryError> {
        let query = sqlx::query(
            "SELECT biz_tag, first, last, used_at FROM issuer_extensions WHERE biz_tag = ?1 ORDER BY first",
        );
        let found = run!(self, query.bind(of.as_str()), fetch_all);
        let extension = |stored: &SqliteRow| -> Result<Extension, sqlx::Error> {
            let number = |index| stored.try_get::<i64, _>(index).map(i64::cast_unsigned);
            let range = Range { first: number(1)?, last: number(2)? };
            Ok(Extension { tag: tag(stored)?, range, used_at: number(3)? })
        };
        found.iter().map(extension).collect::<Result<_, _>>().map_err(|error| self.unavailable(error))
    }
}

#[cfg(test)]
mod tests {
    use super::SqliteRepository;

    async fn fresh() -> (SqliteRepository, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (SqliteRepository::new(folder.path().join("issuer.db")), folder)
    }

    super::super::conformance::conformance!(fresh);
}
