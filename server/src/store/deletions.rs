//! Accounts that are deleted: one mark that everything rests on, and how far the clearing behind it has come.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::{DELETED_ACCOUNT, Timestamp, Uid};

/// The name of an account, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownName {
    /// As the person wrote it.
    Of(String),
    /// The account is deleted: nobody sees its name any more.
    Deleted,
}

impl ShownName {
    /// The text.
    pub fn into_text(self) -> String {
        match self {
            ShownName::Of(name) => name,
            ShownName::Deleted => DELETED_ACCOUNT.to_owned(),
        }
    }

    /// Whether the account is deleted.
    pub fn is_deleted(&self) -> bool {
        *self == ShownName::Deleted
    }
}

/// The progress of the removal of a user's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// How many were removed now.
    pub removed: u64,
    /// Whether there are more, or may be: asking again removes them.
    pub more: bool,
}

/// Deleted accounts. Every change is durable when the call returns.
#[async_trait]
pub trait Deletions: Send + Sync + 'static {
    /// Marks the account as deleted, for good: from then on there is no session, password, recovery code, device or invitation to sign up of
    /// it, nobody finds it, and its name is taken as before and shown to nobody. All in one transaction. With `checked`: if that is still
    /// the hash of its password, and it is not disabled. `false`, and nothing changes: that does not hold, or there is no such account, or
    /// it is marked already.
    async fn delete_account(
        &self,
        uid: Uid,
        checked: Option<&str>,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Deleted accounts with something left to clear, and when each was deleted: those after `after` by uid, at most `limit`.
    async fn to_clear(&self, after: Uid, limit: usize) -> Result<Vec<(Uid, Timestamp)>, StoreError>;

    /// Nothing is left of that account.
    async fn mark_cleared(&self, uid: Uid) -> Result<(), StoreError>;

    /// The accounts that were deleted at `since` or later, newest first, at most `limit`.
    async fn deleted_since(&self, since: Timestamp, limit: usize) -> Result<Vec<Uid>, StoreError>;

    /// Drops a name from memory: its account may be deleted. Without a uid, all names.
    fn forget_names(&self, of: Option<Uid>);
}
