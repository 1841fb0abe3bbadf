//! Names that change. A name that was given up stays reserved by its skeletons, as long as its account is marked as renamed.

use super::directory::is_text;
use super::name_index::{keep_endings, keep_skeletons};
use super::sql::{SqlRow, sql};
use super::{Directory, StoreError};
use crate::domain::{Timestamp, Uid, name_endings, name_key, skeletons};

/// The outcome of a change of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renamed {
    /// The account has the name.
    Done,
    /// Another account has it, or one that can be taken for it, or has given such a one up lately.
    NameTaken,
    /// The name was changed last at this time.
    TooSoon(Timestamp),
    /// There is no such account, or it is deleted.
    NoAccount,
}

/// Changes of names.
impl Directory {
    /// Gives the account another name, in one transaction. With `since`: only if the name was not changed after that time. What the account
    /// was called before stays reserved for it until [`free_former_names`](Self::free_former_names).
    pub async fn rename(
        &self,
        uid: Uid,
        name: &str,
        at: Timestamp,
        since: Option<Timestamp>,
    ) -> Result<Renamed, StoreError> {
        if !is_text(name) {
            return Ok(Renamed::NameTaken);
        }
        let rename = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let lock =
                sql("SELECT name, renamed_at FROM accounts WHERE uid = $1 AND deleted_at IS NULL FOR UPDATE");
            let Some(account) = tx.row(lock.bind(uid)).await? else { return Ok(Renamed::NoAccount) };
            let before: String = account.get("name")?;
            if before == name {
                return Ok(Renamed::Done);
            }
            let last = account.get::<Option<i64>>("renamed_at")?.map(Timestamp);
            if let (Some(last), Some(since)) = (last, since)
                && last > since
            {
                return Ok(Renamed::TooSoon(last));
            }
            // The skeletons first, as for a new account: of several who want one name all but one wait here, and then see whose it is.
            let named = [(uid, name.to_owned())];
            keep_skeletons(&mut tx, &named).await?;
            let others = sql("SELECT uid FROM name_skeletons WHERE skeleton = ANY($1) AND uid <> $2
                 UNION ALL SELECT uid FROM accounts WHERE name_key = $3 AND uid <> $2 LIMIT 1");
            let others = others.bind(Vec::from_iter(skeletons(name))).bind(uid).bind(name_key(name));
            if tx.row(others).await?.is_some() {
                tx.roll_back().await?;
                return Ok(Renamed::NameTaken);
            }
            let update = sql("UPDATE accounts SET name = $2, name_key = $3, renamed_at = $4 WHERE uid = $1");
            tx.change(update.bind(uid).bind(name).bind(name_key(name)).bind(at)).await?;
            let unfind = sql("DELETE FROM name_endings WHERE ending = ANY($1) AND uid = $2");
            tx.change(unfind.bind(Vec::from_iter(name_endings(&before))).bind(uid)).await?;
            keep_endings(&mut tx, &named).await?;
            tx.count_ending().await?;
            tx.commit().await?;
            Ok(Renamed::Done)
        };
        let done = self.db.limited(rename).await?;
        self.forget_names(Some(uid));
        Ok(done)
    }

    /// Frees the names that were given up before `since`, of at most `limit` accounts. Says of how many.
    pub async fn free_former_names(&self, since: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let free = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let some = sql("SELECT uid, name FROM accounts WHERE renamed_at IS NOT NULL AND renamed_at <= $1
                 ORDER BY renamed_at LIMIT $2 FOR UPDATE SKIP LOCKED");
            let rows = tx.rows(some.bind(since).bind(limit)).await?;
            for row in &rows {
                let (uid, name): (Uid, String) = (row.uid()?, row.get("name")?);
                let free = sql("DELETE FROM name_skeletons WHERE uid = $1 AND NOT (skeleton = ANY($2))");
                tx.change(free.bind(uid).bind(Vec::from_iter(skeletons(&name)))).await?;
                tx.change(sql("UPDATE accounts SET renamed_at = NULL WHERE uid = $1").bind(uid)).await?;
            }
            tx.commit().await?;
            Ok(rows.len() as u64)
        };
        self.db.limited(free).await
    }

    /// The accounts whose names were changed at `since` or later, newest first, at most `limit`.
    pub async fn renamed_since(&self, since: Timestamp, limit: usize) -> Result<Vec<Uid>, StoreError> {
        let rows = sql(
            "SELECT uid FROM accounts WHERE renamed_at IS NOT NULL AND renamed_at >= $1 ORDER BY renamed_at DESC LIMIT $2",
        );
        self.db.rows(rows.bind(since).bind(limit)).await?.iter().map(SqlRow::uid).collect()
    }

    /// When the account was made.
    pub async fn made_at(&self, uid: Uid) -> Result<Option<Timestamp>, StoreError> {
        let row = self.db.row(sql("SELECT created_at FROM accounts WHERE uid = $1").bind(uid)).await?;
        row.map(|row| row.time("created_at")).transpose()
    }
}
