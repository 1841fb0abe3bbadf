//! Accounts that are deleted: one mark that everything rests on, and how far the clearing behind it has come.

use super::credentials::forget_codes;
use super::last_seen::forget_last_seen;
use super::sessions::forget_sessions;
use super::sql::{SqlRow, sql};
use super::{Directory, StoreError};
use crate::domain::{Timestamp, Uid, name_endings};

/// Deleted accounts.
impl Directory {
    /// Marks the account as deleted, for good: from then on there is no session, password, recovery code, device or invitation to sign up
    /// of it, nobody finds it, and its name is taken as before and shown to nobody. All in one transaction. With `checked`: if that is
    /// still the hash of its password, and it is not disabled. `false`, and nothing changes: that does not hold, or there is no such
    /// account, or it is marked already.
    pub async fn delete_account(
        &self,
        uid: Uid,
        checked: Option<&str>,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let delete = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let mark = sql(
                "UPDATE accounts SET deleted_at = $2, disabled = TRUE, password_hash = '' WHERE uid = $1 AND deleted_at IS NULL
                 AND ($3 IS NULL OR (password_hash = $3 AND NOT disabled)) RETURNING name",
            );
            let Some(marked) = tx.row(mark.bind(uid).bind(at).bind(checked)).await? else {
                tx.roll_back().await?;
                return Ok(false);
            };
            // Statements of their own, which see what was begun while the first one waited for the account.
            forget_sessions(&mut tx, uid).await?;
            forget_codes(&mut tx, uid).await?;
            forget_last_seen(&mut tx, uid).await?;
            tx.change(sql("DELETE FROM sign_up_invites WHERE made_by = $1").bind(uid)).await?;
            let endings = Vec::from_iter(name_endings(&marked.get::<String>("name")?));
            let unfind = sql("DELETE FROM name_endings WHERE ending = ANY($1) AND uid = $2");
            tx.change(unfind.bind(endings).bind(uid)).await?;
            tx.count_ending().await?;
            tx.commit().await?;
            Ok(true)
        };
        let deleted = self.db.limited(delete).await?;
        self.forget_names(Some(uid));
        Ok(deleted)
    }

    /// Deleted accounts with something left to clear, and when each was deleted: those after `after` by uid, at most `limit`.
    pub async fn to_clear(&self, after: Uid, limit: usize) -> Result<Vec<(Uid, Timestamp)>, StoreError> {
        let rows = sql(
            "SELECT uid, deleted_at FROM accounts WHERE deleted_at IS NOT NULL AND NOT cleared AND uid > $1
             ORDER BY uid LIMIT $2",
        );
        let rows = self.db.rows(rows.bind(after).bind(limit)).await?;
        rows.iter().map(|row| Ok((row.uid()?, row.time("deleted_at")?))).collect()
    }

    /// Nothing is left of that account.
    pub async fn mark_cleared(&self, uid: Uid) -> Result<(), StoreError> {
        let done = sql("UPDATE accounts SET cleared = TRUE WHERE uid = $1 AND deleted_at IS NOT NULL");
        self.db.change(done.bind(uid)).await.map(drop)
    }

    /// The accounts that were deleted at `since` or later, newest first, at most `limit`.
    pub async fn deleted_since(&self, since: Timestamp, limit: usize) -> Result<Vec<Uid>, StoreError> {
        let rows = sql(
            "SELECT uid FROM accounts WHERE deleted_at IS NOT NULL AND deleted_at >= $1 ORDER BY deleted_at DESC LIMIT $2",
        );
        self.db.rows(rows.bind(since).bind(limit)).await?.iter().map(SqlRow::uid).collect()
    }
}
