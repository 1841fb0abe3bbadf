//! Sessions.

use std::collections::HashSet;

use super::directory_db::SqlTx;
use super::sql::{SqlRow, sql};
use super::{Directory, StoreError};
use crate::domain::{Timestamp, Uid};

/// A session, known by the SHA-256 of its token; the token itself is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of the token.
    pub token_hash: [u8; 32],
    /// Whose.
    pub uid: Uid,
    /// When it began.
    pub created_at: Timestamp,
    /// From when on it is worth nothing.
    pub expires_at: Timestamp,
    /// The name of the device, which the owner can change; empty where nothing is known of it.
    pub label: String,
}

/// Sessions of one account that [`Directory::sessions`] looks at.
const MOST_SESSIONS: usize = 10_000;

/// The token hashes that begin with `id`: the first and the last.
pub(super) fn beginning_with(id: &[u8; 16]) -> [[u8; 32]; 2] {
    [0x00, 0xff].map(|rest| std::array::from_fn(|at| id.get(at).copied().unwrap_or(rest)))
}

/// Sessions.
impl Directory {
    /// Keeps a session of somebody whose password was held against `password_hash`. `false`, and nothing is kept, when the account has
    /// another one by now, or is disabled: checking a password takes long, and what ended the sessions meanwhile would miss this one.
    pub async fn create_session(&self, session: Session, password_hash: &str) -> Result<bool, StoreError> {
        // The lock lets whoever changes the account at this moment come first, and be seen, or end this session, too.
        let insert = sql(
            "INSERT INTO sessions (token_hash, uid, created_at, expires_at, label) SELECT $1, uid, $2, $3, $4 FROM accounts
             WHERE uid = $5 AND password_hash = $6 AND NOT disabled FOR SHARE",
        );
        let insert = insert.bind(session.token_hash).bind(session.created_at).bind(session.expires_at);
        let insert = insert.bind(session.label).bind(session.uid).bind(password_hash);
        Ok(self.db.change(insert).await? > 0)
    }

    /// The session of this token hash that has not expired at `now`, unless its account is disabled.
    pub async fn session(
        &self,
        token_hash: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<Session>, StoreError> {
        let session = sql(
            "SELECT s.token_hash, s.uid, s.created_at, s.expires_at, s.label FROM sessions s JOIN accounts a ON a.uid = s.uid
             WHERE s.token_hash = $1 AND s.expires_at > $2 AND NOT a.disabled",
        );
        let row = self.db.row(session.bind(token_hash).bind(now)).await?;
        row.as_ref().map(session_of).transpose()
    }

    /// Whether each of these sessions, by the hash of its token, is good at `now`, as [`session`](Self::session) would say.
    pub async fn are_good(&self, token_hashes: &[[u8; 32]], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let good = sql("SELECT s.token_hash FROM sessions s JOIN accounts a ON a.uid = s.uid
             WHERE s.token_hash = ANY($1) AND s.expires_at > $2 AND NOT a.disabled");
        let rows = self.db.rows(good.bind(token_hashes).bind(now)).await?;
        let good: HashSet<[u8; 32]> =
            rows.iter().map(|row| row.hash("token_hash")).collect::<Result<_, _>>()?;
        Ok(token_hashes.iter().map(|hash| good.contains(hash)).collect())
    }

    /// The sessions of `uid` that have not expired at `now`, newest first, at most `limit`. Of an account with more than
    /// `MOST_SESSIONS` it looks at so many of them.
    pub async fn sessions(&self, uid: Uid, now: Timestamp, limit: usize) -> Result<Vec<Session>, StoreError> {
        let open = sql("SELECT * FROM (SELECT token_hash, uid, created_at, expires_at, label FROM sessions
                            WHERE uid = $1 AND expires_at > $2 LIMIT $3) AS open
             ORDER BY created_at DESC, token_hash LIMIT $4");
        let rows = self.db.rows(open.bind(uid).bind(now).bind(MOST_SESSIONS).bind(limit)).await?;
        rows.iter().map(session_of).collect()
    }

    /// Ends the session of `uid` whose token hash begins with `id`, and tells its whole hash. `None`: the account has none.
    pub async fn end_session_of(&self, uid: Uid, id: &[u8; 16]) -> Result<Option<[u8; 32]>, StoreError> {
        let [first, last] = beginning_with(id);
        let delete =
            sql("DELETE FROM sessions WHERE token_hash BETWEEN $1 AND $2 AND uid = $3 RETURNING token_hash");
        let ended = self.db.changed_row(delete.bind(first).bind(last).bind(uid)).await?;
        ended.map(|row| row.hash("token_hash")).transpose()
    }

    /// Calls the session of `uid` whose token hash begins with `id` so. `false`: the account has none.
    pub async fn label_session(&self, uid: Uid, id: &[u8; 16], label: &str) -> Result<bool, StoreError> {
        let [first, last] = beginning_with(id);
        let update = sql("UPDATE sessions SET label = $1 WHERE token_hash BETWEEN $2 AND $3 AND uid = $4");
        Ok(self.db.change(update.bind(label).bind(first).bind(last).bind(uid)).await? > 0)
    }

    /// Ends one session. `false` when there was none.
    pub async fn end_session(&self, token_hash: &[u8; 32]) -> Result<bool, StoreError> {
        let delete = sql("DELETE FROM sessions WHERE token_hash = $1");
        Ok(self.db.change(delete.bind(token_hash)).await? > 0)
    }

    /// How often accounts were changed in a way that servers must notice (their sessions ended, or they were renamed), by whichever
    /// process, where a server is told of it in no other way; else 0.
    pub async fn endings(&self) -> Result<u64, StoreError> {
        self.db.endings().await
    }

    /// Ends all sessions of an account.
    pub async fn end_sessions(&self, uid: Uid) -> Result<(), StoreError> {
        let end = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            forget_sessions(&mut tx, uid).await?;
            tx.count_ending().await?;
            tx.commit().await
        };
        self.db.limited(end).await
    }

    /// Forgets what expired before `now`; at most `limit` a call. Says how many.
    pub async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        // Servers that sweep at the same time take different ones.
        let delete = sql("DELETE FROM sessions WHERE token_hash IN
             (SELECT token_hash FROM sessions WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)");
        self.db.change(delete.bind(now).bind(limit)).await
    }
}

/// Keeps a session of an account that the transaction has made, or locked.
pub(super) async fn insert_session(tx: &mut SqlTx<'_>, session: &Session) -> Result<(), StoreError> {
    let insert = sql(
        "INSERT INTO sessions (token_hash, uid, created_at, expires_at, label) VALUES ($1, $2, $3, $4, $5)",
    );
    let insert = insert.bind(session.token_hash).bind(session.uid).bind(session.created_at);
    tx.change(insert.bind(session.expires_at).bind(session.label.as_str())).await.map(drop)
}

/// Ends all sessions of an account.
pub(super) async fn forget_sessions(tx: &mut SqlTx<'_>, uid: Uid) -> Result<(), StoreError> {
    tx.change(sql("DELETE FROM sessions WHERE uid = $1").bind(uid)).await.map(drop)
}

fn session_of(row: &SqlRow) -> Result<Session, StoreError> {
    Ok(Session {
        token_hash: row.hash("token_hash")?,
        uid: row.uid()?,
        created_at: row.time("created_at")?,
        expires_at: row.time("expires_at")?,
        label: row.get("label")?,
    })
}
