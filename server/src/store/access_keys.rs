//! The seam to where access keys of tables are kept.

use std::fmt;

use async_trait::async_trait;
use sqlx::{FromRow, Row};

use super::StoreError;
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

/// Access keys. Every change is durable when the call returns.
#[async_trait]
pub trait AccessKeys: Send + Sync + 'static {
    /// Keeps a new one.
    async fn put_access_key(&self, key: AccessKey) -> Result<(), StoreError>;

    /// The one of this id.
    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, StoreError>;

    /// Those after `after` by id, at most `limit`.
    async fn access_keys(&self, after: &str, limit: usize) -> Result<Vec<AccessKey>, StoreError>;

    /// Ends all sign-ins with the one of this id.
    async fn sign_out(&self, id: &str) -> Result<(), StoreError>;

    /// Removes the one of this id. `false`: there is none.
    async fn remove_access_key(&self, id: &str) -> Result<bool, StoreError>;
}

/// id, secret, instance, may_write, inbox, created_at, sign_outs.
type AccessKeyColumns = (String, String, String, bool, Option<i64>, i64, i64);

/// Reads an access key from a row that has the columns of the table in their order, on either database.
pub(super) fn access_key<'r, R: Row>(row: &'r R) -> Result<AccessKey, StoreError>
where
    AccessKeyColumns: FromRow<'r, R>,
{
    let (id, secret, instance, may_write, inbox, created_at, sign_outs) = AccessKeyColumns::from_row(row)?;
    let inbox = inbox.map(|uid| u32::try_from(uid).map(Uid)).transpose().map_err(StoreError::corrupt)?;
    Ok(AccessKey { id, secret, instance, may_write, inbox, created_at: Timestamp(created_at), sign_outs })
}
