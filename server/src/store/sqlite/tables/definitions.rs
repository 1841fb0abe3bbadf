//! Definitions of tables, and which tables there are. They are written into the main database at once, without the journal.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use sqlx::SqliteConnection;

use crate::domain::Timestamp;
use crate::store::StoreError;
use crate::store::sqlite::db::Db;
use crate::store::sqlite::meta;
use crate::store::tables::{LARGEST_ASSIGNED, TableId, TableMade, TableRecord, table_record};

/// The tables that are not deleted. The committer and reads ask it, so that a deleted table is gone at once.
#[derive(Default)]
pub(in crate::store::sqlite) struct LiveTables {
    ids: RwLock<HashSet<TableId>>,
}

impl LiveTables {
    /// Those of the database.
    pub(in crate::store::sqlite) async fn read(db: &Db) -> Result<LiveTables, StoreError> {
        let ids: Vec<i64> =
            sqlx::query_scalar("SELECT id FROM tables WHERE deleted IS NULL").fetch_all(db.readers()).await?;
        let ids = ids.into_iter().map(|id| TableId(id.cast_unsigned())).collect();
        Ok(LiveTables { ids: RwLock::new(ids) })
    }

    pub(super) fn contains(&self, table: TableId) -> bool {
        self.ids.read().unwrap_or_else(PoisonError::into_inner).contains(&table)
    }

    pub(super) fn insert(&self, table: TableId) {
        self.ids.write().unwrap_or_else(PoisonError::into_inner).insert(table);
    }

    /// From now on it is gone.
    pub(in crate::store::sqlite) fn remove(&self, table: TableId) {
        self.ids.write().unwrap_or_else(PoisonError::into_inner).remove(&table);
    }
}

const COLUMNS: &str = "SELECT id, instance, name, definition, created_at FROM tables WHERE deleted IS NULL";

/// Makes a table, of an instance, with a name and a definition.
pub(super) async fn create(
    db: &Db,
    (instance, name, definition): (&str, &str, &str),
    now: Timestamp,
    most: usize,
) -> Result<TableMade, StoreError> {
    let mut tx = db.write().await?;
    let made = match table(&mut tx, instance, name).await? {
        Some(table) => TableMade::Exists(table),
        None => {
            let count = "SELECT count(*) FROM tables WHERE instance = ? AND deleted IS NULL";
            let count: i64 = sqlx::query_scalar(count).bind(instance).fetch_one(&mut *tx).await?;
            if usize::try_from(count).is_ok_and(|count| count >= most) {
                TableMade::TooMany
            } else {
                let id: i64 = sqlx::query_scalar(
                    "INSERT INTO tables (instance, name, definition, created_at) VALUES (?, ?, ?, ?) RETURNING id",
                )
                .bind(instance)
                .bind(name)
                .bind(definition)
                .bind(now.0)
                .fetch_one(&mut *tx)
                .await?;
                TableMade::Made(TableRecord {
                    id: TableId(id.cast_unsigned()),
                    instance: instance.to_owned(),
                    name: name.to_owned(),
                    definition: definition.to_owned(),
                    created_at: now,
                })
            }
        }
    };
    tx.commit().await?;
    Ok(made)
}

/// The table of this name.
pub(super) async fn table(
    connection: &mut SqliteConnection,
    instance: &str,
    name: &str,
) -> Result<Option<TableRecord>, StoreError> {
    let sql = sqlx::AssertSqlSafe(format!("{COLUMNS} AND instance = ? AND name = ?"));
    let row = sqlx::query(sql).bind(instance).bind(name).fetch_optional(connection).await?;
    row.as_ref().map(table_record).transpose()
}

/// Those of an instance, by name.
pub(super) async fn tables(
    connection: &mut SqliteConnection,
    instance: &str,
) -> Result<Vec<TableRecord>, StoreError> {
    let sql = sqlx::AssertSqlSafe(format!("{COLUMNS} AND instance = ? ORDER BY name"));
    sqlx::query(sql).bind(instance).fetch_all(connection).await?.iter().map(table_record).collect()
}

