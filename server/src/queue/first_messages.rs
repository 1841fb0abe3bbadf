//! First messages to strangers: to how many people one account may write in a day who are no friends of it, and with whom it never had a
//! message. Somebody who wrote first, or was written to before, is no stranger.
//!
//! Asked for each message to a person who is no friend, so pairs that were let through are remembered. Rows that programs put into
//! inboxes are not asked.

use std::sync::Arc;

use quick_cache::sync::Cache;

use super::daily::{DailyLimit, Refused};
use super::error::SendError;
use super::permissions::Pair;
use crate::domain::Conversation;
use crate::store::{MessageStore, StoreError};

/// Pairs that are remembered.
const KNOWN: usize = 100_000;

/// A day that does not end.
const ALWAYS: i64 = i64::MAX;

/// Counts first messages.
pub(super) struct FirstMessages {
    limit: DailyLimit,
    /// Until the end of which day a pair is let through.
    through: Cache<Pair, i64>,
}

impl FirstMessages {
    pub(super) fn new(limit: DailyLimit) -> FirstMessages {
        FirstMessages { limit, through: Cache::new(KNOWN) }
    }

    /// Those of these pairs, who are no friends, of which the second may not write to the first. Counts those who never had a message with
    /// the other: a server counts each pair once a day, whatever comes of the message.
    ///
    /// # Errors
    /// When conversations cannot be read.
    pub(super) async fn refused(
        &self,
        store: &Arc<dyn MessageStore>,
        pairs: &[Pair],
    ) -> Result<Vec<(Pair, SendError)>, StoreError> {
        if self.limit.most() == 0 {
            return Ok(Vec::new());
        }
        let today = self.limit.day();
        let is_through = |pair: &Pair| self.through.get(pair).is_some_and(|until| until >= today);
        let new: Vec<Pair> = pairs.iter().copied().filter(|pair| !is_through(pair)).collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let of: Vec<_> = new.iter().map(|(other, who)| (*who, Conversation::User(*other))).collect();
        let known = store.have_messages(&of).await?;
        let mut refused = Vec::new();
        for (pair, is_known) in new.into_iter().zip(known) {
            match if is_known { Ok(ALWAYS) } else { self.count(pair).await } {
                Ok(until) => self.through.insert(pair, until),
                Err(refusal) => refused.push((pair, refusal)),
            }
        }
        Ok(refused)
    }

    async fn count(&self, pair: Pair) -> Result<i64, SendError> {
        match self.limit.count(pair.1, 1).await {
            Ok(counted) => Ok(counted.day),
            Err(Refused::Unavailable) => Err(SendError::Unavailable),
            Err(Refused::TooMany(_)) => Err(SendError::TooManyFirstMessages { most: self.limit.most() }),
        }
    }
}
