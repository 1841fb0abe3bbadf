//! Tables in archives: what an export reads of them, and what an import stores.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use super::definitions::FLOOR;
use super::read::split;
use crate::domain::PartitionKey;
use crate::store::StoreError;
use crate::store::archive::{About, CounterRecord, Record, RecordKey, TableRowRecord};
use crate::store::sql::SqlConnection;
use crate::store::table_definitions::tables_after;
use crate::store::tables::{TableId, TableRecord};

/// Bytes of rows that are read at a time; the first row always goes.
const MOST_BYTES: i64 = 8 << 20;

/// The revision of imported rows, which no commit gives.
const IMPORTED: i64 = 1;

/// A hash of the state of all tables, and how many tables, counters and rows there are.
pub(in crate::store::postgres) async fn about(
    connection: &mut PgConnection,
) -> Result<(u64, [i64; 3]), StoreError> {
    let tables = tables_after(SqlConnection::Postgres(&mut *connection), TableId(0), usize::MAX).await?;
    // Each row that comes, changes or goes moves the first sum, each number that is given the other. Revisions of several servers come in no
    // order, so a larger one in place of another could make up for a smaller one elsewhere; their hashes do not.
    let (counters, rows, state): (i64, i64, String) = sqlx::query_as(
        "SELECT counters.count, rows.count, concat(counters.sum, ' ', rows.sum)
         FROM (SELECT count(*), sum(last_id) FROM table_counters WHERE table_id = ANY ($1)) AS counters,
             (SELECT count(*), sum(hashint8extended(revision, 0)) FROM table_rows WHERE table_id = ANY ($1)) AS rows",
    )
    .bind(tables.iter().map(|table| table.id.0.cast_signed()).collect::<Vec<_>>())
    .fetch_one(connection)
    .await?;
    Ok((About::tables_at(&tables, state), [tables.len() as i64, counters, rows]))
}

/// Definitions after `after`.
pub(in crate::store::postgres) async fn tables(
    connection: &mut PgConnection,
    after: Option<RecordKey>,
    limit: i64,
) -> Result<Vec<Record>, StoreError> {
    let after = if let Some(RecordKey::Table(table)) = after { table } else { TableId(0) };
    let floor = sqlx::query_scalar::<_, i64>("SELECT value::bigint FROM meta WHERE key = $1");
    let floor = floor.bind(FLOOR).fetch_optional(&mut *connection).await?.unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let tables = tables_after(SqlConnection::Postgres(connection), after, limit).await?;
    Ok(tables.into_iter().map(|table| Record::Table(table, floor)).collect())
}

/// Counters after `after`.
pub(in crate::store::postgres) async fn counters(
    connection: &mut PgConnection,
    after: Option<RecordKey>,
    limit: i64,
) -> Result<Vec<Record>, StoreError> {
    let (table, first) = match after {
        Some(RecordKey::Counter(table, first)) => (table.0.cast_signed(), first),
        _ => (0, Vec::new()),
    };
    let rows = sqlx::query(
        "SELECT table_id, partition_key, first, last_id FROM table_counters WHERE (table_id, first) > ($1, $2)
             AND EXISTS (SELECT FROM tables WHERE id = table_id AND deleted IS NULL)
         ORDER BY table_id, first LIMIT $3",
    );
    let rows = rows.bind(table).bind(first).bind(limit).fetch_all(connection).await?;
    let counter = |row: &PgRow| {
        Ok(Record::Counter(CounterRecord {
            table: TableId(row.try_get::<i64, _>(0)?.cast_unsigned()),
            partition_key: partition_key(row.try_get(1)?)?,
            first: row.try_get(2)?,
            last_id: row.try_get(3)?,
        }))
    };
    rows.iter().map(counter).collect()
}

