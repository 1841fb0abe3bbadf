//! Accounts and sessions in the main database.
//!
//! Owns a bounded memory of names. Called by `app` for every log-in, and by the
//! queues to learn whether receivers exist.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};

use super::credentials::forget_codes;
use super::db::{ReadConnection, WriteTx};
use super::{Db, meta, name_index};
use crate::domain::{Timestamp, Uid, name_key};
use crate::store::directory::{MOST_SESSIONS, beginning_with, token_hash};
use crate::store::names::{Names, Search};
use crate::store::{Account, Directory, NewAccount, Session, ShownName, StoreError};

/// Uids of one question for names; SQLite bounds the parameters of a statement.
const ASKED_AT_ONCE: usize = 500;

/// The [`Directory`] of a SQLite database.
pub struct SqliteDirectory {
    db: Arc<Db>,
    names: Names,
    for_queues: bool,
}

impl SqliteDirectory {
    /// The directory of `db`, which keeps at most about `cached_names` names in memory.
    pub fn new(db: Arc<Db>, cached_names: usize) -> SqliteDirectory {
        SqliteDirectory { db, names: Names::new(cached_names), for_queues: false }
    }

    /// The same directory for the queues, which do not wait behind everybody's reads.
    pub fn for_queues(&self) -> SqliteDirectory {
        SqliteDirectory { db: Arc::clone(&self.db), names: self.names.clone(), for_queues: true }
    }

    pub(super) async fn reader(&self) -> Result<ReadConnection, StoreError> {
        self.db.reader().await
    }

    pub(super) async fn write(&self) -> Result<WriteTx, StoreError> {
        self.db.write().await
    }

    /// Keeps the name of a new account in memory.
    pub(super) fn keep_name(&self, uid: Uid, name: &str) {
        self.names.keep(uid, name);
    }

    /// Drops a name from memory; without a uid, all.
    pub(super) fn drop_names(&self, of: Option<Uid>) {
        self.names.forget(of);
    }

    pub(super) async fn change(
        &self,
        update: sqlx::query::Query<'_, Sqlite, sqlx::sqlite::SqliteArguments>,
    ) -> Result<u64, StoreError> {
        let mut tx = self.write().await?;
        let changed = update.execute(&mut *tx).await?.rows_affected();
        tx.commit().await?;
        Ok(changed)
    }
}

