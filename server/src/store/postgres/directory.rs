//! Accounts and sessions in PostgreSQL. Each call is one statement, or one transaction that begins with the lock of the
//! account, so what another server does at the same moment comes before or after it. Owns a bounded memory of names; whether an account is open, its password and its sessions
//! are asked each time.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::postgres::{PgArguments, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{Connection as _, PgConnection, Row as _};

use super::credentials::forget_codes;
use super::{PgDb, name_index};
use crate::domain::{Timestamp, Uid, name_key};
use crate::store::directory::{MOST_SESSIONS, beginning_with, token_hash};
use crate::store::names::{Names, Search};
use crate::store::{Account, Directory, NewAccount, Session, ShownName, StoreError};

/// Uids of one question for names.
const ASKED_AT_ONCE: usize = 5_000;

/// The [`Directory`] of a PostgreSQL database.
pub struct PgDirectory {
    pub(super) db: Arc<PgDb>,
    names: Names,
    for_queues: bool,
}

impl PgDirectory {
    /// The directory of `db`, which keeps at most about `cached_names` names in memory.
    pub fn new(db: Arc<PgDb>, cached_names: usize) -> PgDirectory {
        PgDirectory { db, names: Names::new(cached_names), for_queues: false }
    }

    /// The same directory for the queues, which do not wait behind everybody's reads.
    pub fn for_queues(&self) -> PgDirectory {
        PgDirectory { db: Arc::clone(&self.db), names: self.names.clone(), for_queues: true }
    }

    /// Keeps the name of a new account in memory.
    pub(super) fn keep_name(&self, uid: Uid, name: &str) {
        self.names.keep(uid, name);
    }

    /// Drops a name from memory; without a uid, all.
    pub(super) fn drop_names(&self, of: Option<Uid>) {
        self.names.forget(of);
    }

    /// How many rows it changed.
    pub(super) async fn change(&self, query: Query<'_, Postgres, PgArguments>) -> Result<u64, StoreError> {
        let change = async { Ok(query.execute(&mut *self.db.reader().await?).await?.rows_affected()) };
        self.db.limited(change).await
    }

    pub(super) async fn row(
        &self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Option<PgRow>, StoreError> {
        self.db.limited(async { Ok(query.fetch_optional(&mut *self.db.reader().await?).await?) }).await
    }

    pub(super) async fn rows(
        &self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let rows = async {
            if self.for_queues {
                return Ok(query.fetch_all(&mut *self.db.for_queues().await?).await?);
            }
            Ok(query.fetch_all(&mut *self.db.reader().await?).await?)
        };
        self.db.limited(rows).await
    }
}

/// Of an account that is not disabled, if the hash is still the one that was checked.
const REPLACE_HASH: &str = "UPDATE accounts SET password_hash = $4 \
     WHERE partition_key = $1 AND uid = $2 AND password_hash = $3 AND NOT disabled";

#[async_trait]
impl Directory for PgDirectory {
    async fn create_account(
        &self,
        uid: Uid,
        account: NewAccount,
        first: Option<Session>,
    ) -> Result<bool, StoreError> {
        let create = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            if !insert_account(&mut tx, uid, &account, first.as_ref()).await? {
                tx.rollback().await?;
                return Ok(false);
            }
            tx.commit().await?;
            Ok(true)
        };
        let is_made = self.db.limited(create).await?;
        if is_made {
            self.keep_name(uid, &account.name);
        }
        Ok(is_made)
    }

    async fn largest_uid(&self) -> Result<Option<Uid>, StoreError> {
        let largest = sqlx::query("SELECT uid FROM accounts ORDER BY uid DESC LIMIT 1");
        self.row(largest).await?.map(|row| uid_of(&row)).transpose()
    }

    async fn account_by_name(&self, name: &str) -> Result<Option<Account>, StoreError> {
        if !is_text(name) {
            return Ok(None);
        }
        let account = sqlx::query(
            "SELECT a.uid, a.name, a.password_hash, a.disabled, a.deleted_at FROM account_names n JOIN accounts a \
             ON a.partition_key = left(md5(n.uid::text), 4) AND a.uid = n.uid WHERE n.name_key = $1",
        );
        self.row(account.bind(name_key(name))).await?.map(|row| account_of(&row)).transpose()
    }

