//! Access keys of tables, in the main database.

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::SqliteDirectory;
use crate::domain::{Timestamp, Uid};
use crate::store::{AccessKey, AccessKeys, StoreError};

#[async_trait]
impl AccessKeys for SqliteDirectory {
    async fn put_access_key(&self, key: AccessKey) -> Result<(), StoreError> {
        let insert = sqlx::query(
            "INSERT INTO access_keys (id, secret, instance, may_write, inbox, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        )
        .bind(key.id)
        .bind(key.secret)
        .bind(key.instance)
        .bind(key.may_write)
        .bind(key.inbox.map(|uid| i64::from(uid.0)))
        .bind(key.created_at.0);
        self.change(insert).await.map(drop)
    }

    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, StoreError> {
        sqlx::query("SELECT * FROM access_keys WHERE id = ?")
            .bind(id)
            .fetch_optional(&mut *self.reader().await?)
            .await?
            .map(|row| access_key(&row))
            .transpose()
    }

    async fn access_keys(&self, after: &str, limit: usize) -> Result<Vec<AccessKey>, StoreError> {
        sqlx::query("SELECT * FROM access_keys WHERE id > ? ORDER BY id LIMIT ?")
            .bind(after)
            .bind(limit as i64)
            .fetch_all(&mut *self.reader().await?)
            .await?
            .iter()
            .map(access_key)
            .collect()
    }

    async fn remove_access_key(&self, id: &str) -> Result<bool, StoreError> {
        let removed = self.change(sqlx::query("DELETE FROM access_keys WHERE id = ?").bind(id)).await?;
        Ok(removed > 0)
    }
}

fn access_key(row: &SqliteRow) -> Result<AccessKey, StoreError> {
    let inbox: Option<i64> = row.try_get("inbox")?;
    let inbox = inbox.map(|uid| u32::try_from(uid).map(Uid)).transpose();
    Ok(AccessKey {
        id: row.try_get("id")?,
        secret: row.try_get("secret")?,
        instance: row.try_get("instance")?,
        may_write: row.try_get("may_write")?,
        inbox: inbox.map_err(StoreError::corrupt)?,
        created_at: Timestamp(row.try_get("created_at")?),
    })
}
