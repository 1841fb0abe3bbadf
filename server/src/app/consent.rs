//! Whether somebody may put others into groups: what those have set, and how many strangers a day it may be.
//!
//! A stranger is neither a friend nor somebody who has written to the one who adds. The count of a day lies in memory, of this server
//! alone. `Groups` asks before it makes a group or takes somebody in; who follows an invitation has consented.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::domain::{Clock, Conversation, Friendship, Kind, PrivacyLevel, Relation, Uid};
use crate::queue::SendError;
use crate::store::{MessageStore, StoreError};

/// Rows of a conversation among which one of the other person is looked for, the newest first.
const LOOKED_AT: usize = 200;

/// Milliseconds.
const DAY: i64 = 86_400_000;

/// Asks those who are to be put into groups.
#[derive(Clone)]
pub struct Consent {
    store: Arc<dyn MessageStore>,
    clock: Clock,
    /// Strangers that one account puts into groups in a day of UTC; 0 lifts the limit.
    most: u32,
    /// Accounts that are counted at the same time.
    remembered: usize,
    counted: Arc<Mutex<Counted>>,
}

/// How many strangers each account has put into groups on a day.
#[derive(Debug, Default)]
struct Counted {
    day: i64,
    strangers: HashMap<Uid, u32>,
}

impl Consent {
    /// Lets an account put `most` strangers into groups in a day (0: any number), and counts so for `remembered` accounts at a time.
    pub fn new(store: Arc<dyn MessageStore>, clock: Clock, most: u32, remembered: usize) -> Consent {
        Consent { store, clock, most, remembered, counted: Arc::default() }
    }

    /// Whether `by` may put all of `people` into a group. Counts the strangers among them, and says how many they are.
    ///
    /// # Errors
    /// When one of them does not want it, when they are too many strangers for today, or nothing can be read.
    pub(super) async fn ask(&self, by: Uid, people: &[Uid]) -> Result<u32, SendError> {
        let mut people: Vec<Uid> = people.iter().copied().filter(|uid| *uid != by).collect();
        people.sort_unstable();
        people.dedup();
        let unavailable = |_: StoreError| SendError::Unavailable;
        let mut strangers = 0;
        let keys: Vec<_> = people.iter().flat_map(|uid| Relation::keys(*uid, by)).collect();
        let rows = self.store.newest(&keys).await.map_err(unavailable)?;
        for (uid, rows) in people.into_iter().zip(rows.chunks(Relation::ROWS)) {
            let rows = rows.iter().map(|row| row.as_ref().map(|row| &*row.content));
            let Relation { is_blocked, privacy, friendship } = Relation::read(uid, rows);
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
        self.count(by, strangers)
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

    fn count(&self, by: Uid, strangers: u32) -> Result<u32, SendError> {
        if strangers == 0 {
            return Ok(0);
        }
        let mut counted = self.today();
        if counted.strangers.len() >= self.remembered && !counted.strangers.contains_key(&by) {
            counted.strangers.clear();
        }
        let so_far = counted.strangers.entry(by).or_default();
        if so_far.saturating_add(strangers) > self.most {
            let left = DAY - self.clock.now().0.rem_euclid(DAY);
            let wait = Duration::from_millis(left.cast_unsigned());
            return Err(SendError::TooManyStrangers { most: self.most, wait });
        }
        *so_far += strangers;
        Ok(strangers)
    }

    /// They were not put into a group after all.
    pub(super) fn give_back(&self, by: Uid, strangers: u32) {
        if let Some(so_far) = self.today().strangers.get_mut(&by) {
            *so_far = so_far.saturating_sub(strangers);
        }
    }

    fn today(&self) -> MutexGuard<'_, Counted> {
        let today = self.clock.now().0.div_euclid(DAY);
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.day != today {
            *counted = Counted { day: today, strangers: HashMap::new() };
        }
        counted
    }
}
