//! First messages to strangers: how many people one account may write to in a day who are no friends of it, and with whom it never
//! had a message. Who was written to once is no stranger any more, and neither is who wrote first.
//!
//! Asked for each message to a person who is no friend, so pairs that were let through are remembered.

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use quick_cache::sync::Cache;

use super::daily::{DailyLimit, Refused};
use super::error::SendError;
use super::permissions::Pair;
use crate::domain::{Conversation, Kind};
use crate::store::{MessageStore, StoreError};

/// Pairs that are remembered.
const KNOWN: usize = 100_000;

/// Conversations that are looked at together.
const AT_ONCE: usize = 8;

/// Rows of a conversation among which a message is looked for, the newest first: more than two people can make without one.
const LOOKED_AT: usize = 16;

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

    /// Whether the second of each of these pairs, who are no friends, may write to the first, in order. Counts those who never had a
    /// message with the other: each pair once a day, whatever comes of the message.
    ///
    /// # Errors
    /// When conversations cannot be read.
    pub(super) async fn look(
        &self,
        store: &Arc<dyn MessageStore>,
        pairs: &[Pair],
    ) -> Result<Vec<Result<(), SendError>>, StoreError> {
        if self.limit.most() == 0 {
            return Ok(vec![Ok(()); pairs.len()]);
        }
        let today = self.limit.day();
        let looks = pairs.iter().copied().map(|pair: Pair| async move {
            if self.through.get(&pair).is_some_and(|until| until >= today) {
                return Ok::<bool, StoreError>(true);
            }
            let (other, who) = pair;
            let page = store.conversation(who, Conversation::User(other), None, LOOKED_AT).await?;
            let is_known = page.rows.iter().any(|row| is_of_messages(row.content.kind));
            if is_known {
                self.through.insert(pair, ALWAYS);
            }
            Ok(is_known)
        });
        let known: Vec<bool> = stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
        let mut answers = Vec::with_capacity(pairs.len());
        for (&pair, is_known) in pairs.iter().zip(known) {
            answers.push(if is_known { Ok(()) } else { self.count(pair).await });
        }
        Ok(answers)
    }

    async fn count(&self, pair: Pair) -> Result<(), SendError> {
        match self.limit.count(pair.1, 1).await {
            Ok(counted) => {
                self.through.insert(pair, counted.day);
                Ok(())
            }
            Err(Refused::Unavailable) => Err(SendError::Unavailable),
            Err(Refused::TooMany(wait)) => {
                Err(SendError::TooManyFirstMessages { most: self.limit.most(), wait })
            }
        }
    }
}

/// Whether there is a row of this kind only where there is, or was, a message.
fn is_of_messages(kind: Kind) -> bool {
    !matches!(kind, Kind::Friend | Kind::Setting | Kind::App)
}
