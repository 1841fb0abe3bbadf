//! Accounts: the people that may come in.

use super::directory::{Directory, is_text};
use super::directory_db::SqlTx;
use super::name_index::{keep_endings, keep_skeletons};
use super::sessions::insert_session;
use super::sql::{SqlRow, sql};
use super::{Account, NewAccount, Session, StoreError};
use crate::domain::{Timestamp, Uid, name_key};

/// The columns that [`account_of`] reads.
const ACCOUNTS: &str = "SELECT uid, name, password_hash, disabled, deleted_at FROM accounts";

/// Accounts.
impl Directory {
    /// Makes an account under `uid`, which nobody has or had, and its `first` session, in one transaction; `false` when the name is
    /// taken, or looks like one that is.
    pub async fn create_account(
        &self,
        uid: Uid,
        account: NewAccount,
        first: Option<Session>,
    ) -> Result<bool, StoreError> {
        let create = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            if !insert_account(&mut tx, uid, &account, first.as_ref()).await? {
                tx.roll_back().await?;
                return Ok(false);
            }
            tx.commit().await?;
            Ok(true)
        };
        let is_made = self.db.limited(create).await?;
        if is_made {
            self.names.keep(uid, &account.name);
        }
        Ok(is_made)
    }

    /// The largest uid of an account; `None` without accounts. New ones get larger uids.
    pub async fn largest_uid(&self) -> Result<Option<Uid>, StoreError> {
        let largest = self.db.row(sql("SELECT uid FROM accounts ORDER BY uid DESC LIMIT 1")).await?;
        largest.map(|row| row.uid()).transpose()
    }

    /// The account of this name.
    pub async fn account_by_name(&self, name: &str) -> Result<Option<Account>, StoreError> {
        if !is_text(name) {
            return Ok(None);
        }
        let account = sql(format!("{ACCOUNTS} WHERE name_key = $1")).bind(name_key(name));
        self.db.row(account).await?.as_ref().map(account_of).transpose()
    }

    /// The account of this uid.
    pub async fn account(&self, uid: Uid) -> Result<Option<Account>, StoreError> {
        let account = sql(format!("{ACCOUNTS} WHERE uid = $1")).bind(uid);
        self.db.row(account).await?.as_ref().map(account_of).transpose()
    }

    /// All accounts after `after` by uid, at most `limit`: for the operator's list.
    pub async fn accounts(&self, after: Uid, limit: usize) -> Result<Vec<Account>, StoreError> {
        let page = sql(format!("{ACCOUNTS} WHERE uid > $1 ORDER BY uid LIMIT $2")).bind(after).bind(limit);
        self.db.rows(page).await?.iter().map(account_of).collect()
    }

    /// Locks or unlocks the account. With the locking its invitations to sign up end. `false` when there is none, or it is deleted.
    pub async fn set_disabled(&self, uid: Uid, disabled: bool) -> Result<bool, StoreError> {
        let set = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let update = sql("UPDATE accounts SET disabled = $2 WHERE uid = $1 AND deleted_at IS NULL");
            let is_known = tx.change(update.bind(uid).bind(disabled)).await? > 0;
            if disabled {
                tx.change(sql("DELETE FROM sign_up_invites WHERE made_by = $1").bind(uid)).await?;
            }
            tx.commit().await?;
            Ok(is_known)
        };
        self.db.limited(set).await
    }
}

/// Makes an account, with its first session if there is one. `false`: somebody has the name, or one that can be taken for it. Of
/// several servers that take one name, all but the first wait for its commit, and then take nothing.
pub(super) async fn insert_account(
    tx: &mut SqlTx<'_>,
    uid: Uid,
    account: &NewAccount,
    first: Option<&Session>,
) -> Result<bool, StoreError> {
    let named = [(uid, account.name.clone())];
    // The skeletons first, as for a change of a name, so that two who want the same wait for one thing.
    if !keep_skeletons(tx, &named).await? {
        return Ok(false);
    }
    let make = sql(
        "INSERT INTO accounts (uid, name, name_key, password_hash, created_at, name_indexed) VALUES ($1, $2, $3, $4, $5, TRUE)
         ON CONFLICT (name_key) DO NOTHING",
    );
    let make = make.bind(uid).bind(account.name.as_str()).bind(name_key(&account.name));
    let make = make.bind(account.password_hash.as_str()).bind(account.created_at);
    if tx.change(make).await? == 0 {
        return Ok(false);
    }
    if let Some(session) = first {
        insert_session(tx, session).await?;
    }
    keep_endings(tx, &named).await?;
    Ok(true)
}

fn account_of(row: &SqlRow) -> Result<Account, StoreError> {
    Ok(Account {
        uid: row.uid()?,
        name: row.get("name")?,
        password_hash: row.get("password_hash")?,
        disabled: row.get("disabled")?,
        deleted_at: row.get::<Option<i64>>("deleted_at")?.map(Timestamp),
    })
}
