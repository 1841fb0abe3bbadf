//! Acceptances with copies owed, as the ledger, the journal and the tables have them.

use std::sync::Arc;

use super::receivers::OwedReceivers;
use crate::domain::{Content, MembershipEpoch, Uid};
use crate::store::Recipient;

/// An acceptance with copies owed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SqlitePending {
    pub(super) content: Arc<Content>,
    /// The membership epoch that ends with the copy for its member.
    pub(super) ends: Option<(Uid, MembershipEpoch)>,
    pub(super) owed: Vec<Recipient>,
}

impl SqlitePending {
    /// Crosses out those who have been served; `None` when one of them was not owed anything.
    pub(super) fn settle(&mut self, done: impl Iterator<Item = Uid>) -> Option<()> {
        let mut served = vec![false; self.owed.len()];
        let mut owed = OwedReceivers::of(&self.owed);
        for uid in done {
            served[owed.place_of(uid)?] = true;
        }
        let mut served = served.into_iter();
        self.owed.retain(|_| !served.next().unwrap_or(false));
        Some(())
    }
}