#[async_trait]
impl Directory for SqliteDirectory {
    async fn create_account(
        &self,
        uid: Uid,
        account: NewAccount,
        first: Option<Session>,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        if !insert_account(&mut tx, uid, &account).await? {
            tx.rollback().await?;
            return Ok(false);
        }
        if let Some(session) = &first {
            insert_session(session).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        self.keep_name(uid, &account.name);
        Ok(true)
    }

    async fn largest_uid(&self) -> Result<Option<Uid>, StoreError> {
        let largest: Option<i64> =
            sqlx::query_scalar("SELECT max(uid) FROM accounts").fetch_one(&mut *self.reader().await?).await?;
        let uid = |largest| {
            u32::try_from(largest).map(Uid).map_err(|_| StoreError::corrupt("a uid is out of range"))
        };
        largest.map(uid).transpose()
    }

    async fn account_by_name(&self, name: &str) -> Result<Option<Account>, StoreError> {
        sqlx::query("SELECT uid, name, password_hash, disabled, deleted_at FROM accounts WHERE name_key = ?")
            .bind(name_key(name))
            .fetch_optional(&mut *self.reader().await?)
            .await?
            .map(|row| account(&row))
            .transpose()
    }

    async fn account(&self, uid: Uid) -> Result<Option<Account>, StoreError> {
        sqlx::query("SELECT uid, name, password_hash, disabled, deleted_at FROM accounts WHERE uid = ?")
            .bind(i64::from(uid.0))
            .fetch_optional(&mut *self.reader().await?)
            .await?
            .map(|row| account(&row))
            .transpose()
    }

    async fn shown_names(&self, uids: &[Uid]) -> Result<Vec<Option<ShownName>>, StoreError> {
        let (mut found, missing) = self.names.look(uids);
        for part in missing.chunks(ASKED_AT_ONCE) {
            let mut ask = QueryBuilder::<Sqlite>::new(
                "SELECT uid, CASE WHEN deleted_at IS NULL THEN name END AS name FROM accounts WHERE uid IN (",
            );
            let mut list = ask.separated(", ");
            for uid in part {
                list.push_bind(i64::from(uid.0));
            }
            ask.push(")");
            let rows = if self.for_queues {
                let mut connection = self.db.service().await?;
                let rows = ask.build().fetch_all(&mut *connection).await?;
                connection.give_back();
                rows
            } else {
                ask.build().fetch_all(&mut *self.reader().await?).await?
            };
            for row in rows {
                found.add(&self.names, uid_of(&row)?, row.try_get("name")?);
            }
        }
        Ok(found.in_order(uids))
    }

    async fn has_look_alike(&self, name: &str) -> Result<bool, StoreError> {
        self.is_looked_like(name).await
    }

    async fn search(&self, part: &str, limit: usize) -> Result<Vec<(Uid, String)>, StoreError> {
        self.found(Search::new(part, limit)).await
    }

    async fn index_names(&self, limit: usize) -> Result<u64, StoreError> {
        self.index_some(limit).await
    }

    async fn accounts(&self, after: Uid, limit: usize) -> Result<Vec<Account>, StoreError> {
        let rows = sqlx::query(
            "SELECT uid, name, password_hash, disabled, deleted_at FROM accounts WHERE uid > ? ORDER BY uid LIMIT ?",
        )
        .bind(i64::from(after.0))
        .bind(count(limit))
        .fetch_all(&mut *self.reader().await?)
        .await?;
        rows.iter().map(account).collect()
    }

    async fn set_password(&self, uid: Uid, password_hash: &str) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let update =
            sqlx::query("UPDATE accounts SET password_hash = ? WHERE uid = ? AND deleted_at IS NULL");
        let update = update.bind(password_hash.to_owned()).bind(i64::from(uid.0));
        let is_known = update.execute(&mut *tx).await?.rows_affected() > 0;
        forget_codes(&mut tx, uid).await?;
        tx.commit().await?;
        Ok(is_known)
    }

