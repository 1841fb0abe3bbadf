//! Access keys of tables in PostgreSQL.

use async_trait::async_trait;

use super::PgDirectory;
use crate::store::access_keys::access_key;
use crate::store::{AccessKey, AccessKeys, StoreError};

#[async_trait]
impl AccessKeys for PgDirectory {
    async fn put_access_key(&self, key: AccessKey) -> Result<(), StoreError> {
        let insert = sqlx::query(
            "INSERT INTO access_keys (id, secret, instance, may_write, inbox, created_at, sign_outs) VALUES ($1, $2, $3, $4, $5, $6, $7)",
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
        let key = sqlx::query(
            "SELECT id, secret, instance, may_write, inbox, created_at, sign_outs FROM access_keys WHERE id = $1",
        )
        .bind(id.to_owned());
        self.row(key).await?.map(|row| access_key(&row)).transpose()
    }

    async fn access_keys(&self, after: &str, limit: usize) -> Result<Vec<AccessKey>, StoreError> {
        let keys = sqlx::query("SELECT id, secret, instance, may_write, inbox, created_at, sign_outs FROM access_keys WHERE id > $1 ORDER BY id LIMIT $2")
            .bind(after.to_owned())
            .bind(limit as i64);
        self.rows(keys).await?.iter().map(access_key).collect()
    }

    async fn sign_out(&self, id: &str) -> Result<(), StoreError> {
        let count =
            sqlx::query("UPDATE access_keys SET sign_outs = sign_outs + 1 WHERE id = $1").bind(id.to_owned());
        self.change(count).await.map(drop)
    }

    async fn remove_access_key(&self, id: &str) -> Result<bool, StoreError> {
        let remove = sqlx::query("DELETE FROM access_keys WHERE id = $1").bind(id.to_owned());
        Ok(self.change(remove).await? > 0)
    }
}
