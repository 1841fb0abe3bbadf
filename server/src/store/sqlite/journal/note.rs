//! The note in the main database that says which log belongs to it.

use std::path::Path;

use sqlx::SqliteExecutor;

use super::Journal;
use super::bad::{BadLog, LogError};
use super::log;
use super::sector::LogId;
use crate::store::StoreError;
use crate::store::sqlite::db::Db;
use crate::store::sqlite::meta;

/// The noted log; `None`: there is no log yet.
pub(super) async fn read(executor: impl SqliteExecutor<'_>) -> Result<Option<LogId>, StoreError> {
    meta::text(executor, meta::LOG).await?.map(|text| parsed(&text)).transpose()
}

/// The log that a note names.
pub(super) fn parsed(text: &str) -> Result<LogId, StoreError> {
    let number = |text| u64::from_str_radix(text, 16).ok();
    let noted = text.split_once(' ').and_then(|(id, opening)| Some((number(id)?, number(opening)?)));
    let noted = noted.map(|(id, opening)| LogId { id, opening });
    noted.ok_or_else(|| StoreError::corrupt(format!("{} is {text:?}", meta::LOG)))
}

/// The note that names a log.
pub(super) fn written(LogId { id, opening }: LogId) -> String {
    format!("{id:016x} {opening:016x}")
}

/// Notes the log, and its opening.
pub(super) async fn put(db: &Db, log: LogId) -> Result<(), StoreError> {
    let mut tx = db.write().await?;
    meta::put(&mut tx, meta::LOG, written(log)).await?;
    tx.commit().await
}

/// Looks whether the log beside `db` is the one that is noted there.
///
/// # Errors
/// The file that is not, and why. Nothing is wrong if none is noted.
pub async fn check_log(db: &Db) -> Result<Result<(), LogError>, StoreError> {
    let noted = read(db.readers()).await?;
    Ok(noted.map_or(Ok(()), |noted| check(noted, db.path())))
}

fn check(noted: LogId, main: &Path) -> Result<(), LogError> {
    Journal::paths_beside(main).iter().try_for_each(|path| match log::read_header(path)? {
        header if header.is_of(noted) => Ok(()),
        _ => Err(LogError { path: path.clone(), bad: BadLog::Other }),
    })
}

/// Goes on without the log beside `db`, of which a part is lost: another one is made.
///
/// # Errors
/// What SQLite says.
pub async fn forget_log(db: &Db) -> Result<(), StoreError> {
    let mut tx = db.write().await?;
    meta::remove(&mut tx, meta::LOG).await?;
    tx.commit().await
}