    async fn account(&self, uid: Uid) -> Result<Option<Account>, StoreError> {
        let account = sqlx::query(
            "SELECT uid, name, password_hash, disabled, deleted_at FROM accounts WHERE partition_key = $1 AND uid = $2",
        );
        let account = account.bind(key_of(uid)).bind(i64::from(uid.0));
        self.row(account).await?.map(|row| account_of(&row)).transpose()
    }

    async fn shown_names(&self, uids: &[Uid]) -> Result<Vec<Option<ShownName>>, StoreError> {
        let (mut found, missing) = self.names.look(uids);
        for part in missing.chunks(ASKED_AT_ONCE) {
            let keys: Vec<String> = part.iter().map(|&uid| key_of(uid)).collect();
            let uids: Vec<i64> = part.iter().map(|uid| i64::from(uid.0)).collect();
            let ask = sqlx::query(
                "SELECT uid, CASE WHEN deleted_at IS NULL THEN name END AS name FROM unnest($1::text[], $2::bigint[]) AS asked (partition_key, uid) \
                 JOIN accounts USING (partition_key, uid)",
            );
            for row in self.rows(ask.bind(keys).bind(uids)).await? {
                found.add(&self.names, uid_of(&row)?, row.try_get("name")?);
            }
        }
        Ok(found.in_order(uids))
    }

    async fn has_look_alike(&self, name: &str) -> Result<bool, StoreError> {
        self.is_looked_like(name).await
    }

    async fn search(&self, part: &str, limit: usize) -> Result<Vec<(Uid, String)>, StoreError> {
        match is_text(part) {
            true => self.found(Search::new(part, limit)).await,
            false => Ok(Vec::new()),
        }
    }

    async fn index_names(&self, limit: usize) -> Result<u64, StoreError> {
        self.index_some(limit).await
    }

    async fn accounts(&self, after: Uid, limit: usize) -> Result<Vec<Account>, StoreError> {
        let page = sqlx::query(
            "SELECT uid, name, password_hash, disabled, deleted_at FROM accounts WHERE uid > $1 ORDER BY uid LIMIT $2",
        );
        let rows = self.rows(page.bind(i64::from(after.0)).bind(count(limit))).await?;
        rows.iter().map(account_of).collect()
    }

