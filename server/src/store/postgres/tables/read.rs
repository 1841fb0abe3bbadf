//! Reads of tables.
//!
//! A key beyond 2,000 bytes lies in two columns, of which the index has the first. A page in which no such key stands is in the order of
//! the index; one in which there is one is read again, sorted by both.

use futures_util::TryStreamExt as _;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row as _};
use tokio::task::yield_now;

use crate::domain::{Direction, PartitionKey};
use crate::store::StoreError;
use crate::store::postgres::read::AT_ONCE;
use crate::store::tables::{StoredRow, TableId, TableScan};

/// Bytes of a key that the index has.
const INDEXED: usize = 2_000;

/// Rows by their keys, each looked up by itself.
pub(super) const ROWS: &str = "SELECT wanted.place, found.revision, found.row
     FROM unnest($1, $2, $3, $4) WITH ORDINALITY AS wanted(partition, of_table, key, rest, place)
     CROSS JOIN LATERAL (SELECT revision, row FROM table_rows
         WHERE partition_key = wanted.partition AND table_id = wanted.of_table AND table_rows.key = wanted.key
             AND rest_digest = CASE WHEN wanted.rest = '' THEN '' ELSE sha256(wanted.rest) END LIMIT 1) AS found
     WHERE EXISTS (SELECT FROM tables WHERE id = wanted.of_table AND deleted IS NULL)";

/// The two columns of a key.
pub(super) fn split(key: &[u8]) -> (&[u8], &[u8]) {
    key.split_at(key.len().min(INDEXED))
}

/// These rows, in order.
pub(super) async fn rows(
    connection: &mut PgConnection,
    keys: &[(TableId, PartitionKey, Vec<u8>)],
) -> Result<Vec<Option<StoredRow>>, StoreError> {
    let mut rows = vec![None; keys.len()];
    let found = sqlx::query(ROWS)
        .bind(keys.iter().map(|(_, partition, _)| partition.to_string()).collect::<Vec<_>>())
        .bind(keys.iter().map(|(table, ..)| table.0.cast_signed()).collect::<Vec<_>>())
        .bind(keys.iter().map(|(.., key)| split(key).0).collect::<Vec<_>>())
        .bind(keys.iter().map(|(.., key)| split(key).1).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    for row in found {
        let place = usize::try_from(row.try_get::<i64, _>(0)? - 1).map_err(StoreError::corrupt)?;
        let (_, _, key) =
            keys.get(place).ok_or_else(|| StoreError::corrupt("a row that nobody asked for"))?;
        let revision = row.try_get::<i64, _>(1)?.cast_unsigned();
        rows[place] = Some(StoredRow { key: key.clone(), revision, row: row.try_get(2)? });
    }
    Ok(rows)
}

/// The statement of a scan. Rows come as long as there is room for them, and then one or two keys without their rows, which tell that there
/// is more; the first row goes whatever it weighs. `by_rest`: sorted by whole keys, and compared with whole bounds.
pub(super) fn scan_sql(direction: Direction, in_partition: bool, by_rest: bool) -> String {
    let (from, to, order) = match direction {
        Direction::Forward => (">=", "<", "ASC"),
        Direction::Backward => ("<=", ">", "DESC"),
    };
    let partition = match (in_partition, by_rest) {
        (false, _) => "",
        (true, false) => "partition_key = $6 AND",
        (true, true) => "partition_key = $8 AND",
    };
    let (range, sorted) = match by_rest {
        false => (format!("key {from} $2 AND key {to} $3"), format!("key {order}")),
        true => {
            let edge = |sign: &str| sign.chars().next().unwrap_or('=');
            let loose = format!("key {from} $2 AND key {}= $3", edge(to));
            let range = format!("{loose} AND (key, rest) {from} ($2, $6) AND (key, rest) {to} ($3, $7)");
            (range, format!("key {order}, rest {order}"))
        }
    };
    format!(
        "SELECT key, rest, revision, CASE WHEN weight <= $5 OR place = 1 THEN row END AS row
         FROM (SELECT *, sum(octet_length(key) + octet_length(rest) + octet_length(row)) OVER so_far AS weight,
                 row_number() OVER so_far AS place
             FROM (SELECT key, rest, revision, row FROM table_rows WHERE {partition} table_id = $1 AND {range}
                 AND EXISTS (SELECT FROM tables WHERE id = $1 AND deleted IS NULL)
                 ORDER BY {sorted} LIMIT $4) AS page
             WINDOW so_far AS (ORDER BY {sorted} ROWS UNBOUNDED PRECEDING)) AS page
         WHERE place <= 2 OR weight - octet_length(key) - octet_length(rest) - octet_length(row) <= $5
         ORDER BY {sorted}"
    )
}

/// A part of a table.
pub(super) async fn scan(
    connection: &mut PgConnection,
    scan: &TableScan,
) -> Result<(Vec<StoredRow>, bool), StoreError> {
    if scan.start.len().max(scan.end.len()) <= INDEXED
        && let Some(page) = page(connection, scan, false).await?
    {
        return Ok(page);
    }
    let page = page(connection, scan, true).await?;
    page.ok_or_else(|| StoreError::corrupt("a page that is sorted by whole keys"))
}

/// `None`: there is a long key in it, and it is not sorted by whole keys.
async fn page(
    connection: &mut PgConnection,
    scan: &TableScan,
    by_rest: bool,
) -> Result<Option<(Vec<StoredRow>, bool)>, StoreError> {
    let table = scan.table.0.cast_signed();
    // One more tells that there is more.
    let rows = i64::try_from(scan.rows.saturating_add(1)).unwrap_or(i64::MAX);
    let bytes = i64::try_from(scan.bytes).unwrap_or(i64::MAX);
    let partition = scan.partition_key.map(|partition| partition.to_string());
    let (start, end) = (split(&scan.start), split(&scan.end));
    let sql = AssertSqlSafe(scan_sql(scan.direction, partition.is_some(), by_rest));
    let mut query = sqlx::query(sql).bind(table).bind(start.0).bind(end.0).bind(rows).bind(bytes);
    if by_rest {
        query = query.bind(start.1).bind(end.1);
    }
    if let Some(partition) = partition {
        query = query.bind(partition);
    }
    let mut found = query.fetch(connection);
    let (mut answer, mut more, mut is_sorted) = (Vec::new(), false, true);
    while let Some(row) = found.try_next().await? {
        if !answer.is_empty() && answer.len().is_multiple_of(AT_ONCE) {
            yield_now().await;
        }
        is_sorted &= by_rest || row.try_get::<&[u8], _>(1)?.is_empty();
        // All are read, so that the connection is ready for the next one.
        match (answer.len() < scan.rows).then(|| stored(&row)).transpose()?.flatten() {
            Some(row) if !more => answer.push(row),
            _ => more = true,
        }
    }
    Ok(is_sorted.then_some((answer, more)))
}

/// `None`: there was no room for the row.
fn stored(row: &PgRow) -> Result<Option<StoredRow>, StoreError> {
    let Some(bytes) = row.try_get::<Option<Vec<u8>>, _>(3)? else { return Ok(None) };
    let (mut key, rest): (Vec<u8>, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
    key.extend(rest);
    Ok(Some(StoredRow { key, revision: row.try_get::<i64, _>(2)?.cast_unsigned(), row: bytes }))
}
