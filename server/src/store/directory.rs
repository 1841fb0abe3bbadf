//! Accounts and sessions: who may come in. The contract of the second storage trait.

use std::time::Duration;

use async_trait::async_trait;

use super::{CredentialStore, Deletions, ShownName, StoreError};
use crate::domain::{Timestamp, Uid};

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
pub const MOST_SESSIONS: usize = 10_000;

/// The token hashes that begin with `id`: the first and the last.
pub(super) fn beginning_with(id: &[u8; 16]) -> [[u8; 32]; 2] {
    [0x00, 0xff].map(|rest| std::array::from_fn(|at| id.get(at).copied().unwrap_or(rest)))
}

/// A hash as a database keeps it.
pub(super) fn token_hash(bytes: Vec<u8>) -> Result<[u8; 32], StoreError> {
    bytes.try_into().map_err(|_| StoreError::corrupt("the hash of a token does not have 32 bytes"))
}

/// Accounts and sessions.
///
/// Names are compared by their lower-case form, and new ones by what they look like ([`skeletons`](crate::domain::skeletons)). Every change is durable when the call returns.
#[async_trait]
pub trait Directory: CredentialStore + Deletions {
    /// Makes an account under `uid`, which nobody has or had, and its `first` session, in one transaction; `false` when the name is
    /// taken, or looks like one that is.
    async fn create_account(
        &self,
        uid: Uid,
        account: NewAccount,
        first: Option<Session>,
    ) -> Result<bool, StoreError>;

    /// The largest uid of an account; `None` without accounts. New ones get larger uids.
    async fn largest_uid(&self) -> Result<Option<Uid>, StoreError>;

    /// The account of this name.
    async fn account_by_name(&self, name: &str) -> Result<Option<Account>, StoreError>;

    /// The account of this uid.
    async fn account(&self, uid: Uid) -> Result<Option<Account>, StoreError>;

    /// The names of these accounts as others see them, in order. Served from a bounded memory where possible: queues
    /// ask it for every batch to learn whether senders and receivers exist, and lists ask it for titles.
    async fn shown_names(&self, uids: &[Uid]) -> Result<Vec<Option<ShownName>>, StoreError>;

    /// The same as texts.
    async fn names(&self, uids: &[Uid]) -> Result<Vec<Option<String>>, StoreError> {
        let shown = self.shown_names(uids).await?;
        Ok(shown.into_iter().map(|name| name.map(ShownName::into_text)).collect())
    }

    /// Whether there is an account whose name looks like `name`.
    async fn has_look_alike(&self, name: &str) -> Result<bool, StoreError>;

    /// Accounts with `part` in their name, at most `limit`, not the disabled ones: those whose name begins with it first, each by name.
    /// A part of one character is looked for at the beginning alone.
    async fn search(&self, part: &str, limit: usize) -> Result<Vec<(Uid, String)>, StoreError>;

    /// Takes names of accounts that an import made into what new names are compared with and parts are looked for in; at most `limit`.
    /// Says how many. An account whose name looks like another one keeps it.
    async fn index_names(&self, limit: usize) -> Result<u64, StoreError>;

    /// All accounts after `after` by uid, at most `limit`: for the operator's list.
    async fn accounts(&self, after: Uid, limit: usize) -> Result<Vec<Account>, StoreError>;

    /// Gives the account another password. `false` when there is none, or it is deleted.
    async fn set_password(&self, uid: Uid, password_hash: &str) -> Result<bool, StoreError>;

    /// Keeps another hash of the same password. `false`, and nothing changes, when the hash is not `checked` any more, or the account is
    /// disabled.
    async fn replace_hash(&self, uid: Uid, checked: &str, password_hash: &str) -> Result<bool, StoreError>;

    /// Gives the account another password and ends all its sessions but the one with the hash `kept`, in one transaction. `false`, and
    /// nothing changes, when the hash of its password is not `checked` any more, or it is disabled: checking a password takes long.
    async fn change_password(
        &self,
        uid: Uid,
        checked: &str,
        password_hash: &str,
        kept: &[u8; 32],
    ) -> Result<bool, StoreError>;

