//! Definitions of tables: plain transactions, written rarely.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::domain::Timestamp;
use crate::store::StoreError;
use crate::store::postgres::PgDb;
use crate::store::postgres::layout::Layout;
use crate::store::tables::{LARGEST_ASSIGNED, TableId, TableMade, TableRecord, table_record};

/// After which number new counters begin; absent: from 1. `commit_rows` reads it.
pub(super) const FLOOR: &str = "table_floor";

/// For so long the name of a deleted table's rows is kept, in milliseconds: a commit that began before has ended long since.
const KEPT: i64 = 600_000;

const COLUMNS: &str =
    "SELECT id, instance, name, definition, created_at FROM tables WHERE deleted_at IS NULL";

/// Makes a table, of an instance, with a name and a definition.
pub(super) async fn create(
    db: &PgDb,
    (instance, name, definition): (&str, &str, &str),
    now: Timestamp,
    most: usize,
) -> Result<TableMade, StoreError> {
    let mut connection = db.reader().await?;
    let mut tx = connection.begin().await?;
    // One at a time; reads go on.
    sqlx::query("LOCK TABLE tables IN SHARE ROW EXCLUSIVE MODE").execute(&mut *tx).await?;
    if let Some(table) = table(&mut tx, instance, name).await? {
        return Ok(TableMade::Exists(table));
    }
    let count = "SELECT count(*) FROM tables WHERE instance = $1 AND deleted_at IS NULL";
    let count: i64 = sqlx::query_scalar(count).bind(instance).fetch_one(&mut *tx).await?;
    if usize::try_from(count).is_ok_and(|count| count >= most) {
        return Ok(TableMade::TooMany);
    }
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO tables (instance, name, definition, created_at) VALUES ($1, $2, $3, $4) RETURNING id",
    )
    .bind(instance)
    .bind(name)
    .bind(definition)
    .bind(now.0)
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(TableMade::Made(TableRecord {
        id: TableId(id.cast_unsigned()),
        instance: instance.to_owned(),
        name: name.to_owned(),
        definition: definition.to_owned(),
        created_at: now,
    }))
}

/// The table of this name.
pub(super) async fn table(
    connection: &mut PgConnection,
    instance: &str,
    name: &str,
) -> Result<Option<TableRecord>, StoreError> {
    let sql = AssertSqlSafe(format!("{COLUMNS} AND instance = $1 AND name = $2"));
    let row = sqlx::query(sql).bind(instance).bind(name).fetch_optional(connection).await?;
    row.as_ref().map(table_record).transpose()
}

/// Those of an instance, by name.
pub(super) async fn tables(
    connection: &mut PgConnection,
    instance: &str,
) -> Result<Vec<TableRecord>, StoreError> {
    let sql = AssertSqlSafe(format!("{COLUMNS} AND instance = $1 ORDER BY name"));
    sqlx::query(sql).bind(instance).fetch_all(connection).await?.iter().map(table_record).collect()
}

/// Those with larger numbers than `after`.
pub(super) async fn tables_after(
    connection: &mut PgConnection,
    after: TableId,
    limit: usize,
) -> Result<Vec<TableRecord>, StoreError> {
    let sql = AssertSqlSafe(format!("{COLUMNS} AND id > $1 ORDER BY id LIMIT $2"));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let query = sqlx::query(sql).bind(after.0.cast_signed()).bind(limit);
    query.fetch_all(connection).await?.iter().map(table_record).collect()
}

/// Replaces a definition. Whether it was `from`.
pub(super) async fn redefine(
    connection: &mut PgConnection,
    table: TableId,
    from: &str,
    to: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE tables SET definition = $3 WHERE id = $1 AND definition = $2 AND deleted_at IS NULL",
    );
    let done = done.bind(table.0.cast_signed()).bind(from).bind(to).execute(connection).await?;
    Ok(done.rows_affected() > 0)
}

/// Deletes a table.
pub(super) async fn delete(connection: &mut PgConnection, table: TableId) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE tables SET deleted_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint
         WHERE id = $1 AND deleted_at IS NULL",
    );
    Ok(done.bind(table.0.cast_signed()).execute(connection).await?.rows_affected() > 0)
}

/// Removes rows and counters of deleted tables, and those that nothing can be left of.
pub(super) async fn forget_deleted(db: &PgDb, limit: usize) -> Result<u64, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let deleted = async {
        let sql = "SELECT id FROM tables WHERE deleted_at IS NOT NULL ORDER BY deleted_at, id";
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
                     AND deleted_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $2
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

/// Keys and the digests of what is left of them.
type Keys = (Vec<String>, Vec<Vec<u8>>, Vec<Vec<u8>>);

/// Removes up to `limit` of one kind; how many there were.
async fn remove(db: &PgDb, table: i64, kind: &TablePart, limit: i64) -> Result<i64, StoreError> {
    let mut connection = db.reader().await?;
    let keys: Vec<(String, Vec<u8>, Vec<u8>)> =
        sqlx::query_as(kind.keys).bind(table).bind(limit).fetch_all(&mut *connection).await?;
    let count = keys.len() as i64;
    // In one transaction, or in one for each partition.
    let mut parts: BTreeMap<Option<String>, Keys> = BTreeMap::new();
    for (partition, key, digest) in keys {
        let part = Some(partition.clone()).filter(|_| db.layout == Layout::Distributed);
        let (partitions, keys, digests) = parts.entry(part).or_default();
        partitions.push(partition);
        keys.push(key);
        digests.push(digest);
    }
    for (partitions, keys, digests) in parts.into_values() {
        sqlx::query(kind.remove)
            .bind(table)
            .bind(partitions)
            .bind(keys)
            .bind(digests)
            .execute(&mut *connection)
            .await?;
    }
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
