//! Deleted accounts in the main database, and the rows that go with them.

use async_trait::async_trait;
use sqlx::{QueryBuilder, Row as _, Sqlite};

use super::credentials::forget_codes;
use super::directory::{count, uid_of};
use super::shared::SqliteShared;
use super::{SqliteDirectory, meta};
use crate::domain::{Timestamp, Uid, name_endings};
use crate::store::{Deletions, Forgotten, StoreError};

#[async_trait]
impl Deletions for SqliteDirectory {
    async fn delete_account(
        &self,
        uid: Uid,
        checked: Option<&str>,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let number = i64::from(uid.0);
        let mut tx = self.write().await?;
        let mark = sqlx::query_scalar(
            "UPDATE accounts SET deleted_at = ?1, disabled = TRUE, password_hash = ''
             WHERE uid = ?2 AND deleted_at IS NULL AND (?3 IS NULL OR (password_hash = ?3 AND NOT disabled)) RETURNING name",
        );
        let mark = mark.bind(at.0).bind(number).bind(checked.map(str::to_owned));
        let marked: Option<String> = mark.fetch_all(&mut *tx).await?.pop();
        let Some(name) = marked else {
            tx.rollback().await?;
            return Ok(false);
        };
        sqlx::query("DELETE FROM sessions WHERE uid = ?").bind(number).execute(&mut *tx).await?;
        forget_codes(&mut tx, uid).await?;
        sqlx::query("DELETE FROM sign_up_invites WHERE made_by = ?").bind(number).execute(&mut *tx).await?;
        let endings = name_endings(&name);
        if !endings.is_empty() {
            let mut delete = QueryBuilder::<Sqlite>::new("DELETE FROM name_endings WHERE uid = ");
            let mut list = delete.push_bind(number).push(" AND ending IN (").separated(", ");
            endings.into_iter().for_each(|ending| _ = list.push_bind(ending));
            delete.push(")").build().execute(&mut *tx).await?;
        }
        meta::count_up(&mut tx, meta::ENDINGS).await?;
        tx.commit().await?;
        self.drop_names(Some(uid));
        Ok(true)
    }

    async fn to_clear(&self, after: Uid, limit: usize) -> Result<Vec<(Uid, Timestamp)>, StoreError> {
        let rows = sqlx::query(
            "SELECT uid, deleted_at FROM accounts WHERE deleted_at IS NOT NULL AND NOT cleared AND uid > ?
             ORDER BY uid LIMIT ?",
        );
        let rows = rows.bind(i64::from(after.0)).bind(count(limit));
        let rows = rows.fetch_all(&mut *self.reader().await?).await?;
        rows.iter().map(|row| Ok((uid_of(row)?, Timestamp(row.try_get("deleted_at")?)))).collect()
    }

    async fn mark_cleared(&self, uid: Uid) -> Result<(), StoreError> {
        let done = sqlx::query("UPDATE accounts SET cleared = TRUE WHERE uid = ? AND deleted_at IS NOT NULL");
        self.change(done.bind(i64::from(uid.0))).await.map(drop)
    }

    async fn deleted_since(&self, since: Timestamp, limit: usize) -> Result<Vec<Uid>, StoreError> {
        let rows = sqlx::query(
            "SELECT uid FROM accounts WHERE deleted_at IS NOT NULL AND deleted_at >= ? ORDER BY deleted_at DESC LIMIT ?",
        );
        let rows = rows.bind(since.0).bind(count(limit)).fetch_all(&mut *self.reader().await?).await?;
        rows.iter().map(uid_of).collect()
    }

    fn forget_names(&self, of: Option<Uid>) {
        self.drop_names(of);
    }
}

/// Statements that remove a user's rows from the tables, one for each kind.
const KINDS: [&str; 5] = [
    "DELETE FROM entries WHERE partition_key = ?1 AND receiver = ?2 AND message_id IN
        (SELECT message_id FROM entries WHERE partition_key = ?1 AND receiver = ?2 LIMIT ?3)",
    "DELETE FROM compaction_keys WHERE partition_key = ?1 AND receiver = ?2 AND name IN
        (SELECT name FROM compaction_keys WHERE partition_key = ?1 AND receiver = ?2 LIMIT ?3)",
    "DELETE FROM conversations WHERE partition_key = ?1 AND owner = ?2 AND conversation IN
        (SELECT conversation FROM conversations WHERE partition_key = ?1 AND owner = ?2 LIMIT ?3)",
    "DELETE FROM sent WHERE partition_key = ?1 AND sender = ?2 AND client_id IN
        (SELECT client_id FROM sent WHERE partition_key = ?1 AND sender = ?2 LIMIT ?3)",
    "DELETE FROM set_aside WHERE partition_key = ?1 AND receiver = ?2 AND message_id IN
        (SELECT message_id FROM set_aside WHERE partition_key = ?1 AND receiver = ?2 LIMIT ?3)",
];

impl SqliteShared {
    /// Removes rows of `uid` from the tables. Rows that are in memory alone can be removed after the next flush.
    pub(super) async fn forget_rows(&self, uid: Uid, limit: usize) -> Result<Forgotten, StoreError> {
        // Before the tables are looked at: what is flushed in between is asked for once more rather than missed.
        let in_memory = self.memory.forget_flushed(uid);
        let mut forgotten = Forgotten { removed: 0, more: in_memory };
        let mut tx = self.db.write().await?;
        for delete in KINDS {
            let delete = sqlx::query(delete).bind(uid.partition_key().as_str().to_owned());
            let delete = delete.bind(i64::from(uid.0)).bind(count(limit)).execute(&mut *tx).await?;
            forgotten.removed += delete.rows_affected();
            forgotten.more |= delete.rows_affected() == limit as u64;
        }
        tx.commit().await?;
        Ok(forgotten)
    }
}