    /// Shuts or opens the account. With the shutting its invitations to sign up end. `false` when there is none, or it is deleted.
    async fn set_disabled(&self, uid: Uid, disabled: bool) -> Result<bool, StoreError>;

    /// Keeps a session of somebody whose password was held against `password_hash`. `false`, and nothing is kept, when the account has
    /// another one by now, or is disabled: checking a password takes long, and what ended the sessions meanwhile would miss this one.
    async fn create_session(&self, session: Session, password_hash: &str) -> Result<bool, StoreError>;

    /// The session of this token hash that has not expired at `now`, unless its account is disabled.
    async fn session(&self, token_hash: &[u8; 32], now: Timestamp) -> Result<Option<Session>, StoreError>;

    /// Whether each of these sessions, by the hash of its token, is good at `now`, as [`session`](Self::session) would say.
    async fn are_good(&self, token_hashes: &[[u8; 32]], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let mut good = Vec::with_capacity(token_hashes.len());
        for token_hash in token_hashes {
            good.push(self.session(token_hash, now).await?.is_some());
        }
        Ok(good)
    }

    /// The sessions of `uid` that have not expired at `now`, newest first, at most `limit`. Of an account with more than
    /// [`MOST_SESSIONS`] it looks at so many of them.
    async fn sessions(&self, uid: Uid, now: Timestamp, limit: usize) -> Result<Vec<Session>, StoreError>;

    /// Ends the session of `uid` whose token hash begins with `id`, and tells its whole hash. `None`: the account has none.
    async fn end_session_of(&self, uid: Uid, id: &[u8; 16]) -> Result<Option<[u8; 32]>, StoreError>;

    /// Calls the session of `uid` whose token hash begins with `id` so. `false`: the account has none.
    async fn label_session(&self, uid: Uid, id: &[u8; 16], label: &str) -> Result<bool, StoreError>;

    /// Ends one session. `false` when there was none.
    async fn end_session(&self, token_hash: &[u8; 32]) -> Result<bool, StoreError>;

    /// How often all sessions of an account were ended, by whichever process, where a server is told of it in no other way; else 0.
    async fn endings(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Ends all sessions of an account.
    async fn end_sessions(&self, uid: Uid) -> Result<(), StoreError>;

    /// Forgets what expired before `now`; at most `limit` a call. Says how many.
    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}

/// Tickets for WebSockets, where whichever server of a database is asked may be the one to redeem them. Times are the database's.
#[async_trait]
pub trait Tickets: Send + Sync + 'static {
    /// Keeps a ticket for `lifetime_ms` milliseconds. It opens one socket of the session with this hash of its token. Both are known by the
    /// SHA-256 of their text.
    async fn keep_ticket(
        &self,
        ticket_hash: &[u8; 32],
        token_hash: &[u8; 32],
        lifetime_ms: i64,
    ) -> Result<(), StoreError>;

    /// Uses a ticket up, and says whose session it opens a socket of; `None`: there is none, or its time is over. Of several who redeem
    /// one ticket at the same moment one succeeds.
    async fn take_ticket(&self, ticket_hash: &[u8; 32]) -> Result<Option<[u8; 32]>, StoreError>;
}

/// Rates that callers share over all servers of one database. Times are the database's. All kinds of callers lie in one space: what is
/// hashed begins with a text of its kind.
#[async_trait]
pub trait SharedRates: Send + Sync + 'static {
    /// Takes one request of the caller with this SHA-256, who has one each `interval` in the long run and may run ahead by `burst`.
    /// `None`: taken. Else nothing is taken, and it says how long to wait. Of servers that are asked at the same moment no two take the
    /// same one.
    async fn take(
        &self,
        caller: &[u8; 32],
        interval: Duration,
        burst: Duration,
    ) -> Result<Option<Duration>, StoreError>;

    /// Undoes a [`take`](Self::take) of this caller: what was asked for did not happen.
    async fn give_back(&self, caller: &[u8; 32], interval: Duration) -> Result<(), StoreError>;
}