    async fn replace_hash(&self, uid: Uid, checked: &str, password_hash: &str) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let replaced = replace_hash(&mut tx, uid, checked, password_hash).await?;
        tx.commit().await?;
        Ok(replaced)
    }

    async fn change_password(
        &self,
        uid: Uid,
        checked: &str,
        password_hash: &str,
        kept: &[u8; 32],
    ) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        if !replace_hash(&mut tx, uid, checked, password_hash).await? {
            tx.rollback().await?;
            return Ok(false);
        }
        let end = sqlx::query("DELETE FROM sessions WHERE uid = ? AND token_hash <> ?");
        end.bind(i64::from(uid.0)).bind(kept.to_vec()).execute(&mut *tx).await?;
        forget_codes(&mut tx, uid).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn set_disabled(&self, uid: Uid, disabled: bool) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let update = sqlx::query("UPDATE accounts SET disabled = ? WHERE uid = ? AND deleted_at IS NULL");
        let update = update.bind(disabled).bind(i64::from(uid.0)).execute(&mut *tx).await?;
        let end = sqlx::query("DELETE FROM sign_up_invites WHERE made_by = ? AND ?");
        end.bind(i64::from(uid.0)).bind(disabled).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(update.rows_affected() > 0)
    }

    async fn create_session(&self, session: Session, password_hash: &str) -> Result<bool, StoreError> {
        let insert = sqlx::query(
            "INSERT INTO sessions (token_hash, uid, created_at, expires_at, label) SELECT ?, uid, ?, ?, ? FROM accounts \
             WHERE uid = ? AND password_hash = ? AND NOT disabled",
        );
        let insert =
            insert.bind(session.token_hash.to_vec()).bind(session.created_at.0).bind(session.expires_at.0);
        let insert = insert.bind(session.label).bind(i64::from(session.uid.0)).bind(password_hash.to_owned());
        Ok(self.change(insert).await? > 0)
    }

    async fn session(&self, token_hash: &[u8; 32], now: Timestamp) -> Result<Option<Session>, StoreError> {
        let row = sqlx::query(
            "SELECT s.token_hash, s.uid, s.created_at, s.expires_at, s.label FROM sessions s JOIN accounts a ON a.uid = s.uid
             WHERE s.token_hash = ? AND s.expires_at > ? AND NOT a.disabled",
        )
        .bind(token_hash.to_vec())
        .bind(now.0)
        .fetch_optional(&mut *self.reader().await?)
        .await?;
        row.map(|row| session_of(&row)).transpose()
    }

    async fn sessions(&self, uid: Uid, now: Timestamp, limit: usize) -> Result<Vec<Session>, StoreError> {
        let open = sqlx::query(
            "SELECT * FROM (SELECT token_hash, uid, created_at, expires_at, label FROM sessions \
                            WHERE uid = ? AND expires_at > ? LIMIT ?) \
             ORDER BY created_at DESC, token_hash LIMIT ?",
        );
        let open = open.bind(i64::from(uid.0)).bind(now.0).bind(count(MOST_SESSIONS)).bind(count(limit));
        let rows = open.fetch_all(&mut *self.reader().await?).await?;
        rows.iter().map(session_of).collect()
    }

    async fn end_session_of(&self, uid: Uid, id: &[u8; 16]) -> Result<Option<[u8; 32]>, StoreError> {
        let [first, last] = beginning_with(id);
        let delete = sqlx::query_scalar::<_, Vec<u8>>(
            "DELETE FROM sessions WHERE token_hash BETWEEN ? AND ? AND uid = ? RETURNING token_hash",
        );
        let delete = delete.bind(first.to_vec()).bind(last.to_vec()).bind(i64::from(uid.0));
        let mut tx = self.write().await?;
        let ended = delete.fetch_all(&mut *tx).await?.pop();
        tx.commit().await?;
        ended.map(token_hash).transpose()
    }

    async fn label_session(&self, uid: Uid, id: &[u8; 16], label: &str) -> Result<bool, StoreError> {
        let [first, last] = beginning_with(id);
        let update =
            sqlx::query("UPDATE sessions SET label = ? WHERE token_hash BETWEEN ? AND ? AND uid = ?");
        let update = update.bind(label.to_owned()).bind(first.to_vec()).bind(last.to_vec());
        Ok(self.change(update.bind(i64::from(uid.0))).await? > 0)
    }

    async fn end_session(&self, token_hash: &[u8; 32]) -> Result<bool, StoreError> {
        let delete = sqlx::query("DELETE FROM sessions WHERE token_hash = ?");
        Ok(self.change(delete.bind(token_hash.to_vec())).await? > 0)
    }

    async fn endings(&self) -> Result<u64, StoreError> {
        meta::number(&mut *self.reader().await?, meta::ENDINGS).await
    }

    async fn end_sessions(&self, uid: Uid) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        let delete = sqlx::query("DELETE FROM sessions WHERE uid = ?").bind(i64::from(uid.0));
        delete.execute(&mut *tx).await?;
        meta::count_up(&mut tx, meta::ENDINGS).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let delete = sqlx::query(
            "DELETE FROM sessions WHERE token_hash IN (SELECT token_hash FROM sessions WHERE expires_at <= ? LIMIT ?)",
        );
        self.change(delete.bind(now.0).bind(count(limit))).await
    }
}

pub(super) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn uid_of(row: &SqliteRow) -> Result<Uid, StoreError> {
    let uid: i64 = row.try_get("uid")?;
    u32::try_from(uid).map(Uid).map_err(|_| StoreError::corrupt(format!("{uid} is no uid")))
}

