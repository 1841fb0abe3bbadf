//! The seam to where invitations are kept. Small and apart from rows: an invitation is no message.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::{Invite, Timestamp};

/// Invitations into groups. Every change is durable when the call returns.
#[async_trait]
pub trait Invites: Send + Sync + 'static {
    /// Keeps an invitation under its number, which is new.
    async fn put_invite(&self, invite: Invite) -> Result<(), StoreError>;

    /// The invitation of this number.
    async fn invite(&self, number: u64) -> Result<Option<Invite>, StoreError>;

    /// Takes one of its uses; `false`: there is none, or it is over at `now`. Of several at the same moment no more succeed than
    /// there are uses.
    async fn use_invite(&self, number: u64, now: Timestamp) -> Result<bool, StoreError>;

    /// Gives a use back that came to nothing.
    async fn return_use(&self, number: u64) -> Result<(), StoreError>;

    /// Forgets up to `limit` invitations that were over at `now`, and tells how many.
    async fn forget_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
