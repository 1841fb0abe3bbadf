//! Whether somebody may put others into groups: what those have set, and how many strangers a day it may be.
//!
//! A stranger is neither a friend nor somebody who has written to the one who adds. Servers of one database count a day's strangers
//! together ([`SharedRates`]); one that is alone counts in memory. `Groups` asks before it makes a group or takes somebody in; who
//! follows an invitation has consented.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::domain::{Clock, Conversation, Friendship, Kind, PrivacyLevel, Relation, Uid};
use crate::queue::SendError;
use crate::store::{MessageStore, SharedRates, StoreError};

/// Rows of a conversation among which one of the other person is looked for, the newest first.
const LOOKED_AT: usize = 200;

/// Milliseconds.
const DAY: i64 = 86_400_000;

/// What one stranger takes of the shared rate of an account and a day. Over the day less than that comes back, which is not one more.
const OF_ONE: Duration = Duration::from_millis(DAY.cast_unsigned());

/// Asks those who are to be put into groups.
#[derive(Clone)]
pub struct Consent {
    store: Arc<dyn MessageStore>,
    clock: Clock,
    /// Strangers that one account puts into groups in a day of UTC; 0 lifts the limit.
    most: u32,
    counts: Counts,
}

/// Where strangers are counted.
#[derive(Clone)]
enum Counts {
    /// In memory, for so many accounts at the same time.
    Alone { remembered: usize, today: Arc<Mutex<Today>> },
    /// By all servers together.
    Shared(Arc<dyn SharedRates>),
}

/// How many strangers each account has put into groups on a day.
#[derive(Debug, Default)]
struct Today {
    day: i64,
    strangers: HashMap<Uid, u32>,
}

/// Strangers whom somebody is about to put into a group, and who are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Counted {
    by: Uid,
    /// Since 1970, in UTC.
    day: i64,
    strangers: u32,
}

impl Counted {
    /// By what the shared rate of the account and the day is known: a text that begins as that of no other rate.
    fn caller(&self) -> [u8; 32] {
        Sha256::digest(format!("strangers of {} on day {}", self.by, self.day)).into()
    }

    /// What they take of it.
    fn interval(&self) -> Duration {
        OF_ONE * self.strangers
    }
}

impl Consent {
    /// Lets an account put `most` strangers into groups in a day (0: any number), and counts so for `remembered` accounts at a time.
    pub fn new(store: Arc<dyn MessageStore>, clock: Clock, most: u32, remembered: usize) -> Consent {
        Consent::beside(store, clock, most, remembered, None)
    }

    /// The same, where other servers count with this one by `rates`.
    pub fn beside(
        store: Arc<dyn MessageStore>,
        clock: Clock,
        most: u32,
        remembered: usize,
        rates: Option<Arc<dyn SharedRates>>,
    ) -> Consent {
        let counts = match rates {
            Some(rates) => Counts::Shared(rates),
            None => Counts::Alone { remembered, today: Arc::default() },
        };
        Consent { store, clock, most, counts }
    }

    /// Whether `by` may put all of `people` into a group. Counts the strangers among them.
    ///
    /// # Errors
    /// When one of them does not want it, when they are too many strangers for today, or nothing can be read.
    pub(super) async fn ask(&self, by: Uid, people: &[Uid]) -> Result<Counted, SendError> {
        let mut people: Vec<Uid> = people.iter().copied().filter(|uid| *uid != by).collect();
        people.sort_unstable();
        people.dedup();
        let unavailable = |_: StoreError| SendError::Unavailable;
        let mut strangers = 0;
        let keys: Vec<_> = people.iter().flat_map(|uid| Relation::keys(*uid, by)).collect();
        let rows = self.store.newest(&keys).await.map_err(unavailable)?;
        for (uid, rows) in people.into_iter().zip(rows.chunks(Relation::ROWS)) {
            let rows = rows.iter().map(|row| row.as_ref().map(|row| &*row.content));
            let Relation { is_blocked, privacy, friendship, .. } = Relation::read(uid, rows);
            if is_blocked {
                return Err(SendError::Blocked);
            }
            if privacy.groups == PrivacyLevel::Friends && !friendship.is_mutual() {
                return Err(SendError::FriendsAddOnly);
            }
            if self.most > 0 && self.is_stranger(by, uid, friendship).await.map_err(unavailable)? {
                strangers += 1;
                // What is refused in any case is not looked at to its end.
                if strangers > self.most {
                    break;
                }
            }
        }
        self.count(by, strangers).await
    }

