//! The rows of deleted accounts in PostgreSQL.

use sqlx::Connection as _;

use super::PgDb;
use crate::domain::Uid;
use crate::store::{Forgotten, StoreError};

/// Statements that remove a user's rows, one for each kind; all rows lie in the user's partition.
pub(super) const KINDS: [&str; 4] = [
    "DELETE FROM entries USING
        (SELECT ctid AS version FROM entries WHERE partition_key = $1 AND receiver = $2 ORDER BY message_id LIMIT $3) AS next
     WHERE entries.ctid = next.version AND entries.partition_key = $1",
    "DELETE FROM compaction_keys USING
        (SELECT ctid AS version FROM compaction_keys WHERE partition_key = $1 AND receiver = $2 ORDER BY name LIMIT $3) AS next
     WHERE compaction_keys.ctid = next.version AND compaction_keys.partition_key = $1",
    "DELETE FROM conversations USING
        (SELECT ctid AS version FROM conversations WHERE partition_key = $1 AND owner = $2 ORDER BY conversation LIMIT $3) AS next
     WHERE conversations.ctid = next.version AND conversations.partition_key = $1",
    "DELETE FROM sent USING
        (SELECT ctid AS version FROM sent WHERE partition_key = $1 AND sender = $2 ORDER BY client_id LIMIT $3) AS next
     WHERE sent.ctid = next.version AND sent.partition_key = $1",
];

/// Removes rows of `uid`, and what is kept beside them. Under the lock of the head row, as everything that changes an inbox.
pub(super) async fn forget_rows(db: &PgDb, uid: Uid, limit: usize) -> Result<Forgotten, StoreError> {
    let forget = async {
        let (key, number) = (uid.partition_key().as_str().to_owned(), i64::from(uid.0));
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut connection = db.reader().await?;
        let mut tx = connection.begin().await?;
        let lock = sqlx::query("SELECT FROM heads WHERE partition_key = $1 AND receiver = $2 FOR UPDATE");
        lock.bind(&key).bind(number).execute(&mut *tx).await?;
        let mut forgotten = Forgotten::default();
        for delete in KINDS {
            let delete = sqlx::query(delete).bind(&key).bind(number).bind(most).execute(&mut *tx).await?;
            forgotten.removed += delete.rows_affected();
            forgotten.more |= delete.rows_affected() == limit as u64;
        }
        tx.commit().await?;
        Ok(forgotten)
    };
    db.limited(forget).await
}
