//! Whether somebody may put others into groups: what those have set, and how many strangers a day it may be.
//!
//! A stranger is neither a friend nor somebody who has written to the one who adds. `Groups` asks before it makes a group or takes
//! somebody in; who follows an invitation has consented.

use std::sync::Arc;

use crate::domain::{Conversation, Friendship, Kind, PrivacyLevel, Relation, Uid};
use crate::queue::{Counted, DailyLimit, Refused, SendError};
use crate::store::{MessageStore, StoreError};

/// Rows of a conversation among which one of the other person is looked for, the newest first.
const LOOKED_AT: usize = 200;

/// Asks those who are to be put into groups.
#[derive(Clone)]
pub struct Consent {
    store: Arc<dyn MessageStore>,
    /// Of strangers that one account puts into groups.
    limit: Arc<DailyLimit>,
}

impl Consent {
    /// Lets accounts put as many strangers into groups in a day as `limit` says.
    pub fn new(store: Arc<dyn MessageStore>, limit: DailyLimit) -> Consent {
        Consent { store, limit: Arc::new(limit) }
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
            if self.limit.most() > 0 && self.is_stranger(by, uid, friendship).await.map_err(unavailable)? {
                strangers += 1;
                // What is refused in any case is not looked at to its end.
                if strangers > self.limit.most() {
                    break;
                }
            }
        }
        let most = self.limit.most();
        self.limit.count(by, strangers).await.map_err(|refused| match refused {
            Refused::Unavailable => SendError::Unavailable,
            Refused::TooMany(wait) => SendError::TooManyStrangers { most, wait },
        })
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

    /// They were not put into a group after all.
    pub(super) async fn give_back(&self, counted: Counted) {
        self.limit.give_back(counted).await;
    }
}
