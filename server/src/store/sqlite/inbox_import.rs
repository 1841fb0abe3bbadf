//! Rows for one inbox, put straight into the keyed tables while nobody serves.
//!
//! The lock of the process keeps everybody else out, and the journal is flushed first, so that the tables hold
//! everything.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use sqlx::{AssertSqlSafe, Row as _};

use super::db::Db;
use super::memtable::{Memtable, MemtableUpdate};
use super::{SqliteOptions, flush, lookup, row_tables};
use crate::domain::{ClientId, Entry, MessageId, Uid};
use crate::store::archive::InboxImport;
use crate::store::{IdempotencyRecord, StoreError};

/// An [`InboxImport`] on SQLite.
pub struct SqliteInboxImport {
    db: Arc<Db>,
}

impl SqliteInboxImport {
    /// Over `db`, whose journal is flushed first.
    ///
    /// # Errors
    /// When the journal cannot be read or flushed.
    pub async fn open(db: Arc<Db>, options: &SqliteOptions) -> Result<SqliteInboxImport, StoreError> {
        flush::flush_journal(&db, options).await?;
        Ok(SqliteInboxImport { db })
    }
}

#[async_trait]
impl InboxImport for SqliteInboxImport {
    async fn begin(&mut self, receiver: Uid) -> Result<MessageId, StoreError> {
        let latest = lookup::latest_ids(self.db.readers(), [receiver]).await?;
        Ok(latest.get(&receiver).copied().unwrap_or_default())
    }

    async fn copies(
        &mut self,
        receiver: Uid,
        names: &[(Uid, ClientId)],
    ) -> Result<Vec<Option<MessageId>>, StoreError> {
        let keys: Vec<_> =
            names.iter().map(|(sender, name)| json!([sender.0, name.0.simple().to_string()])).collect();
        let both = row_tables::over_both(|rows| {
            format!(
                "SELECT message_id FROM {rows} WHERE partition_key = ?1 AND receiver = ?2 AND sender = value ->> 0
                   AND client_id = unhex(value ->> 1) AND client_id IS NOT NULL"
            )
        });
        let rows = sqlx::query(AssertSqlSafe(format!(
            "SELECT (SELECT message_id FROM ({both})) FROM json_each(?3) ORDER BY key"
        )))
        .bind(receiver.partition_key().as_str().to_owned())
        .bind(receiver.0)
        .bind(json!(keys).to_string())
        .fetch_all(self.db.readers())
        .await?;
        rows.iter().map(|row| row.try_get::<Option<i64>, _>(0)?.map(lookup::message_id).transpose()).collect()
    }

    async fn append(
        &mut self,
        rows: Vec<Entry>,
        sent: Vec<(Uid, ClientId, IdempotencyRecord)>,
    ) -> Result<(), StoreError> {
        let memtable = Memtable::default();
        for Entry { receiver, message_id, content } in rows {
            let rows = vec![(receiver, message_id, MessageId::ZERO)];
            let (earlier, record, group, closed) = (Vec::new(), None, None, None);
            memtable.apply(MemtableUpdate { earlier, content, rows, record, group, closed });
        }
        for (sender, client_id, record) in sent {
            memtable.apply_record((sender, client_id), record);
        }
        let mut tx = self.db.write().await?;
        flush::write_all(&mut tx, memtable).await?;
        tx.commit().await
    }
}
