//! The sections of tables in an export snapshot: definitions, counters and rows of the tables that are not deleted.

use futures_util::TryStreamExt as _;
use serde_json::json;
use sqlx::Row as _;

use super::SqliteExportSnapshot;
use crate::domain::PartitionKey;
use crate::store::StoreError;
use crate::store::archive::{CounterRecord, Record, RecordKey, TableRowRecord};
use crate::store::sql::SqlConnection;
use crate::store::sqlite::meta;
use crate::store::sqlite::tables::hex;
use crate::store::table_definitions::tables_after;
use crate::store::tables::TableId;

/// Bytes of rows that are read at a time; the first row always goes.
const MOST_BYTES: usize = 8 << 20;

pub(super) const COUNTERS: &str = "SELECT count(*) FROM table_counters
    WHERE EXISTS (SELECT 1 FROM tables WHERE id = table_id AND deleted IS NULL)";
pub(super) const COUNTERS_IN_BOTH: &str = "SELECT count(*) FROM json_each(?) CROSS JOIN table_counters
    WHERE table_id = value ->> 0 AND first = unhex(value ->> 1)";
pub(super) const TABLE_ROWS: &str = "SELECT count(*) FROM table_rows
    WHERE EXISTS (SELECT 1 FROM tables WHERE id = table_id AND deleted IS NULL)";
pub(super) const TABLE_ROWS_IN_BOTH: &str =
    "SELECT count(*) FROM json_each(?) AS wanted CROSS JOIN table_rows
    WHERE table_id = value ->> 0 AND table_rows.key = unhex(value ->> 1)";

impl SqliteExportSnapshot {
    pub(super) async fn stored_tables(
        &mut self,
        after: Option<RecordKey>,
        limit: i64,
    ) -> Result<Vec<Record>, StoreError> {
        let after = if let Some(RecordKey::Table(table)) = after { table } else { TableId(0) };
        let floor = meta::number(&mut self.main, meta::TABLE_FLOOR).await?.cast_signed();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let tables = tables_after(SqlConnection::Sqlite(&mut self.main), after, limit).await?;
        Ok(tables.into_iter().map(|table| Record::Table(table, floor)).collect())
    }

    pub(super) async fn stored_counters(
        &mut self,
        after: Option<RecordKey>,
        limit: i64,
    ) -> Result<Vec<Record>, StoreError> {
        let (table, first) = match after {
            Some(RecordKey::Counter(table, first)) => (table.0.cast_signed(), first),
            _ => (0, Vec::new()),
        };
        let rows = sqlx::query(
            "SELECT table_id, first, partition_key, last_id FROM table_counters WHERE (table_id, first) > (?, ?)
                 AND EXISTS (SELECT 1 FROM tables WHERE id = table_id AND deleted IS NULL)
             ORDER BY table_id, first LIMIT ?",
        );
        let rows = rows.bind(table).bind(first).bind(limit).fetch_all(&mut self.main).await?;
        let counter = |row: &sqlx::sqlite::SqliteRow| {
            Ok(Record::Counter(CounterRecord {
                table: TableId(row.try_get::<i64, _>(0)?.cast_unsigned()),
                first: row.try_get(1)?,
                partition_key: partition_key(row.try_get(2)?)?,
                last_id: row.try_get(3)?,
            }))
        };
        rows.iter().map(counter).collect()
    }

    /// The rows, and whether there may be more.
    pub(super) async fn stored_table_rows(
        &mut self,
        after: Option<RecordKey>,
        limit: usize,
    ) -> Result<(Vec<Record>, bool), StoreError> {
        let (table, key) = match after {
            Some(RecordKey::TableRow(table, key)) => (table.0.cast_signed(), key),
            _ => (0, Vec::new()),
        };
        let query = sqlx::query(
            "SELECT table_id, key, partition_key, row FROM table_rows WHERE (table_id, key) > (?, ?)
                 AND EXISTS (SELECT 1 FROM tables WHERE id = table_id AND deleted IS NULL)
             ORDER BY table_id, key LIMIT ?",
        );
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut found = query.bind(table).bind(key).bind(most).fetch(&mut self.main);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(row) = found.try_next().await? {
            let record = TableRowRecord {
                table: TableId(row.try_get::<i64, _>(0)?.cast_unsigned()),
                key: row.try_get(1)?,
                partition_key: partition_key(row.try_get(2)?)?,
                row: row.try_get(3)?,
            };
            bytes += record.key.len() + record.row.len();
            rows.push(Record::TableRow(record));
            if bytes >= MOST_BYTES {
                return Ok((rows, true));
            }
        }
        let is_full = rows.len() == limit;
        Ok((rows, is_full))
    }

    /// How many rows of the tables are deleted by what is newer.
    pub(super) async fn deleted_in_tables(&mut self) -> Result<i64, StoreError> {
        let keys: Vec<RecordKey> = self.deleted.iter().cloned().collect();
        let mut deleted = 0;
        for some in keys.chunks(1_000) {
            let some: Vec<_> = some.iter().map(as_json).collect();
            let count = sqlx::query_scalar::<_, i64>(TABLE_ROWS_IN_BOTH).bind(json!(some).to_string());
            deleted += count.fetch_one(&mut self.main).await?;
        }
        Ok(deleted)
    }
}

fn partition_key(text: &str) -> Result<PartitionKey, StoreError> {
    PartitionKey::parse(text).ok_or_else(|| StoreError::corrupt(format!("`{text}` is not a partition key")))
}

/// A key as statements take it.
pub(super) fn as_json(key: &RecordKey) -> serde_json::Value {
    let partition = |key: &PartitionKey| key.as_str().to_owned();
    match key {
        RecordKey::Account(uid) => json!([uid.0]),
        RecordKey::Group(gid) => json!([gid.0]),
        RecordKey::EndedEpoch(gid, uid) => json!([gid.0, uid.0]),
        RecordKey::Row(key, uid, id) => json!([partition(key), uid.0, id]),
        RecordKey::Sent(key, uid, name) => json!([partition(key), uid.0, name.0.simple().to_string()]),
        RecordKey::Pending(acceptance) => json!([acceptance]),
        RecordKey::Table(table) => json!([table.0]),
        RecordKey::Counter(table, bytes) | RecordKey::TableRow(table, bytes) => json!([table.0, hex(bytes)]),
        RecordKey::File(file, _) => json!([file.0.simple().to_string()]),
        RecordKey::FileUse(file, sender, name) => {
            json!([file.0.simple().to_string(), sender.0, name.0.simple().to_string()])
        }
    }
}
