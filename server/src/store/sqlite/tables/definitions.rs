//! Tables that are deleted, and the numbers of all. Written into the main database at once, without the journal.

use sqlx::SqliteConnection;

use crate::store::StoreError;
use crate::store::sqlite::db::Db;
use crate::store::sqlite::meta;
use crate::store::tables::{LARGEST_ASSIGNED, TableId, TableRecord};

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
