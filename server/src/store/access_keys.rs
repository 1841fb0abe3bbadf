//! Access keys of tables.

use std::fmt;

use super::sql::{SqlRow, sql};
use super::{Directory, StoreError};
use crate::domain::{Timestamp, Uid};

/// An id and a secret, with which a program signs its requests to tables. The key belongs to one instance.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// Requests name the key by this id.
    pub id: String,
    /// Both sides compute signatures with it. It is kept as it is, since a hash could not compute them.
    pub secret: String,
    /// The instance whose tables it opens.
    pub instance: String,
    /// Whether it may write.
    pub may_write: bool,
    /// As whom it may read and write the inboxes of the chat; `None`: it may not.
    pub inbox: Option<Uid>,
    /// When it was made.
    pub created_at: Timestamp,
    /// How often somebody has signed out of the pages with it; a sign-in counts until the next one.
    pub sign_outs: i64,
}

/// The secret stays out of logs.
impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessKey({} of {})", self.id, self.instance)
    }
}

/// The columns that [`key_of`] reads.
const KEYS: &str = "SELECT id, secret, instance, may_write, inbox, created_at, sign_outs FROM access_keys";

/// Access keys.
impl Directory {
    /// Keeps a new one.
    pub async fn put_access_key(&self, key: AccessKey) -> Result<(), StoreError> {
        let insert = sql(
            "INSERT INTO access_keys (id, secret, instance, may_write, inbox, created_at, sign_outs) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        );
        let insert = insert.bind(key.id).bind(key.secret).bind(key.instance).bind(key.may_write);
        self.db.change(insert.bind(key.inbox).bind(key.created_at).bind(key.sign_outs)).await.map(drop)
    }

    /// The one of this id.
    pub async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, StoreError> {
        let key = sql(format!("{KEYS} WHERE id = $1")).bind(id);
        self.db.row(key).await?.as_ref().map(key_of).transpose()
    }

    /// Those after `after` by id, at most `limit`.
    pub async fn access_keys(&self, after: &str, limit: usize) -> Result<Vec<AccessKey>, StoreError> {
        let keys = sql(format!("{KEYS} WHERE id > $1 ORDER BY id LIMIT $2")).bind(after).bind(limit);
        self.db.rows(keys).await?.iter().map(key_of).collect()
    }

    /// Ends all sign-ins with the one of this id.
    pub async fn sign_out(&self, id: &str) -> Result<(), StoreError> {
        let count = sql("UPDATE access_keys SET sign_outs = sign_outs + 1 WHERE id = $1").bind(id);
        self.db.change(count).await.map(drop)
    }

    /// Removes the one of this id. `false`: there is none.
    pub async fn remove_access_key(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.db.change(sql("DELETE FROM access_keys WHERE id = $1").bind(id)).await? > 0)
    }
}

fn key_of(row: &SqlRow) -> Result<AccessKey, StoreError> {
    let inbox: Option<i64> = row.get("inbox")?;
    Ok(AccessKey {
        id: row.get("id")?,
        secret: row.get("secret")?,
        instance: row.get("instance")?,
        may_write: row.get("may_write")?,
        inbox: inbox.map(|uid| u32::try_from(uid).map(Uid)).transpose().map_err(StoreError::corrupt)?,
        created_at: row.time("created_at")?,
        sign_outs: row.get("sign_outs")?,
    })
}
