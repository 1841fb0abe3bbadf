//! The seam to where invitations are kept. Small and apart from rows: an invitation is no message.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::{ClientId, GroupId, Invite, Timestamp, Uid};

/// Invitations into groups. Every change is durable when the call returns.
///
/// A guest's use of one is taken by a *claim* before the group changes. The claim holds the name under which the group is to change,
/// so that whoever finds it after a crash can tell whether that happened: then it is [settled](Self::settle_use), else taken up
/// again or [given back](Self::return_use).
#[async_trait]
pub trait Invites: Send + Sync + 'static {
    /// Keeps an invitation under its number, which is new, and returns it. Where its maker has one of the same `client_id` already,
    /// that one stands and is returned.
    async fn put_invite(&self, invite: Invite) -> Result<Invite, StoreError>;

    /// The invitation of this number.
    async fn invite(&self, number: u64) -> Result<Option<Invite>, StoreError>;

    /// The invitations into a group that are open at `now`, of one maker or of all, by their numbers: those above `after`, at most `limit`.
    async fn open_invites(
        &self,
        gid: GroupId,
        made_by: Option<Uid>,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Invite>, StoreError>;

    /// Ends an invitation at `at`, if it does not end before.
    async fn end_invite(&self, number: u64, at: Timestamp) -> Result<(), StoreError>;

    /// Ends the invitations of `made_by` at `at`, as far as they do not end before.
    async fn end_invites_of(&self, made_by: Uid, at: Timestamp) -> Result<(), StoreError>;

    /// The largest number of an invitation that was ever kept; 0 without any. New ones get larger numbers.
    async fn largest_invite(&self) -> Result<u64, StoreError>;

    /// Claims one of its uses for `guest`, under `name`; where `guest` has a claim already, that one stands, and no use is taken.
    /// Returns the name under which the claim stands; `None`: no use is left, or it is over at `now`. Of several guests at the
    /// same moment no more get a claim than there are uses.
    async fn claim_use(
        &self,
        number: u64,
        guest: Uid,
        name: ClientId,
        now: Timestamp,
    ) -> Result<Option<ClientId>, StoreError>;

    /// The name under which `guest` has claimed a use.
    async fn claim(&self, number: u64, guest: Uid) -> Result<Option<ClientId>, StoreError>;

    /// Ends the claim of `guest`: the use is used. Without that claim nothing changes.
    async fn settle_use(&self, number: u64, guest: Uid, name: ClientId) -> Result<(), StoreError>;

    /// Ends the claim of `guest` and gives the use back, which came to nothing. Without that claim nothing changes.
    async fn return_use(&self, number: u64, guest: Uid, name: ClientId) -> Result<(), StoreError>;

    /// Forgets up to `limit` invitations that were over at `now`, with their claims, and tells how many. The one of the largest
    /// number stays, so that it is known.
    async fn forget_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
