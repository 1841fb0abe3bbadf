//! Facts about the database that a commit has learnt beyond its writes: none at first, and more with every answer that
//! stored nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::domain::{Content, GroupId, IdempotencyKey, MembershipEpoch, MessageId, Uid};
use crate::store::{AcceptanceId, Recipient};

/// An acceptance with copies owed.
#[derive(Clone, Debug)]
pub(super) struct PgPending {
    pub(super) content: Arc<Content>,
    /// The membership epoch that ends with the copy for its member.
    pub(super) ends: Option<(Uid, MembershipEpoch)>,
    pub(super) owed: Vec<Recipient>,
}

/// See the module. Nothing in it is trusted: each call compares it again under the locks.
#[derive(Debug, Default)]
pub(super) struct Learnt {
    /// Keys with a record, of writes that bring no proof.
    pub(super) used: HashSet<IdempotencyKey>,
    /// Latest ids.
    pub(super) latest_ids: HashMap<Uid, MessageId>,
    /// Versions of groups; 0: there is no such group.
    pub(super) versions: HashMap<GroupId, u64>,
    /// Membership epochs that ended with a row.
    pub(super) closed: HashMap<(GroupId, Uid), MembershipEpoch>,
    /// Acceptances with copies owed, of those that the deliveries name.
    pub(super) open: HashMap<AcceptanceId, PgPending>,
    /// The last acceptance that had copies owed.
    pub(super) last_acceptance: AcceptanceId,
    /// Writes, by their place, that the database refuses, and why.
    pub(super) refused: HashMap<usize, String>,
}

impl Learnt {
    /// Learns that an epoch ended with a row.
    pub(super) fn learn_closed(&mut self, gid: GroupId, uid: Uid, epoch: MembershipEpoch) {
        let last = self.closed.entry((gid, uid)).or_default();
        *last = epoch.max(*last);
    }
}
