//! Facts about the whole installation, by key; the same for all servers.

use sqlx::PgConnection;

use super::PgDb;
use crate::store::StoreError;

impl PgDb {
    /// The value under `key`; if there is none, stores `proposal` and returns it. All servers that ask get the same.
    pub async fn agreed(&self, key: &str, proposal: &str) -> Result<String, StoreError> {
        let agree = async {
            let mut connection = self.reader().await?;
            sqlx::query("INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING")
                .bind(key)
                .bind(proposal)
                .execute(&mut *connection)
                .await?;
            let agreed = sqlx::query_scalar("SELECT value FROM meta WHERE key = $1");
            Ok(agreed.bind(key).fetch_one(&mut *connection).await?)
        };
        self.limited(agree).await
    }

    /// Stores `value` under `key`, whatever stood there.
    pub async fn put(&self, key: &str, value: &str) -> Result<(), StoreError> {
        self.limited(async { put(&mut *self.reader().await?, key, value).await }).await
    }
}

/// The same in the caller's transaction.
pub(super) async fn put(connection: &mut PgConnection, key: &str, value: &str) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )
    .bind(key)
    .bind(value)
    .execute(connection)
    .await?;
    Ok(())
}
