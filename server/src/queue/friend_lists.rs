//! The friends of a person, and the friends that hear from the person. Each moment and each like asks for the list. It is read from
//! thousands of rows, so it is remembered: for some people, until one of those rows changes here. Callers that ask during a reading wait
//! for that one, unless somebody's friends have changed since it began. Where other servers write, too, nobody gets a list whose reading
//! began more than [`LIFETIME`] before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::domain::Uid;

/// For how long an answer is remembered where other servers write.
pub(super) const LIFETIME: Duration = Duration::from_secs(2);

/// People whose friends are remembered; a list takes up to 40 KB.
const KNOWN: usize = 500;

/// The friends of a person.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FriendList {
    /// All of them.
    pub friends: Vec<Uid>,
    /// Those with whom there is no block, of either.
    pub hearing: Vec<Uid>,
}

/// The lists that were asked for lately.
pub struct FriendLists {
    known: Cache<Uid, (Instant, Arc<FriendList>)>,
    readings: Mutex<Readings>,
    lifetime: Option<Duration>,
}

/// Locked while a list is remembered or forgotten, so that a list read before a change is never known after it.
#[derive(Default)]
struct Readings {
    /// Counts the changes.
    changes: u64,
    /// A reading ends with the last caller who waits for it.
    under_way: HashMap<Uid, Weak<Reading>>,
}

/// A list that is being read.
struct Reading {
    /// The count of changes when it began.
    changes: u64,
    began: Instant,
    list: OnceCell<Arc<FriendList>>,
}

impl FriendLists {
    /// `others_write`: whether other servers write to the same store.
    pub(super) fn new(others_write: bool) -> FriendLists {
        let lifetime = others_write.then_some(LIFETIME);
        FriendLists { known: Cache::new(KNOWN), readings: Mutex::default(), lifetime }
    }

    /// The list of `who`: as it is known, or by `read`, which is dropped where somebody else reads it already.
    ///
    /// # Errors
    /// That of `read`.
    pub async fn get<E>(
        &self,
        who: Uid,
        read: impl Future<Output = Result<FriendList, E>>,
    ) -> Result<Arc<FriendList>, E> {
        if let Some((_, list)) = self.known.get(&who).filter(|(began, _)| self.is_fresh(*began)) {
            return Ok(list);
        }
        let reading = self.reading(who);
        let read_and_keep = async || {
            let list = Arc::new(read.await?);
            self.keep(who, &list, &reading);
            Ok(list)
        };
        reading.list.get_or_try_init(read_and_keep).await.cloned()
    }

    /// The reading of this list that is under way, unless something has changed since it began; otherwise a new one.
    fn reading(&self, who: Uid) -> Arc<Reading> {
        let mut readings = self.readings();
        let Readings { changes, under_way } = &mut *readings;
        let known = under_way.get(&who).and_then(Weak::upgrade);
        if let Some(same) = known.filter(|it| it.changes == *changes && self.is_fresh(it.began)) {
            return same;
        }
        under_way.retain(|_, reading| reading.strong_count() > 0);
        let new = Arc::new(Reading { changes: *changes, began: Instant::now(), list: OnceCell::new() });
        under_way.insert(who, Arc::downgrade(&new));
        new
    }

    fn readings(&self) -> MutexGuard<'_, Readings> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_fresh(&self, began: Instant) -> bool {
        self.lifetime.is_none_or(|lifetime| began.elapsed() < lifetime)
    }

    /// Remembers a list, unless something has changed since its reading began.
    fn keep(&self, who: Uid, list: &Arc<FriendList>, reading: &Reading) {
        let readings = self.readings();
        if readings.changes == reading.changes {
            self.known.insert(who, (reading.began, Arc::clone(list)));
        }
    }

    /// Forgets the lists that rest on what one of each pair has said of the other.
    pub(super) fn forget(&self, pairs: &[(Uid, Uid)]) {
        if pairs.is_empty() {
            return;
        }
        let mut readings = self.readings();
        readings.changes += 1;
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

    /// A list with one friend, as `get` takes it.
    async fn one(friend: Uid) -> Result<FriendList, &'static str> {
        Ok(FriendList { friends: vec![friend], hearing: vec![friend] })
    }

    /// The first friend in the list of `who`, as it is known; an unknown list is read as empty.
    async fn friend_of(lists: &FriendLists, who: Uid) -> Option<Uid> {
        let empty = async { Ok::<_, &str>(FriendList::default()) };
        lists.get(who, empty).await.expect("read").friends.first().copied()
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_known_until_one_of_its_pairs_changes() {
        let lists = FriendLists::new(false);
        lists.get(ANN, one(BOB)).await.expect("read");
        lists.get(CLEO, one(BOB)).await.expect("read");
        tokio::time::advance(LIFETIME * 10).await;
        assert_eq!(friend_of(&lists, ANN).await, Some(BOB));
        lists.forget(&[]);
        assert_eq!(friend_of(&lists, ANN).await, Some(BOB));
        lists.forget(&[(BOB, ANN)]);
        assert_eq!(friend_of(&lists, ANN).await, None);
        assert_eq!(friend_of(&lists, CLEO).await, Some(BOB));
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_together_wait_for_one_reading() {
        let lists = FriendLists::new(false);
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let slow = async {
            gone.await.expect("told to go on");
            one(BOB).await
        };
        let second = async {
            // The first has begun: `join!` polls in order.
            go.send(()).expect("the first waits");
            lists.get(ANN, async { Err("it is read twice") }).await
        };
        let (first, second) = tokio::join!(lists.get(ANN, slow), second);
        assert_eq!(first, second);
        assert_eq!(first.expect("read").friends, [BOB]);
        assert_eq!(lists.readings().under_way.values().filter(|it| it.strong_count() > 0).count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_reads_where_the_reading_fails() {
        let lists = FriendLists::new(false);
        let failing = async {
            tokio::task::yield_now().await;
            Err("no answer")
        };
        let (first, second) = tokio::join!(lists.get(ANN, failing), lists.get(ANN, one(BOB)));
        assert_eq!(first, Err("no answer"));
        assert_eq!(second.expect("read").friends, [BOB]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_was_read_before_a_change_is_not_given_after_it() {
        let lists = FriendLists::new(false);
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let before = async {
            gone.await.expect("told to go on");
            one(BOB).await
        };
        let after = async {
            lists.forget(&[(ANN, CLEO)]);
            let list = lists.get(ANN, one(CLEO)).await;
            go.send(()).expect("the first waits");
            list
        };
        let (before, after) = tokio::join!(lists.get(ANN, before), after);
        assert_eq!(before.expect("read").friends, [BOB], "it was asked for before the change");
        assert_eq!(after.expect("read").friends, [CLEO]);
        assert_eq!(friend_of(&lists, ANN).await, Some(CLEO), "what was read first is not remembered");
    }

    #[tokio::test(start_paused = true)]
    async fn where_others_write_a_list_is_not_known_for_long() {
        let lists = FriendLists::new(true);
        lists.get(ANN, one(BOB)).await.expect("read");
        assert_eq!(friend_of(&lists, ANN).await, Some(BOB));
        tokio::time::advance(LIFETIME).await;
        assert_eq!(friend_of(&lists, ANN).await, None);
    }
}
