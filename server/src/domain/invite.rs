//! Invitations into a group: who made one, for how long, for how many.

use super::{ClientId, GroupId, Timestamp, Uid};

/// The longest life of an invitation, also of one to sign up: 30 days, in seconds.
pub const LONGEST_INVITE_SECONDS: u32 = 30 * 24 * 60 * 60;

/// The most people that may come into a group by one invitation.
pub const MOST_INVITE_USES: u32 = 1_000;

/// An invitation into a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invite {
    /// The number behind its code: 1 and up, never given twice.
    pub number: u64,
    /// Into which group.
    pub gid: GroupId,
    /// A member of it; the invitation ends when this one leaves.
    pub made_by: Uid,
    /// When.
    pub made_at: Timestamp,
    /// From when on nobody comes in by it.
    pub expires_at: Timestamp,
    /// How many may come in by it in all.
    pub uses: u32,
    /// How many may still come in by it.
    pub uses_left: u32,
    /// The id that its maker's client gave it, if any: a repetition of the request finds it.
    pub client_id: Option<ClientId>,
}

impl Invite {
    /// Whether somebody could come in by it at `now`.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.uses_left > 0 && now < self.expires_at
    }
}
