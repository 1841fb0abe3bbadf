//! Tickets for WebSockets, and rates of callers: the servers of one database share them.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreError;

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
