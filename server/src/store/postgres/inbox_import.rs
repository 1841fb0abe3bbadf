//! Rows for one inbox, beside the servers of the database.
//!
//! A chunk is one transaction that holds the inbox's head row from the moment at which its latest id is read, so the
//! rows become visible in the order of their ids whatever servers write meanwhile (I1). Servers find them as they find
//! a row of which no hint told.

use async_trait::async_trait;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, Row as _};

use super::db::ReadConnection;
use super::{PgDb, bulk, lookup};
use crate::domain::{ClientId, Entry, MessageId, Uid};
use crate::store::archive::InboxImport;
use crate::store::{IdempotencyRecord, StoreError};

/// An [`InboxImport`] on PostgreSQL.
pub struct PgInboxImport {
    connection: ReadConnection,
    /// Whether a chunk was begun.
    is_open: bool,
}

impl PgInboxImport {
    /// Over a connection of `db` that it keeps.
    ///
    /// # Errors
    /// When no connection can be had.
    pub async fn open(db: &PgDb) -> Result<PgInboxImport, StoreError> {
        Ok(PgInboxImport { connection: db.reader().await?, is_open: false })
    }

    async fn run(&mut self, statement: &'static str) -> Result<(), StoreError> {
        sqlx::raw_sql(statement).execute(&mut *self.connection).await?;
        Ok(())
    }
}

#[async_trait]
impl InboxImport for PgInboxImport {
    async fn begin(&mut self, receiver: Uid) -> Result<MessageId, StoreError> {
        if std::mem::replace(&mut self.is_open, true) {
            self.run("ROLLBACK").await?;
        }
        self.run("BEGIN").await?;
        let connection: &mut PgConnection = &mut self.connection;
        let key = receiver.partition_key().as_str().to_owned();
        sqlx::query(
            "INSERT INTO heads (partition_key, receiver, last_id) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING",
        )
        .bind(&key)
        .bind(i64::from(receiver.0))
        .execute(&mut *connection)
        .await?;
        let latest = sqlx::query_scalar(
            "SELECT last_id FROM heads WHERE partition_key = $1 AND receiver = $2 FOR UPDATE",
        );
        lookup::message_id(latest.bind(&key).bind(i64::from(receiver.0)).fetch_one(connection).await?)
    }

    async fn copies(
        &mut self,
        receiver: Uid,
        names: &[(Uid, ClientId)],
    ) -> Result<Vec<Option<MessageId>>, StoreError> {
        let senders: Vec<i64> = names.iter().map(|(sender, _)| i64::from(sender.0)).collect();
        let clients: Vec<Vec<u8>> = names.iter().map(|(_, name)| name.0.as_bytes().to_vec()).collect();
        let rows = sqlx::query(
            "SELECT copy.message_id FROM unnest($3::bigint[], $4::bytea[]) WITH ORDINALITY AS name(sender, client_id, place)
             LEFT JOIN LATERAL (SELECT message_id FROM entries WHERE partition_key = $1 AND receiver = $2
                 AND sender = name.sender AND client_id = name.client_id LIMIT 1) AS copy ON true
             ORDER BY name.place",
        )
        .bind(receiver.partition_key().as_str().to_owned())
        .bind(i64::from(receiver.0))
        .bind(senders)
        .bind(clients)
        .fetch_all(&mut *self.connection)
        .await?;
        let id = |row: &PgRow| row.try_get::<Option<i64>, _>(0)?.map(lookup::message_id).transpose();
        rows.iter().map(id).collect()
    }

    async fn append(
        &mut self,
        rows: Vec<Entry>,
        sent: Vec<(Uid, ClientId, IdempotencyRecord)>,
    ) -> Result<(), StoreError> {
        if !std::mem::replace(&mut self.is_open, false) {
            let mut tx = self.connection.begin().await?;
            bulk::sent(&mut tx, &sent).await?;
            return Ok(tx.commit().await?);
        }
        let stored = async {
            bulk::rows(&mut self.connection, &rows).await?;
            bulk::sent(&mut self.connection, &sent).await
        };
        let stored = stored.await;
        self.run(if stored.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        stored
    }
}
