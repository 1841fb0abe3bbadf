//! How an installation on SQLite is, for operators: read beside the server that has it, and nothing is made or migrated.

use std::path::{Path, PathBuf};

use super::backup::last_backup;
use super::journal::Journal;
use super::{OpenError, db, journal, meta};
use crate::store::{Facts, StoreError};

/// Facts about the database at `path`, and about the log beside it.
///
/// # Errors
/// When it cannot be read, or belongs to another version.
pub async fn status(path: &Path) -> Result<Facts, OpenError> {
    use sqlx::{Connection as _, SqliteConnection};
    let connect = db::connect_options(path).read_only(true).create_if_missing(false);
    let refused = |error| OpenError::of(path, error);
    let mut connection = SqliteConnection::connect_with(&connect).await.map_err(refused)?;
    db::check_migrated(path, &mut connection).await?;
    let unreadable = |source| OpenError::Unreadable { path: path.to_owned(), source };
    let facts = read(path, &mut connection).await.map_err(unreadable)?;
    _ = connection.close().await;
    Ok(facts)
}

async fn read(path: &Path, connection: &mut sqlx::SqliteConnection) -> Result<Facts, StoreError> {
    let mut files: Vec<PathBuf> = vec![path.to_owned()];
    files.extend(Journal::paths_beside(path));
    let bytes: u64 = files.iter().filter_map(|path| path.metadata().ok()).map(|found| found.len()).sum();
    let history = meta::history(&mut *connection).await?.map(|history| history.to_string());
    let flushed = meta::number(&mut *connection, meta::FLUSHED).await?;
    let log = journal::noted(&mut *connection).await;
    let last_backup = last_backup(path).map_or_else(|| "none".to_owned(), |moment| moment.to_rfc3339());
    let path = path.to_owned();
    let unflushed = async move {
        let Some(log) = log? else { return Ok(None) };
        let read = move || journal::batches_after(&path, log, flushed);
        let batches = tokio::task::spawn_blocking(read).await.map_err(StoreError::unavailable)??;
        Ok::<_, StoreError>(batches.map(|batches| batches.len()))
    };
    let set_aside: i64 =
        sqlx::query_scalar("SELECT count(*) FROM set_aside").fetch_one(&mut *connection).await?;
    Ok(vec![
        ("bytes", bytes.into()),
        ("history", history.into()),
        ("unflushed_batches", unflushed.await.map_or_else(|error| error.to_string().into(), Into::into)),
        ("rows_set_aside", set_aside.into()),
        ("last_backup", last_backup.into()),
    ])
}
