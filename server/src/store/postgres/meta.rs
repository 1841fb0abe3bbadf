//! Facts about the whole installation, by key; the same for all servers.

use super::PgDb;
use crate::store::StoreError;

impl PgDb {
    /// What stands under `key`; `proposal`, which is stored then, if nothing did. All servers that ask get the same.
    pub async fn agreed(&self, key: &str, proposal: &str) -> Result<String, StoreError> {
        let mut connection = self.reader().await?;
        sqlx::query("INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING")
            .bind(key)
            .bind(proposal)
            .execute(&mut *connection)
            .await?;
        let agreed = sqlx::query_scalar("SELECT value FROM meta WHERE key = $1");
        Ok(agreed.bind(key).fetch_one(&mut *connection).await?)
    }
}