    async fn set_password(&self, uid: Uid, password_hash: &str) -> Result<bool, StoreError> {
        let set = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            let update = sqlx::query(
                "UPDATE accounts SET password_hash = $3 WHERE partition_key = $1 AND uid = $2 AND deleted_at IS NULL",
            );
            let update = update.bind(key_of(uid)).bind(i64::from(uid.0)).bind(password_hash);
            let is_known = update.execute(&mut *tx).await?.rows_affected() > 0;
            forget_codes(&mut tx, uid).await?;
            tx.commit().await?;
            Ok(is_known)
        };
        self.db.limited(set).await
    }

    async fn replace_hash(&self, uid: Uid, checked: &str, password_hash: &str) -> Result<bool, StoreError> {
        let update = sqlx::query(REPLACE_HASH).bind(key_of(uid)).bind(i64::from(uid.0));
        Ok(self.change(update.bind(checked).bind(password_hash)).await? > 0)
    }

    async fn change_password(
        &self,
        uid: Uid,
        checked: &str,
        password_hash: &str,
        kept: &[u8; 32],
    ) -> Result<bool, StoreError> {
        let change = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            let update = sqlx::query(REPLACE_HASH)
                .bind(key_of(uid))
                .bind(i64::from(uid.0))
                .bind(checked)
                .bind(password_hash);
            if update.execute(&mut *tx).await?.rows_affected() == 0 {
                tx.rollback().await?;
                return Ok(false);
            }
            // A statement of its own, which sees the sessions that were begun while the first one waited for the account.
            let end = sqlx::query("DELETE FROM sessions WHERE uid = $1 AND token_hash <> $2");
            end.bind(i64::from(uid.0)).bind(kept.to_vec()).execute(&mut *tx).await?;
            forget_codes(&mut tx, uid).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.limited(change).await
    }

    async fn set_disabled(&self, uid: Uid, disabled: bool) -> Result<bool, StoreError> {
        let set = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            let update = sqlx::query(
                "UPDATE accounts SET disabled = $3 WHERE partition_key = $1 AND uid = $2 AND deleted_at IS NULL",
            );
            let update = update.bind(key_of(uid)).bind(i64::from(uid.0)).bind(disabled);
            let is_known = update.execute(&mut *tx).await?.rows_affected() > 0;
            let end = sqlx::query("DELETE FROM sign_up_invites WHERE made_by = $1 AND $2");
            end.bind(i64::from(uid.0)).bind(disabled).execute(&mut *tx).await?;
            tx.commit().await?;
            Ok(is_known)
        };
        self.db.limited(set).await
    }

    async fn create_session(&self, session: Session, password_hash: &str) -> Result<bool, StoreError> {
        // The lock lets whoever changes the account at this moment come first, and be seen, or end this session, too.
        let insert = sqlx::query(
            "INSERT INTO sessions (token_hash, uid, created_at, expires_at, label) SELECT $1, uid, $2, $3, $7 FROM accounts \
             WHERE partition_key = $4 AND uid = $5 AND password_hash = $6 AND NOT disabled FOR SHARE",
        );
        let insert =
            insert.bind(session.token_hash.to_vec()).bind(session.created_at.0).bind(session.expires_at.0);
        let insert = insert.bind(key_of(session.uid)).bind(i64::from(session.uid.0));
        Ok(self.change(insert.bind(password_hash.to_owned()).bind(session.label)).await? > 0)
    }

    async fn session(&self, token_hash: &[u8; 32], now: Timestamp) -> Result<Option<Session>, StoreError> {
        let session = sqlx::query(
            "SELECT s.token_hash, s.uid, s.created_at, s.expires_at, s.label FROM sessions s \
             JOIN accounts a ON a.partition_key = left(md5(s.uid::text), 4) AND a.uid = s.uid \
             WHERE s.token_hash = $1 AND s.expires_at > $2 AND NOT a.disabled",
        );
        let row = self.row(session.bind(token_hash.to_vec()).bind(now.0)).await?;
        row.map(|row| session_of(&row)).transpose()
    }

    async fn are_good(&self, token_hashes: &[[u8; 32]], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let hashes: Vec<Vec<u8>> = token_hashes.iter().map(|hash| hash.to_vec()).collect();
        let good = sqlx::query(
            "SELECT s.token_hash FROM sessions s \
             JOIN accounts a ON a.partition_key = left(md5(s.uid::text), 4) AND a.uid = s.uid \
             WHERE s.token_hash = ANY($1) AND s.expires_at > $2 AND NOT a.disabled",
        );
        let rows = self.rows(good.bind(hashes).bind(now.0)).await?;
        let good: HashSet<Vec<u8>> =
            rows.iter().map(|row| row.try_get("token_hash")).collect::<Result<_, _>>()?;
        Ok(token_hashes.iter().map(|hash| good.contains(&hash[..])).collect())
    }

    async fn sessions(&self, uid: Uid, now: Timestamp, limit: usize) -> Result<Vec<Session>, StoreError> {
        let open = sqlx::query(
            "SELECT * FROM (SELECT token_hash, uid, created_at, expires_at, label FROM sessions \
                            WHERE uid = $1 AND expires_at > $2 LIMIT $3) AS open \
             ORDER BY created_at DESC, token_hash LIMIT $4",
        );
        let open = open.bind(i64::from(uid.0)).bind(now.0).bind(count(MOST_SESSIONS)).bind(count(limit));
        self.rows(open).await?.iter().map(session_of).collect()
    }

    async fn end_session_of(&self, uid: Uid, id: &[u8; 16]) -> Result<Option<[u8; 32]>, StoreError> {
        let [first, last] = beginning_with(id);
        let delete = sqlx::query(
            "DELETE FROM sessions WHERE token_hash BETWEEN $1 AND $2 AND uid = $3 RETURNING token_hash",
        );
        let delete = delete.bind(first.to_vec()).bind(last.to_vec()).bind(i64::from(uid.0));
        let ended = self.row(delete).await?;
        ended.map(|row| token_hash(row.try_get("token_hash")?)).transpose()
    }

    async fn label_session(&self, uid: Uid, id: &[u8; 16], label: &str) -> Result<bool, StoreError> {
        let [first, last] = beginning_with(id);
        let update =
            sqlx::query("UPDATE sessions SET label = $4 WHERE token_hash BETWEEN $1 AND $2 AND uid = $3");
        let update = update.bind(first.to_vec()).bind(last.to_vec()).bind(i64::from(uid.0));
        Ok(self.change(update.bind(label.to_owned())).await? > 0)
    }

    async fn end_session(&self, token_hash: &[u8; 32]) -> Result<bool, StoreError> {
        let delete = sqlx::query("DELETE FROM sessions WHERE token_hash = $1");
        Ok(self.change(delete.bind(token_hash.to_vec())).await? > 0)
    }

    async fn end_sessions(&self, uid: Uid) -> Result<(), StoreError> {
        let delete = sqlx::query("DELETE FROM sessions WHERE uid = $1");
        self.change(delete.bind(i64::from(uid.0))).await.map(drop)
    }

    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        // Servers that sweep at the same time take different ones.
        let delete = sqlx::query(
            "DELETE FROM sessions WHERE token_hash IN (SELECT token_hash FROM sessions WHERE expires_at <= $1 \
             LIMIT $2 FOR UPDATE SKIP LOCKED)",
        );
        self.change(delete.bind(now.0).bind(count(limit))).await
    }
}

