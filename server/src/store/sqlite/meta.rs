//! The installation's own facts in the main database, by key.

use std::collections::HashMap;

use sqlx::{SqliteConnection, SqliteExecutor};

use super::db::Db;
use crate::domain::HistoryId;
use crate::store::StoreError;

/// The number of the last batch of the journal that is in the keyed tables.
pub(super) const FLUSHED: &str = "flushed_through";
/// The last acceptance among those batches.
pub(super) const ACCEPTED: &str = "accepted";
/// Which part of the young rows settles next.
pub(super) const SETTLED: &str = "settles_next";
/// Which log belongs here, and its opening.
pub(super) const LOG: &str = "log";
/// After which number new counters of tables begin; absent: from 1. A restore raises it.
pub(super) const TABLE_FLOOR: &str = "table_floor";
/// The history's name (I14).
pub(super) const HISTORY: &str = "history";

/// How often accounts were changed in a way that servers must notice; absent: never. Stored, must stay stable.
const ENDINGS: &str = "endings_of_sessions";

/// The source of message ids; absent in an installation that has not been used yet.
pub(super) const MESSAGE_IDS: &str = "message_ids";

/// While an import fills the installation: the checksum of its file.
pub(super) const IMPORT: &str = "import";
/// How many of that file's records are stored.
pub(super) const IMPORTED: &str = "imported";

/// All of them, in one query: a start needs most.
pub(super) async fn all(executor: impl SqliteExecutor<'_>) -> Result<HashMap<String, String>, StoreError> {
    let rows: Vec<(String, String)> =
        sqlx::query_as("SELECT key, value FROM meta").fetch_all(executor).await?;
    Ok(rows.into_iter().collect())
}

/// The number under `key`; 0 when there is none.
pub(super) async fn number(executor: impl SqliteExecutor<'_>, key: &str) -> Result<u64, StoreError> {
    match text(executor, key).await? {
        None => Ok(0),
        Some(text) => {
            text.parse().map_err(|_| StoreError::corrupt(format!("{key} is {text:?}, not a number")))
        }
    }
}

/// How often accounts were changed in a way that servers must notice, by whichever process.
pub(in crate::store) async fn endings(db: &Db) -> Result<u64, StoreError> {
    number(&mut *db.reader().await?, ENDINGS).await
}

/// Counts one more.
pub(in crate::store) async fn count_ending(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO meta (key, value) VALUES (?, '1') ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1",
    )
    .bind(ENDINGS)
    .execute(connection)
    .await?;
    Ok(())
}

/// Sets `key`.
pub(super) async fn put(
    connection: &mut SqliteConnection,
    key: &str,
    value: impl ToString,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )
    .bind(key)
    .bind(value.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes `key`.
pub(super) async fn remove(connection: &mut SqliteConnection, key: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM meta WHERE key = ?").bind(key).execute(connection).await?;
    Ok(())
}

/// The history's name, if it has one yet.
pub(super) async fn history(executor: impl SqliteExecutor<'_>) -> Result<Option<HistoryId>, StoreError> {
    let Some(text) = text(executor, HISTORY).await? else { return Ok(None) };
    let uuid = text.parse().map_err(|_| StoreError::corrupt(format!("the history is named {text:?}")))?;
    Ok(Some(HistoryId(uuid)))
}

/// Names the history.
pub(super) async fn put_history(
    connection: &mut SqliteConnection,
    history: HistoryId,
) -> Result<(), StoreError> {
    put(connection, HISTORY, history).await
}

/// The source of message ids; in an installation that has not been used yet, stores `proposal` and returns it.
pub async fn agreed_message_ids(db: &Db, proposal: &str) -> Result<String, StoreError> {
    if let Some(agreed) = text(db.readers(), MESSAGE_IDS).await? {
        return Ok(agreed);
    }
    put_message_ids(db, proposal).await?;
    Ok(proposal.to_owned())
}

/// Changes the source of message ids.
pub async fn put_message_ids(db: &Db, by: &str) -> Result<(), StoreError> {
    let mut tx = db.write().await?;
    put(&mut tx, MESSAGE_IDS, by).await?;
    tx.commit().await
}

/// The checksum of the file from which an import is filling the installation.
pub(super) async fn import(executor: impl SqliteExecutor<'_>) -> Result<Option<String>, StoreError> {
    text(executor, IMPORT).await
}

/// Begins an import from the file of this checksum.
pub(super) async fn begin_import(connection: &mut SqliteConnection, source: &str) -> Result<(), StoreError> {
    put(connection, IMPORT, source).await?;
    put(connection, IMPORTED, 0).await
}

/// Ends it.
pub(super) async fn end_import(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM meta WHERE key IN (?, ?)")
        .bind(IMPORT)
        .bind(IMPORTED)
        .execute(connection)
        .await?;
    Ok(())
}

/// Refuses an installation that an import has not finished.
pub(super) async fn check_finished(executor: impl SqliteExecutor<'_>) -> Result<(), StoreError> {
    match import(executor).await? {
        None => Ok(()),
        Some(_) => Err(StoreError::unavailable(
            "an import into it was not finished; run `tidemark import` with the same file again, or empty the data directory",
        )),
    }
}

/// The text under `key`.
pub(super) async fn text(executor: impl SqliteExecutor<'_>, key: &str) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar("SELECT value FROM meta WHERE key = ?").bind(key).fetch_optional(executor).await?)
}
