//! Accounts: the people that may come in. [`Directory`] keeps everything beside the users' rows, in the same database;
//! its parts stand in a file each.
//!
//! A call is one statement, or one transaction that begins with the lock of the name or the account, so what another
//! server does at the same moment comes before or after it. Owns a bounded memory of names. Called by `app` for
//! everything about people, and by the queues to learn whether receivers exist.

use std::sync::Arc;

use super::credentials::forget_codes;
use super::name_index::{keep_endings, keep_skeletons};
use super::names::Names;
use super::postgres::PgDb;
use super::sessions::insert_session;
use super::sql::{SqlDb, SqlRow, SqlTx, sql};
use super::sqlite::Db;
use super::{Session, ShownName, StoreError};
use crate::domain::{Timestamp, Uid, name_key};

/// A stored account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Who.
    pub uid: Uid,
    /// As the person wrote it; unique without regard to case.
    pub name: String,
    /// The password's argon2id hash in PHC form.
    pub password_hash: String,
    /// Whether the operator has shut it, or it is deleted.
    pub disabled: bool,
    /// When it was deleted, if it is.
    pub deleted_at: Option<Timestamp>,
}

/// An account to be made.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// As the person wrote it, already checked.
    pub name: String,
    /// The password's argon2id hash in PHC form.
    pub password_hash: String,
    /// When.
    pub created_at: Timestamp,
}

/// Uids of one question for names.
const ASKED_AT_ONCE: usize = 5_000;

/// The columns that [`account_of`] reads.
const ACCOUNTS: &str = "SELECT uid, name, password_hash, disabled, deleted_at FROM accounts";

/// Accounts and sessions; recovery codes and invitations to sign up; invitations into groups; access keys of tables.
///
/// Names are compared by their lower-case form, and new ones by what they look like ([`skeletons`](crate::domain::skeletons)). Every
/// change is durable when the call returns, and done whole or not at all.
pub struct Directory {
    pub(super) db: SqlDb,
    pub(super) names: Names,
    for_queues: bool,
}

impl Directory {
    /// That of SQLite, which keeps at most about `cached_names` names in memory.
    pub fn on_sqlite(db: Arc<Db>, cached_names: usize) -> Directory {
        Directory::over(SqlDb::Sqlite(db), cached_names)
    }

    /// That of PostgreSQL, likewise.
    pub fn on_postgres(db: Arc<PgDb>, cached_names: usize) -> Directory {
        Directory::over(SqlDb::Postgres(db), cached_names)
    }

    /// One that forgets everything when it is dropped, for tests of what stands above storage.
    #[cfg(any(test, feature = "test-support"))]
    pub fn in_memory() -> Directory {
        Directory::over(SqlDb::in_memory(), 1_000)
    }

    fn over(db: SqlDb, cached_names: usize) -> Directory {
        Directory { db, names: Names::new(cached_names), for_queues: false }
    }

    /// The same directory for the queues, which do not wait behind everybody's reads.
    pub fn for_queues(&self) -> Directory {
        Directory { db: self.db.clone(), names: self.names.clone(), for_queues: true }
    }

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

    /// The names of these accounts as others see them, in order. Served from a bounded memory where possible: queues
    /// ask it for every batch to learn whether senders and receivers exist, and lists ask it for titles.
    pub async fn shown_names(&self, uids: &[Uid]) -> Result<Vec<Option<ShownName>>, StoreError> {
        let (mut found, missing) = self.names.look(uids);
        for part in missing.chunks(ASKED_AT_ONCE) {
            let ask = sql(
                "SELECT uid, CASE WHEN deleted_at IS NULL THEN name END AS name FROM accounts WHERE uid = ANY($1)",
            );
            let rows = match self.for_queues {
                true => self.db.rows_for_queues(ask.bind(part)).await?,
                false => self.db.rows(ask.bind(part)).await?,
            };
            for row in rows {
                found.add(&self.names, row.uid()?, row.get("name")?);
            }
        }
        Ok(found.in_order(uids))
    }

    /// The same as texts.
    pub async fn names(&self, uids: &[Uid]) -> Result<Vec<Option<String>>, StoreError> {
        let shown = self.shown_names(uids).await?;
        Ok(shown.into_iter().map(|name| name.map(ShownName::into_text)).collect())
    }

    /// Drops a name from memory: its account may be deleted. Without a uid, all names.
    pub fn forget_names(&self, of: Option<Uid>) {
        self.names.forget(of);
    }

    /// All accounts after `after` by uid, at most `limit`: for the operator's list.
    pub async fn accounts(&self, after: Uid, limit: usize) -> Result<Vec<Account>, StoreError> {
        let page = sql(format!("{ACCOUNTS} WHERE uid > $1 ORDER BY uid LIMIT $2")).bind(after).bind(limit);
        self.db.rows(page).await?.iter().map(account_of).collect()
    }

