//! Deleted accounts in PostgreSQL, and the rows that go with them.

use async_trait::async_trait;
use sqlx::{Connection as _, Row as _};

use super::credentials::forget_codes;
use super::directory::{count, key_of, uid_of};
use super::{PgDb, PgDirectory};
use crate::domain::{Timestamp, Uid, name_endings};
use crate::store::{Deletions, Forgotten, StoreError};

#[async_trait]
impl Deletions for PgDirectory {
    async fn delete_account(
        &self,
        uid: Uid,
        checked: Option<&str>,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let delete = async {
            let number = i64::from(uid.0);
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            let mark = sqlx::query_scalar(
                "UPDATE accounts SET deleted_at = $3, disabled = true, password_hash = '' \
                 WHERE partition_key = $1 AND uid = $2 AND deleted_at IS NULL \
                   AND ($4::text IS NULL OR (password_hash = $4 AND NOT disabled)) RETURNING name",
            );
            let mark = mark.bind(key_of(uid)).bind(number).bind(at.0).bind(checked);
            let marked: Option<String> = mark.fetch_optional(&mut *tx).await?;
            let Some(name) = marked else {
                tx.rollback().await?;
                return Ok(false);
            };
            // Statements of their own, which see what was begun while the first one waited for the account.
            sqlx::query("DELETE FROM sessions WHERE uid = $1").bind(number).execute(&mut *tx).await?;
            forget_codes(&mut tx, uid).await?;
            sqlx::query("DELETE FROM sign_up_invites WHERE made_by = $1")
                .bind(number)
                .execute(&mut *tx)
                .await?;
            let endings = Vec::from_iter(name_endings(&name));
            sqlx::query("DELETE FROM name_endings WHERE ending = ANY($1) AND uid = $2")
                .bind(endings)
                .bind(number)
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            Ok(true)
        };
        let deleted = self.db.limited(delete).await?;
        self.drop_names(Some(uid));
        Ok(deleted)
    }

    async fn to_clear(&self, after: Uid, limit: usize) -> Result<Vec<(Uid, Timestamp)>, StoreError> {
        let rows = sqlx::query(
            "SELECT uid, deleted_at FROM accounts WHERE deleted_at IS NOT NULL AND NOT cleared AND uid > $1 \
             ORDER BY uid LIMIT $2",
        );
        let rows = self.rows(rows.bind(i64::from(after.0)).bind(count(limit))).await?;
        rows.iter().map(|row| Ok((uid_of(row)?, Timestamp(row.try_get("deleted_at")?)))).collect()
    }

    async fn mark_cleared(&self, uid: Uid) -> Result<(), StoreError> {
        let done = sqlx::query(
            "UPDATE accounts SET cleared = true WHERE partition_key = $1 AND uid = $2 AND deleted_at IS NOT NULL",
        );
        self.change(done.bind(key_of(uid)).bind(i64::from(uid.0))).await.map(drop)
    }

    async fn deleted_since(&self, since: Timestamp, limit: usize) -> Result<Vec<Uid>, StoreError> {
        let rows = sqlx::query(
            "SELECT uid FROM accounts WHERE deleted_at IS NOT NULL AND deleted_at >= $1 ORDER BY deleted_at DESC LIMIT $2",
        );
        self.rows(rows.bind(since.0).bind(count(limit))).await?.iter().map(uid_of).collect()
    }

    fn forget_names(&self, of: Option<Uid>) {
        self.drop_names(of);
    }
}

/// Statements that remove a user's rows, one for each kind; all rows lie in the user's partition.
pub(super) const KINDS: [&str; 4] = [
    "DELETE FROM entries WHERE partition_key = $1 AND receiver = $2 AND message_id IN
        (SELECT message_id FROM entries WHERE partition_key = $1 AND receiver = $2 ORDER BY message_id LIMIT $3)",
    "DELETE FROM compaction_keys WHERE partition_key = $1 AND receiver = $2 AND name IN
        (SELECT name FROM compaction_keys WHERE partition_key = $1 AND receiver = $2 ORDER BY name LIMIT $3)",
    "DELETE FROM conversations WHERE partition_key = $1 AND owner = $2 AND conversation IN
        (SELECT conversation FROM conversations WHERE partition_key = $1 AND owner = $2 ORDER BY conversation LIMIT $3)",
    "DELETE FROM sent WHERE partition_key = $1 AND sender = $2 AND client_id IN
        (SELECT client_id FROM sent WHERE partition_key = $1 AND sender = $2 ORDER BY client_id LIMIT $3)",
];

/// Removes rows of `uid`, and what is kept beside them. Under the lock of the head row, as everything that changes an inbox.
pub(super) async fn forget_rows(db: &PgDb, uid: Uid, limit: usize) -> Result<Forgotten, StoreError> {
    let forget = async {
        let (key, number) = (key_of(uid), i64::from(uid.0));
        let mut connection = db.reader().await?;
        let mut tx = connection.begin().await?;
        let lock = sqlx::query("SELECT FROM heads WHERE partition_key = $1 AND receiver = $2 FOR UPDATE");
        lock.bind(&key).bind(number).execute(&mut *tx).await?;
        let mut forgotten = Forgotten::default();
        for delete in KINDS {
            let delete =
                sqlx::query(delete).bind(&key).bind(number).bind(count(limit)).execute(&mut *tx).await?;
            forgotten.removed += delete.rows_affected();
            forgotten.more |= delete.rows_affected() == limit as u64;
        }
        tx.commit().await?;
        Ok(forgotten)
    };
    db.limited(forget).await
}