/// Makes an account, with its first session if there is one. `false`: somebody has the name, or one that can be taken for it. Of
/// several servers that take one name, all but the first wait for its commit, and then take nothing.
pub(super) async fn insert_account(
    connection: &mut PgConnection,
    uid: Uid,
    account: &NewAccount,
    first: Option<&Session>,
) -> Result<bool, StoreError> {
    let key = name_key(&account.name);
    let named = [(uid, account.name.clone())];
    let take =
        sqlx::query("INSERT INTO account_names (name_key, uid) VALUES ($1, $2) ON CONFLICT DO NOTHING");
    let taken = take.bind(&key).bind(i64::from(uid.0)).execute(&mut *connection).await?;
    if taken.rows_affected() == 0 || !name_index::keep_skeletons(connection, &named).await? {
        return Ok(false);
    }
    let made = sqlx::query(
        "WITH made AS (INSERT INTO accounts (partition_key, uid, name, name_key, password_hash, created_at, name_indexed) \
                       VALUES ($1, $2, $3, $4, $5, $6, true)) \
         INSERT INTO sessions (token_hash, uid, created_at, expires_at, label) \
         SELECT $7, $2, $8, $9, $10 WHERE $7 IS NOT NULL",
    );
    made.bind(key_of(uid))
        .bind(i64::from(uid.0))
        .bind(&account.name)
        .bind(&key)
        .bind(&account.password_hash)
        .bind(account.created_at.0)
        .bind(first.map(|session| session.token_hash.to_vec()))
        .bind(first.map(|session| session.created_at.0))
        .bind(first.map(|session| session.expires_at.0))
        .bind(first.map(|session| session.label.as_str()))
        .execute(&mut *connection)
        .await?;
    name_index::keep_endings(connection, &named).await?;
    Ok(true)
}

/// Keeps a session of an account whose row the transaction has locked.
pub(super) fn insert_session(session: &Session) -> Query<'_, Postgres, PgArguments> {
    let insert =
        "INSERT INTO sessions (token_hash, uid, created_at, expires_at, label) VALUES ($1, $2, $3, $4, $5)";
    sqlx::query(insert)
        .bind(session.token_hash.to_vec())
        .bind(i64::from(session.uid.0))
        .bind(session.created_at.0)
        .bind(session.expires_at.0)
        .bind(&session.label)
}

pub(super) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn key_of(uid: Uid) -> String {
    uid.partition_key().as_str().to_owned()
}

/// PostgreSQL has no text with a zero in it, so none is stored.
fn is_text(text: &str) -> bool {
    !text.contains('\0')
}

pub(super) fn uid_of(row: &PgRow) -> Result<Uid, StoreError> {
    let uid: i64 = row.try_get("uid")?;
    u32::try_from(uid).map(Uid).map_err(|_| StoreError::corrupt(format!("{uid} is no uid")))
}

fn account_of(row: &PgRow) -> Result<Account, StoreError> {
    Ok(Account {
        uid: uid_of(row)?,
        name: row.try_get("name")?,
        password_hash: row.try_get("password_hash")?,
        disabled: row.try_get("disabled")?,
        deleted_at: row.try_get::<Option<i64>, _>("deleted_at")?.map(Timestamp),
    })
}

fn session_of(row: &PgRow) -> Result<Session, StoreError> {
    Ok(Session {
        token_hash: token_hash(row.try_get("token_hash")?)?,
        uid: uid_of(row)?,
        created_at: Timestamp(row.try_get("created_at")?),
        expires_at: Timestamp(row.try_get("expires_at")?),
        label: row.try_get("label")?,
    })
}
