//! Ten million rows for `table-range`, written into the database while no server serves it, as flushes and commits would leave them.

use std::path::Path;

use rusqlite::params;
use seqsvr_core::page_sums;
use sqlx::{Connection, PgConnection};

use crate::Result;
use crate::bench::baseline::sqlite::partition_key_of;
use crate::bench::tables;

/// Rows under each value of the first key column.
pub(super) const ROWS_OF_FIRST: usize = 10_000;
/// Bytes of the text of a row.
const BODY_BYTES: usize = 32;
/// When they were written: any moment.
const WRITTEN_AT: i64 = 1_795_261_438_042;
/// Values of the first key column in a transaction.
const AT_ONCE: usize = 20;

/// Fills the database in `data` with rows under so many values; answers the table's number.
pub(super) fn sqlite(data: &Path, firsts: usize) -> Result<i64> {
    page_sums::begin();
    let mut connection = rusqlite::Connection::open(data.join("tidemark.db"))?;
    // Rows that are lost with the machine are filled in again.
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")?;
    let table: i64 =
        connection.query_row("SELECT id FROM tables WHERE name = ?", [tables::TABLE], |row| row.get(0))?;
    let row = tables::stored_row(BODY_BYTES, WRITTEN_AT);
    let all: Vec<usize> = (0..firsts).collect();
    for some in all.chunks(AT_ONCE) {
        let transaction = connection.transaction()?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO table_rows (table_id, key, partition_key, row) VALUES (?, ?, ?, ?)",
        )?;
        let mut count = transaction.prepare_cached(
            "INSERT INTO table_counters (table_id, first, partition_key, last_id) VALUES (?, ?, ?, ?)",
        )?;
        for n in some {
            let first = tables::first(*n);
            let partition_key = partition_key_of(&first);
            for id in 1..=ROWS_OF_FIRST as i64 {
                insert.execute(params![table, tables::stored_key(&first, id), partition_key, row])?;
            }
            let last = ROWS_OF_FIRST as i64;
            count.execute(params![table, tables::stored_first(&first), partition_key, last])?;
        }
        drop((insert, count));
        transaction.commit()?;
    }
    Ok(table)
}

/// The same in the database at `url`.
pub(super) async fn postgres(url: &str, firsts: usize) -> Result<i64> {
    let mut connection = PgConnection::connect(url).await?;
    let table = sqlx::query_scalar::<_, i64>("SELECT id FROM tables WHERE name = $1").bind(tables::TABLE);
    let table = table.fetch_one(&mut connection).await?;
    let mut firsts: Vec<(String, Vec<u8>)> = (0..firsts)
        .map(tables::first)
        .map(|first| (partition_key_of(&first), tables::stored_first(&first)))
        .collect();
    firsts.sort_unstable();
    for some in firsts.chunks(AT_ONCE) {
        let partition_keys: Vec<&str> = some.iter().map(|(key, _)| key.as_str()).collect();
        let encoded: Vec<&[u8]> = some.iter().map(|(_, first)| first.as_slice()).collect();
        sqlx::query(
            "INSERT INTO table_rows (partition_key, table_id, key, rest, rest_digest, revision, row)
             SELECT first.partition_key, $1, first.encoded || '\\x10'::bytea || int8send(id # '-9223372036854775808'::bigint),
                 '', '', 1, $2
             FROM unnest($3, $4) AS first(partition_key, encoded), generate_series(1, $5) AS id",
        )
        .bind(table)
        .bind(tables::stored_row(BODY_BYTES, WRITTEN_AT))
        .bind(&partition_keys)
        .bind(&encoded)
        .bind(ROWS_OF_FIRST as i64)
        .execute(&mut connection)
        .await?;
        sqlx::query(
            "INSERT INTO table_counters (partition_key, table_id, first, last_id)
             SELECT first.partition_key, $1, first.encoded, $2 FROM unnest($3, $4) AS first(partition_key, encoded)",
        )
        .bind(table)
        .bind(ROWS_OF_FIRST as i64)
        .bind(&partition_keys)
        .bind(&encoded)
        .execute(&mut connection)
        .await?;
    }
    // As the database does by itself some time later.
    sqlx::query("VACUUM (ANALYZE) table_rows").execute(&mut connection).await?;
    Ok(table)
}