/// Rows after `after`.
pub(in crate::store::postgres) async fn rows(
    connection: &mut PgConnection,
    after: Option<RecordKey>,
    limit: i64,
) -> Result<Vec<Record>, StoreError> {
    let (table, key) = match after {
        Some(RecordKey::TableRow(table, key)) => (table.0.cast_signed(), key),
        _ => (0, Vec::new()),
    };
    let (key, rest) = split(&key);
    let rows = sqlx::query(
        "SELECT table_id, partition_key, key, rest, row
         FROM (SELECT *, sum(octet_length(row)) OVER (ORDER BY table_id, key, rest
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
             FROM (SELECT table_id, partition_key, key, rest, row FROM table_rows
                 WHERE (table_id, key) >= ($1, $2) AND (table_id, key, rest) > ($1, $2, $3)
                     AND EXISTS (SELECT FROM tables WHERE id = table_id AND deleted IS NULL)
                 ORDER BY table_id, key, rest LIMIT $4) AS page) AS page
         WHERE coalesce(before, 0) < $5 ORDER BY table_id, key, rest",
    );
    let rows = rows.bind(table).bind(key).bind(rest).bind(limit).bind(MOST_BYTES);
    let row = |row: &PgRow| {
        let (mut key, rest): (Vec<u8>, &[u8]) = (row.try_get(2)?, row.try_get(3)?);
        key.extend(rest);
        Ok(Record::TableRow(TableRowRecord {
            table: TableId(row.try_get::<i64, _>(0)?.cast_unsigned()),
            partition_key: partition_key(row.try_get(1)?)?,
            key,
            row: row.try_get(4)?,
        }))
    };
    rows.fetch_all(connection).await?.iter().map(row).collect()
}

fn partition_key(text: &str) -> Result<PartitionKey, StoreError> {
    PartitionKey::parse(text).ok_or_else(|| StoreError::corrupt(format!("`{text}` is not a partition key")))
}

/// Makes a table as an archive has it. `begins_after`: after which number its new counters begin.
pub(in crate::store::postgres) async fn import(
    connection: &mut PgConnection,
    table: &TableRecord,
    begins_after: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "WITH made AS (INSERT INTO tables (id, instance, name, definition, created_at) VALUES ($1, $2, $3, $4, $5))
         SELECT setval(pg_get_serial_sequence('tables', 'id'), $1)",
    )
    .bind(table.id.0.cast_signed())
    .bind(&table.instance)
    .bind(&table.name)
    .bind(&table.definition)
    .bind(table.created_at.0)
    .execute(&mut *connection)
    .await?;
    if begins_after > 0 {
        sqlx::query(
            "INSERT INTO meta AS known (key, value) VALUES ($1, $2::text)
             ON CONFLICT (key) DO UPDATE SET value = greatest(known.value::bigint, $2)::text",
        )
        .bind(FLOOR)
        .bind(begins_after)
        .execute(connection)
        .await?;
    }
    Ok(())
}

/// Stores counters.
pub(in crate::store::postgres) async fn import_counters(
    connection: &mut PgConnection,
    counters: &[CounterRecord],
) -> Result<(), StoreError> {
    let all = || counters.iter();
    sqlx::query(
        "INSERT INTO table_counters (partition_key, table_id, first, last_id)
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bigint[])",
    )
    .bind(all().map(|counter| counter.partition_key.to_string()).collect::<Vec<_>>())
    .bind(all().map(|counter| counter.table.0.cast_signed()).collect::<Vec<_>>())
    .bind(all().map(|counter| &counter.first[..]).collect::<Vec<_>>())
    .bind(all().map(|counter| counter.last_id).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores rows.
pub(in crate::store::postgres) async fn import_rows(
    connection: &mut PgConnection,
    rows: &[TableRowRecord],
) -> Result<(), StoreError> {
    let mut rest = rows;
    while !rest.is_empty() {
        // A chunk of an import may have rows of megabytes; a statement has not.
        let mut bytes = 0;
        let fits = |row: &&TableRowRecord| {
            let fits = bytes < MOST_BYTES;
            bytes += row.row.len() as i64;
            fits
        };
        let count = rest.iter().take_while(fits).count();
        let (now, later) = rest.split_at(count);
        let all = || now.iter();
        sqlx::query(
            "INSERT INTO table_rows (partition_key, table_id, key, rest, rest_digest, revision, row)
             SELECT new.partition_key, new.table_id, new.key, new.rest, CASE WHEN new.rest = '' THEN '' ELSE sha256(new.rest) END, $6, new.row
             FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[]) AS new(partition_key, table_id, key, rest, row)",
        )
        .bind(all().map(|row| row.partition_key.to_string()).collect::<Vec<_>>())
        .bind(all().map(|row| row.table.0.cast_signed()).collect::<Vec<_>>())
        .bind(all().map(|row| split(&row.key).0).collect::<Vec<_>>())
        .bind(all().map(|row| split(&row.key).1).collect::<Vec<_>>())
        .bind(all().map(|row| &row.row[..]).collect::<Vec<_>>())
        .bind(IMPORTED)
        .execute(&mut *connection)
        .await?;
        rest = later;
    }
    Ok(())
}