fn account(row: &SqliteRow) -> Result<Account, StoreError> {
    Ok(Account {
        uid: uid_of(row)?,
        name: row.try_get("name")?,
        password_hash: row.try_get("password_hash")?,
        disabled: row.try_get("disabled")?,
        deleted_at: row.try_get::<Option<i64>, _>("deleted_at")?.map(Timestamp),
    })
}

fn session_of(row: &SqliteRow) -> Result<Session, StoreError> {
    Ok(Session {
        token_hash: token_hash(row.try_get("token_hash")?)?,
        uid: uid_of(row)?,
        created_at: Timestamp(row.try_get("created_at")?),
        expires_at: Timestamp(row.try_get("expires_at")?),
        label: row.try_get("label")?,
    })
}

/// Makes an account, unless its name is taken.
pub(super) async fn insert_account(
    connection: &mut SqliteConnection,
    uid: Uid,
    account: &NewAccount,
) -> Result<bool, StoreError> {
    let key = name_key(&account.name);
    let taken = sqlx::query("SELECT uid FROM accounts WHERE name_key = ?").bind(&key);
    if taken.fetch_optional(&mut *connection).await?.is_some()
        || !name_index::keep_skeletons(connection, uid, &account.name).await?
    {
        return Ok(false);
    }
    sqlx::query(
        "INSERT INTO accounts (uid, name, name_key, password_hash, created_at, name_indexed) VALUES (?, ?, ?, ?, ?, TRUE)",
    )
    .bind(i64::from(uid.0))
    .bind(&account.name)
    .bind(&key)
    .bind(&account.password_hash)
    .bind(account.created_at.0)
    .execute(&mut *connection)
    .await?;
    name_index::keep_endings(connection, uid, &account.name).await?;
    Ok(true)
}

pub(super) fn insert_session(session: &Session) -> Query<'_, Sqlite, SqliteArguments> {
    sqlx::query(
        "INSERT INTO sessions (token_hash, uid, created_at, expires_at, label) VALUES (?, ?, ?, ?, ?)",
    )
    .bind(session.token_hash.to_vec())
    .bind(i64::from(session.uid.0))
    .bind(session.created_at.0)
    .bind(session.expires_at.0)
    .bind(&session.label)
}

/// Whether the hash was still `checked`.
async fn replace_hash(
    connection: &mut SqliteConnection,
    uid: Uid,
    checked: &str,
    password_hash: &str,
) -> Result<bool, StoreError> {
    let update = sqlx::query(
        "UPDATE accounts SET password_hash = ? WHERE uid = ? AND password_hash = ? AND NOT disabled",
    );
    let update = update.bind(password_hash.to_owned()).bind(i64::from(uid.0)).bind(checked.to_owned());
    Ok(update.execute(connection).await?.rows_affected() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance;

    #[tokio::test]
    async fn it_keeps_the_contract() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("tidemark.db");
        let db = Db::open(&path).await.expect("opened");
        let directory = SqliteDirectory::new(Arc::clone(&db), 4);
        conformance::directory::run(&directory).await;
        conformance::credentials::run(&directory).await;
        conformance::deletions::run(&directory).await;
        conformance::invites::run(&directory).await;
        conformance::access_keys::run(&directory).await;
        db.close().await.expect("closed");
    }

    #[tokio::test]
    async fn names_are_found_however_many_are_asked_and_however_few_are_kept() {
        let place = tempfile::tempdir().expect("a directory");
        let db = Db::open(&place.path().join("tidemark.db")).await.expect("opened");
        let directory = SqliteDirectory::new(Arc::clone(&db), 4);
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
        uids.extend((0..1_000).map(Uid));
        uids.push(uids[3]);
        let names = directory.names(&uids).await.expect("asked");
        assert_eq!(names.len(), uids.len());
        assert_eq!(names[7].as_deref(), Some("name 7"));
        assert_eq!(names[500], None);
        assert_eq!(names.last().cloned().flatten().as_deref(), Some("name 3"));
        assert!(directory.names.len() <= 4);
    }
}
