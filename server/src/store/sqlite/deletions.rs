//! The rows of deleted accounts in the main database.

use super::shared::SqliteShared;
use crate::domain::Uid;
use crate::store::{Forgotten, StoreError};

/// Statements that remove a user's rows from the tables, one for each kind.
const KINDS: [&str; 6] = [
    "DELETE FROM entries WHERE partition_key = ?1 AND receiver = ?2 AND message_id IN
        (SELECT message_id FROM entries WHERE partition_key = ?1 AND receiver = ?2 LIMIT ?3)",
    "DELETE FROM young_entries WHERE partition_key = ?1 AND receiver = ?2 AND message_id IN
        (SELECT message_id FROM young_entries WHERE partition_key = ?1 AND receiver = ?2 LIMIT ?3)",
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
            let delete = delete
                .bind(i64::from(uid.0))
                .bind(i64::try_from(limit).unwrap_or(i64::MAX))
                .execute(&mut *tx)
                .await?;
            forgotten.removed += delete.rows_affected();
            forgotten.more |= delete.rows_affected() == limit as u64;
        }
        tx.commit().await?;
        Ok(forgotten)
    }
}
