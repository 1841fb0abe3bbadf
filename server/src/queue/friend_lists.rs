//! Who is whose friend, and who of them hears from a person. Each moment and each like asks, and the answer is read from
//! thousands of rows, so that it is remembered: of some people, until one of those rows changes here. Where other servers
//! write, too, no answer is older than [`LIFETIME`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::permissions::{LIFETIME, Pair};
use crate::domain::Uid;

/// People whose friends are remembered: 40 KB each, if they have as many as they may.
const KNOWN: usize = 500;

/// The friends of a person.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FriendList {
    /// All of them.
    pub friends: Vec<Uid>,
    /// Those who have not blocked the person.
    pub hearing: Vec<Uid>,
}

/// The lists that were asked for lately.
pub struct FriendLists {
    known: Cache<Uid, (Instant, Arc<FriendList>)>,
    lifetime: Option<Duration>,
    /// Counts the changes: what was read before one is not remembered after it.
    changes: AtomicU64,
}

/// When a list was begun to be read.
#[derive(Clone, Copy, Debug)]
pub struct ReadSince(u64, Instant);

impl FriendLists {
    /// `others_write`: whether other servers write to the same store.
    pub(super) fn new(others_write: bool) -> FriendLists {
        let lifetime = others_write.then_some(LIFETIME);
        FriendLists { known: Cache::new(KNOWN), lifetime, changes: AtomicU64::new(0) }
    }

    /// The list of `who`, if it is known.
    pub fn known(&self, who: Uid) -> Option<Arc<FriendList>> {
        let (read_at, list) = self.known.get(&who)?;
        self.lifetime.is_none_or(|lifetime| read_at.elapsed() < lifetime).then_some(list)
    }

    /// Said before a list is read.
    pub fn now(&self) -> ReadSince {
        ReadSince(self.changes.load(Ordering::Acquire), Instant::now())
    }

    /// Remembers the list of `who`, unless something has changed while it was read.
    pub fn keep(&self, who: Uid, list: Arc<FriendList>, ReadSince(before, read_at): ReadSince) {
        self.known.insert(who, (read_at, list));
        if self.changes.load(Ordering::Acquire) != before {
            self.known.remove(&who);
        }
    }

    /// Forgets the lists that rest on what one of each pair has said of the other.
    pub(super) fn forget(&self, pairs: &[Pair]) {
        if !pairs.is_empty() {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
        for (one, other) in pairs {
            self.known.remove(one);
            self.known.remove(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Uid = Uid(1);
    const BOB: Uid = Uid(2);
    const CLEO: Uid = Uid(3);

    fn list(friend: Uid) -> Arc<FriendList> {
        Arc::new(FriendList { friends: vec![friend], hearing: vec![friend] })
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_known_until_one_of_its_pairs_changes() {
        let lists = FriendLists::new(false);
        lists.keep(ANN, list(BOB), lists.now());
        lists.keep(CLEO, list(BOB), lists.now());
        tokio::time::advance(LIFETIME * 10).await;
        assert_eq!(lists.known(ANN), Some(list(BOB)));
        lists.forget(&[]);
        lists.forget(&[(BOB, ANN)]);
        assert_eq!((lists.known(ANN), lists.known(CLEO)), (None, Some(list(BOB))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_was_read_before_a_change_is_not_kept_after_it() {
        let lists = FriendLists::new(false);
        let since = lists.now();
        lists.forget(&[(ANN, CLEO)]);
        lists.keep(ANN, list(BOB), since);
        assert_eq!(lists.known(ANN), None);
    }

    #[tokio::test(start_paused = true)]
    async fn where_others_write_a_list_is_not_known_for_long() {
        let lists = FriendLists::new(true);
        lists.keep(ANN, list(BOB), lists.now());
        assert_eq!(lists.known(ANN), Some(list(BOB)));
        tokio::time::advance(LIFETIME).await;
        assert_eq!(lists.known(ANN), None);
    }
}
