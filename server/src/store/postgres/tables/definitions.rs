//! Tables that are deleted, and the numbers of all.

use sqlx::PgConnection;

use crate::store::StoreError;
use crate::store::postgres::PgDb;
use crate::store::tables::{LARGEST_ASSIGNED, TableId};

/// After which number new counters begin; absent: from 1. `commit_rows` reads it.
pub(super) const FLOOR: &str = "table_floor";

/// For so long the name of a deleted table's rows is kept, in milliseconds: a commit that began before has ended long since.
const KEPT: i64 = 600_000;

/// Deletes a table.
pub(super) async fn delete(connection: &mut PgConnection, table: TableId) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE tables SET deleted = (extract(epoch FROM clock_timestamp()) * 1000)::bigint
         WHERE id = $1 AND deleted IS NULL",
    );
    Ok(done.bind(table.0.cast_signed()).execute(connection).await?.rows_affected() > 0)
}

/// Removes rows and counters of deleted tables, and those that nothing can be left of.
pub(super) async fn forget_deleted(db: &PgDb, limit: usize) -> Result<u64, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let deleted = async {
        let sql = "SELECT id FROM tables WHERE deleted IS NOT NULL ORDER BY deleted, id";
        Ok(sqlx::query_scalar::<_, i64>(sql).fetch_all(&mut *db.reader().await?).await?)
    };
    let mut left = limit;
    for table in db.limited(deleted).await? {
        for kind in [&ROWS, &COUNTERS] {
            left -= db.limited(remove(db, table, kind, left)).await?;
        }
        if left <= 0 {
            break;
        }
        let last = async {
            sqlx::query(
                "DELETE FROM tables WHERE id = $1
                     AND deleted < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $2
                     AND NOT EXISTS (SELECT FROM table_rows WHERE table_id = $1)
                     AND NOT EXISTS (SELECT FROM table_counters WHERE table_id = $1)",
            )
            .bind(table)
            .bind(KEPT)
            .execute(&mut *db.reader().await?)
            .await?;
            Ok(())
        };
        db.limited(last).await?;
    }
    Ok((limit - left).cast_unsigned())
}

/// A part of a table: its keys, and how they are removed.
struct TablePart {
    keys: &'static str,
    remove: &'static str,
}

const ROWS: TablePart = TablePart {
    keys: "SELECT partition_key, key, rest_digest FROM table_rows WHERE table_id = $1 ORDER BY key LIMIT $2",
    remove: "DELETE FROM table_rows USING unnest($2, $3, $4) AS old(partition, key, digest)
        WHERE table_id = $1 AND partition_key = old.partition AND table_rows.key = old.key AND rest_digest = old.digest",
};

const COUNTERS: TablePart = TablePart {
    keys: "SELECT partition_key, first, ''::bytea FROM table_counters WHERE table_id = $1 LIMIT $2",
    remove: "DELETE FROM table_counters USING unnest($2, $3, $4) AS old(partition, key, digest)
        WHERE table_id = $1 AND partition_key = old.partition AND first = old.key AND old.digest = ''",
};

/// Removes up to `limit` of one kind; how many there were.
async fn remove(db: &PgDb, table: i64, kind: &TablePart, limit: i64) -> Result<i64, StoreError> {
    let mut connection = db.reader().await?;
    let keys: Vec<(String, Vec<u8>, Vec<u8>)> =
        sqlx::query_as(kind.keys).bind(table).bind(limit).fetch_all(&mut *connection).await?;
    let count = keys.len() as i64;
    let (partitions, keys, digests): (Vec<String>, Vec<Vec<u8>>, Vec<Vec<u8>>) = keys.into_iter().collect();
    let remove = sqlx::query(kind.remove).bind(table).bind(partitions).bind(keys).bind(digests);
    remove.execute(&mut *connection).await?;
    Ok(count)
}

/// Lets the counters of all tables go on `by` further on, also those that there are none of so far.
pub(in crate::store::postgres) async fn skip_numbers(
    connection: &mut PgConnection,
    by: u64,
) -> Result<(), sqlx::Error> {
    // Commits that are under way end first; none that begins later has read an older floor.
    sqlx::raw_sql("LOCK TABLE table_counters IN EXCLUSIVE MODE").execute(&mut *connection).await?;
    sqlx::query("UPDATE table_counters SET last_id = least(last_id + $1, $2)")
        .bind(by.cast_signed())
        .bind(LARGEST_ASSIGNED)
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "INSERT INTO meta AS known (key, value) VALUES ($1, least($2, $3)::text)
         ON CONFLICT (key) DO UPDATE SET value = least(known.value::bigint + $2, $3)::text",
    )
    .bind(FLOOR)
    .bind(by.cast_signed())
    .bind(LARGEST_ASSIGNED)
    .execute(connection)
    .await?;
    Ok(())
}