    /// Gives the account another password. `false` when there is none, or it is deleted.
    pub async fn set_password(&self, uid: Uid, password_hash: &str) -> Result<bool, StoreError> {
        let set = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let update = sql("UPDATE accounts SET password_hash = $2 WHERE uid = $1 AND deleted_at IS NULL");
            let is_known = tx.change(update.bind(uid).bind(password_hash)).await? > 0;
            forget_codes(&mut tx, uid).await?;
            tx.commit().await?;
            Ok(is_known)
        };
        self.db.limited(set).await
    }

    /// Keeps another hash of the same password. `false`, and nothing changes, when the hash is not `checked` any more, or the account is
    /// disabled.
    pub async fn replace_hash(
        &self,
        uid: Uid,
        checked: &str,
        password_hash: &str,
    ) -> Result<bool, StoreError> {
        let update = sql(REPLACE_HASH).bind(uid).bind(checked).bind(password_hash);
        Ok(self.db.change(update).await? > 0)
    }

    /// Gives the account another password and ends all its sessions but the one with the hash `kept`, in one transaction. `false`, and
    /// nothing changes, when the hash of its password is not `checked` any more, or it is disabled: checking a password takes long.
    pub async fn change_password(
        &self,
        uid: Uid,
        checked: &str,
        password_hash: &str,
        kept: &[u8; 32],
    ) -> Result<bool, StoreError> {
        let change = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let update = sql(REPLACE_HASH).bind(uid).bind(checked).bind(password_hash);
            if tx.change(update).await? == 0 {
                tx.roll_back().await?;
                return Ok(false);
            }
            // A statement of its own, which sees the sessions that were begun while the first one waited for the account.
            let end = sql("DELETE FROM sessions WHERE uid = $1 AND token_hash <> $2");
            tx.change(end.bind(uid).bind(kept)).await?;
            forget_codes(&mut tx, uid).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.limited(change).await
    }

    /// Shuts or opens the account. With the shutting its invitations to sign up end. `false` when there is none, or it is deleted.
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

/// Of an account that is not disabled, if the hash is still the one that was checked.
const REPLACE_HASH: &str =
    "UPDATE accounts SET password_hash = $3 WHERE uid = $1 AND password_hash = $2 AND NOT disabled";

/// Makes an account, with its first session if there is one. `false`: somebody has the name, or one that can be taken for it. Of
/// several servers that take one name, all but the first wait for its commit, and then take nothing.
pub(super) async fn insert_account(
    tx: &mut SqlTx<'_>,
    uid: Uid,
    account: &NewAccount,
    first: Option<&Session>,
) -> Result<bool, StoreError> {
    let named = [(uid, account.name.clone())];
    let make = sql(
        "INSERT INTO accounts (uid, name, name_key, password_hash, created_at, name_indexed) VALUES ($1, $2, $3, $4, $5, TRUE)
         ON CONFLICT (name_key) DO NOTHING",
    );
    let make = make.bind(uid).bind(account.name.as_str()).bind(name_key(&account.name));
    let make = make.bind(account.password_hash.as_str()).bind(account.created_at);
    if tx.change(make).await? == 0 || !keep_skeletons(tx, &named).await? {
        return Ok(false);
    }
    if let Some(session) = first {
        insert_session(tx, session).await?;
    }
    keep_endings(tx, &named).await?;
    Ok(true)
}

/// PostgreSQL has no text with a zero in it, so none is stored.
pub(super) fn is_text(text: &str) -> bool {
    !text.contains('\0')
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance;

    async fn keeps_the_contract(directory: &Directory) {
        conformance::directory::run(directory).await;
        conformance::credentials::run(directory).await;
        conformance::deletions::run(directory).await;
        conformance::invites::run(directory).await;
        conformance::access_keys::run(directory).await;
    }

    #[tokio::test]
    async fn it_keeps_the_contract_on_sqlite() {
        let place = tempfile::tempdir().expect("a directory");
        let db = Db::open(&place.path().join("tidemark.db")).await.expect("opened");
        keeps_the_contract(&Directory::on_sqlite(Arc::clone(&db), 4)).await;
        db.close().await.expect("closed");
    }

    #[tokio::test]
    async fn it_keeps_the_contract_in_memory() {
        keeps_the_contract(&Directory::in_memory()).await;
    }

    #[tokio::test]
    async fn names_are_found_however_many_are_asked_and_however_few_are_kept() {
        let place = tempfile::tempdir().expect("a directory");
        let db = Db::open(&place.path().join("tidemark.db")).await.expect("opened");
        let directory = Directory::on_sqlite(Arc::clone(&db), 4);
        let mut uids = Vec::new();
        for n in 0..20 {
            let account = NewAccount {
                name: format!("name {n}"),
                password_hash: String::new(),
                created_at: Timestamp(0),
            };
            let uid = Uid(10_001 + n);
            assert!(directory.create_account(uid, account, None).await.expect("made"), "free");
            uids.push(uid);
        }
        uids.extend((0..10_000).map(Uid));
        uids.push(uids[3]);
        let names = directory.names(&uids).await.expect("asked");
        assert_eq!(names.len(), uids.len());
        assert_eq!(names[7].as_deref(), Some("name 7"));
        assert_eq!(names[500], None);
        assert_eq!(names.last().cloned().flatten().as_deref(), Some("name 3"));
        assert!(directory.names.len() <= 4);
        db.close().await.expect("closed");
    }
}
