//! Access keys of tables, in the main database.

use async_trait::async_trait;

use super::SqliteDirectory;
use crate::store::access_keys::access_key;
use crate::store::{AccessKey, AccessKeys, StoreError};

#[async_trait]
impl AccessKeys for SqliteDirectory {
    async fn put_access_key(&self, key: AccessKey) -> Result<(), StoreError> {
        let insert = sqlx::query(
            "INSERT INTO access_keys (id, secret, instance, may_write, inbox, created_at, sign_outs) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(key.id)
        .bind(key.secret)
        .bind(key.instance)
        .bind(key.may_write)
        .bind(key.inbox.map(|uid| i64::from(uid.0)))
        .bind(key.created_at.0)
        .bind(key.sign_outs);
        self.change(insert).await.map(drop)
    }

    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, StoreError> {
        sqlx::query("SELECT id, secret, instance, may_write, inbox, created_at, sign_outs FROM access_keys WHERE id = ?")
            .bind(id)
            .fetch_optional(&mut *self.reader().await?)
            .await?
            .map(|row| access_key(&row))
            .transpose()
    }

    async fn access_keys(&self, after: &str, limit: usize) -> Result<Vec<AccessKey>, StoreError> {
        sqlx::query("SELECT id, secret, instance, may_write, inbox, created_at, sign_outs FROM access_keys WHERE id > ? ORDER BY id LIMIT ?")
            .bind(after)
            .bind(limit as i64)
            .fetch_all(&mut *self.reader().await?)
            .await?
            .iter()
            .map(access_key)
            .collect()
    }

    async fn sign_out(&self, id: &str) -> Result<(), StoreError> {
        let count = sqlx::query("UPDATE access_keys SET sign_outs = sign_outs + 1 WHERE id = ?").bind(id);
        self.change(count).await.map(drop)
    }

    async fn remove_access_key(&self, id: &str) -> Result<bool, StoreError> {
        let removed = self.change(sqlx::query("DELETE FROM access_keys WHERE id = ?").bind(id)).await?;
        Ok(removed > 0)
    }
}