/// Those with larger numbers than `after`.
pub(in crate::store::sqlite) async fn tables_after(
    connection: &mut SqliteConnection,
    after: TableId,
    limit: usize,
) -> Result<Vec<TableRecord>, StoreError> {
    let sql = sqlx::AssertSqlSafe(format!("{COLUMNS} AND id > ? ORDER BY id LIMIT ?"));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let query = sqlx::query(sql).bind(after.0.cast_signed()).bind(limit);
    query.fetch_all(connection).await?.iter().map(table_record).collect()
}

/// Replaces a definition. Whether it was `from`.
pub(super) async fn redefine(db: &Db, table: TableId, from: &str, to: &str) -> Result<bool, StoreError> {
    let mut tx = db.write().await?;
    let done =
        sqlx::query("UPDATE tables SET definition = ? WHERE id = ? AND definition = ? AND deleted IS NULL")
            .bind(to)
            .bind(table.0.cast_signed())
            .bind(from)
            .execute(&mut *tx)
            .await?;
    tx.commit().await?;
    Ok(done.rows_affected() > 0)
}

/// Deletes a table. `through`: the last batch of the journal that may have rows of it.
pub(super) async fn delete(db: &Db, table: TableId, through: u64) -> Result<bool, StoreError> {
    let mut tx = db.write().await?;
    let done = sqlx::query("UPDATE tables SET deleted = ? WHERE id = ? AND deleted IS NULL")
        .bind(through.cast_signed())
        .bind(table.0.cast_signed())
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(done.rows_affected() > 0)
}

/// Removes rows and counters of deleted tables, and those of which no flush can bring any more.
pub(super) async fn forget_deleted(db: &Db, limit: usize) -> Result<u64, StoreError> {
    let deleted = "SELECT id, deleted FROM tables WHERE deleted IS NOT NULL ORDER BY deleted, id";
    let deleted: Vec<(i64, i64)> = sqlx::query_as(deleted).fetch_all(db.readers()).await?;
    if deleted.is_empty() {
        return Ok(0);
    }
    let mut tx = db.write().await?;
    let flushed = meta::number(&mut *tx, meta::FLUSHED).await?.cast_signed();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut left = limit;
    for (table, through) in deleted {
        for remove in [
            "DELETE FROM table_rows WHERE table_id = ?1 AND key IN
                (SELECT key FROM table_rows WHERE table_id = ?1 ORDER BY key LIMIT ?2)",
            "DELETE FROM table_counters WHERE table_id = ?1 AND first IN
                (SELECT first FROM table_counters WHERE table_id = ?1 ORDER BY first LIMIT ?2)",
        ] {
            let removed = sqlx::query(remove).bind(table).bind(left).execute(&mut *tx).await?;
            left -= removed.rows_affected().cast_signed();
        }
        if left <= 0 {
            break;
        }
        // Nothing of it is left, here and in the journal.
        if through <= flushed {
            sqlx::query("DELETE FROM tables WHERE id = ?").bind(table).execute(&mut *tx).await?;
        }
    }
    tx.commit().await?;
    Ok((limit - left).cast_unsigned())
}

/// Lets the counters of all tables go on `by` further on, also those that there are none of so far.
pub(in crate::store::sqlite) async fn skip_numbers(
    connection: &mut SqliteConnection,
    by: u64,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE table_counters SET last_id = min(last_id + ?, ?)")
        .bind(by.cast_signed())
        .bind(LARGEST_ASSIGNED)
        .execute(&mut *connection)
        .await?;
    let floor = meta::number(&mut *connection, meta::TABLE_FLOOR).await?;
    meta::put(connection, meta::TABLE_FLOOR, (floor + by).min(LARGEST_ASSIGNED.cast_unsigned())).await
}

/// Makes a table as an archive has it. `begins_after`: after which number its new counters begin.
pub(in crate::store::sqlite) async fn import(
    connection: &mut SqliteConnection,
    table: &TableRecord,
    begins_after: i64,
) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO tables (id, instance, name, definition, created_at) VALUES (?, ?, ?, ?, ?)")
        .bind(table.id.0.cast_signed())
        .bind(&table.instance)
        .bind(&table.name)
        .bind(&table.definition)
        .bind(table.created_at.0)
        .execute(&mut *connection)
        .await?;
    let floor = meta::number(&mut *connection, meta::TABLE_FLOOR).await?;
    if begins_after.cast_unsigned() > floor {
        meta::put(connection, meta::TABLE_FLOOR, begins_after).await?;
    }
    Ok(())
}