    /// Whether two people have nothing to do with each other: they are no friends, and `other` has not written to `by`.
    async fn is_stranger(&self, by: Uid, other: Uid, friendship: Friendship) -> Result<bool, StoreError> {
        if friendship.is_mutual() {
            return Ok(false);
        }
        let page = self.store.conversation(by, Conversation::User(other), None, LOOKED_AT).await?;
        let is_theirs = |kind| matches!(kind, Kind::Message | Kind::Recalled);
        Ok(!page.rows.iter().any(|row| row.content.sender == other && is_theirs(row.content.kind)))
    }

    async fn count(&self, by: Uid, strangers: u32) -> Result<Counted, SendError> {
        let now = self.clock.now().0;
        let counted = Counted { by, day: now.div_euclid(DAY), strangers };
        if strangers == 0 {
            return Ok(counted);
        }
        // More than the limit would be the first of a caller, which no rate refuses.
        let is_within = strangers <= self.most
            && match &self.counts {
                Counts::Alone { remembered, today } => {
                    Today::of(today, counted.day).count(counted, self.most, *remembered)
                }
                Counts::Shared(rates) => rates
                    .take(&counted.caller(), counted.interval(), OF_ONE * self.most)
                    .await
                    .map_err(|_| SendError::Unavailable)?
                    .is_none(),
            };
        if is_within {
            return Ok(counted);
        }
        let wait = Duration::from_millis((DAY - now.rem_euclid(DAY)).cast_unsigned());
        Err(SendError::TooManyStrangers { most: self.most, wait })
    }

    /// They were not put into a group after all. Where the database does not answer they stay counted for the day.
    pub(super) async fn give_back(&self, counted: Counted) {
        if counted.strangers == 0 {
            return;
        }
        match &self.counts {
            Counts::Alone { today, .. } => {
                let today = &mut *today.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(so_far) =
                    today.strangers.get_mut(&counted.by).filter(|_| today.day == counted.day)
                {
                    *so_far = so_far.saturating_sub(counted.strangers);
                }
            }
            Counts::Shared(rates) => {
                let _ = rates.give_back(&counted.caller(), counted.interval()).await;
            }
        }
    }
}

impl Today {
    fn of(today: &Mutex<Today>, day: i64) -> MutexGuard<'_, Today> {
        let mut today = today.lock().unwrap_or_else(PoisonError::into_inner);
        if today.day != day {
            *today = Today { day, strangers: HashMap::new() };
        }
        today
    }

    /// Whether there is room for them.
    fn count(&mut self, Counted { by, strangers, .. }: Counted, most: u32, remembered: usize) -> bool {
        if self.strangers.len() >= remembered && !self.strangers.contains_key(&by) {
            self.strangers.clear();
        }
        let so_far = self.strangers.entry(by).or_default();
        let is_within = so_far.saturating_add(strangers) <= most;
        if is_within {
            *so_far += strangers;
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::domain::Timestamp;
    use crate::store::memory::MemoryStore;

    /// A database that does not answer.
    struct Failing;

    #[async_trait]
    impl SharedRates for Failing {
        async fn take(&self, _: &[u8; 32], _: Duration, _: Duration) -> Result<Option<Duration>, StoreError> {
            Err(StoreError::unavailable("as the test says"))
        }

        async fn give_back(&self, _: &[u8; 32], _: Duration) -> Result<(), StoreError> {
            Err(StoreError::unavailable("as the test says"))
        }
    }

    #[tokio::test]
    async fn while_nothing_can_be_counted_with_the_others_strangers_are_refused_for_the_moment() {
        let clock = Clock::new(|| Timestamp(DAY));
        let store = Arc::new(MemoryStore::new());
        let consent = Consent::beside(store, clock, 2, 10, Some(Arc::new(Failing)));
        let refused = consent.ask(Uid(1), &[Uid(2)]).await.expect_err("nothing was counted");
        assert!(matches!(refused, SendError::Unavailable) && refused.is_retryable(), "{refused}");
        let nobody = consent.ask(Uid(1), &[]).await.expect("nobody to count");
        consent.give_back(nobody).await;
        let more = consent.ask(Uid(1), &[Uid(2), Uid(3), Uid(4)]).await;
        assert!(matches!(more, Err(SendError::TooManyStrangers { most: 2, .. })), "{more:?}");
    }
}
