//! Whether somebody may put others into groups: by their settings, and by a daily limit on strangers.
//!
//! A stranger is neither a friend nor somebody who has written to the adding person. `Groups` asks before it makes a group or takes
//! somebody in. A guest that follows an invitation has consented.

use std::sync::Arc;

use crate::domain::{PrivacyLevel, Relation, Uid};
use crate::queue::{Counted, DailyLimit, Refused, SendError};
use crate::store::{MessageStore, StoreError};

/// People who are asked at once.
const AT_ONCE: usize = 50;

/// Checks whether people may be put into groups.
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
        let most = self.limit.most();
        let mut strangers = 0;
        for some in people.chunks(AT_ONCE) {
            strangers += self.strangers(by, some).await?;
            // A refusal that is sure needs no look at the others.
            if strangers > most {
                break;
            }
        }
        self.limit.count(by, strangers).await.map_err(|refused| match refused {
            Refused::Unavailable => SendError::Unavailable,
            Refused::TooMany(wait) => SendError::TooManyStrangers { most, wait },
        })
    }

    /// How many of `people` are strangers to `by`, where their number is limited.
    async fn strangers(&self, by: Uid, people: &[Uid]) -> Result<u32, SendError> {
        let unavailable = |_: StoreError| SendError::Unavailable;
        let keys: Vec<_> = people.iter().flat_map(|uid| Relation::keys(*uid, by)).collect();
        let rows = self.store.newest(&keys).await.map_err(unavailable)?;
        let mut others = Vec::new();
        for (uid, rows) in people.iter().zip(rows.chunks(Relation::ROWS)) {
            let rows = rows.iter().map(|row| row.as_ref().map(|row| &*row.content));
            let Relation { is_blocked, privacy, friendship, .. } = Relation::read(*uid, rows);
            if is_blocked {
                return Err(SendError::Blocked);
            }
            if friendship.is_mutual() {
                continue;
            }
            if privacy.groups == PrivacyLevel::Friends {
                return Err(SendError::FriendsAddOnly);
            }
            others.push(*uid);
        }
        if self.limit.most() == 0 || others.is_empty() {
            return Ok(0);
        }
        let heard = self.store.heard_from(by, &others).await.map_err(unavailable)?;
        Ok(heard.into_iter().map(|heard| u32::from(!heard)).sum())
    }

    /// They were not put into a group after all.
    pub(super) async fn give_back(&self, counted: Counted) {
        self.limit.give_back(counted).await;
    }
}
