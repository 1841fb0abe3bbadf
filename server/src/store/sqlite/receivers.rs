//! Receivers of one write, found without looking at all of them for each.

use std::collections::HashSet;

use crate::domain::Uid;
use crate::store::Recipient;

/// The receivers of one write that were judged. Most writes have two, which need no table.
#[derive(Default)]
pub(super) struct SeenReceivers {
    few: Vec<Uid>,
    many: HashSet<Uid>,
}

impl SeenReceivers {
    /// So many are compared one by one.
    const FEW: usize = 16;

    /// Adds `uid`; `false` when it is there.
    pub(super) fn add(&mut self, uid: Uid) -> bool {
        if self.few.contains(&uid) {
            return false;
        }
        if self.few.len() < SeenReceivers::FEW {
            self.few.push(uid);
            return true;
        }
        self.many.insert(uid)
    }
}

/// Finds recipients. A delivery names them in the order of the acceptance, so looking on from the last place
/// finds the next one at once.
pub(super) struct OwedReceivers<'a> {
    list: &'a [Recipient],
    next: usize,
}

impl<'a> OwedReceivers<'a> {
    pub(super) fn of(list: &'a [Recipient]) -> OwedReceivers<'a> {
        OwedReceivers { list, next: 0 }
    }

    pub(super) fn place_of(&mut self, uid: Uid) -> Option<usize> {
        let (before, after) = self.list.split_at(self.next.min(self.list.len()));
        let is = |to: &Recipient| to.uid == uid;
        let place =
            after.iter().position(is).map(|at| at + before.len()).or_else(|| before.iter().position(is))?;
        self.next = place + 1;
        Some(place)
    }
}
