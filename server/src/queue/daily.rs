//! How many of one thing an account may do in a day.
//!
//! Servers of one database count a day together ([`SharedRates`]); one that is alone counts in memory, and a restart begins it anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::domain::{Clock, Uid};
use crate::store::SharedRates;

/// Milliseconds.
const DAY: i64 = 86_400_000;

/// Accounts for which a server that is alone counts at a time.
const REMEMBERED: usize = 100_000;

/// The part of an account's shared rate for a day that one takes. A day gives back less than one, so nobody gets one more.
const OF_ONE: Duration = Duration::from_millis(DAY.cast_unsigned());

/// So many of one thing in a day of UTC, for each account.
pub struct DailyLimit {
    /// The name of the thing; each has a count of its own.
    what: &'static str,
    /// 0 lifts the limit.
    most: u32,
    clock: Clock,
    counts: Counts,
}

/// Where it is counted.
enum Counts {
    /// In memory.
    Alone(Mutex<Today>),
    /// By all servers together.
    Shared(Arc<dyn SharedRates>),
}

/// How many each account has had on a day.
#[derive(Debug, Default)]
struct Today {
    day: i64,
    counts: HashMap<Uid, u32>,
}

/// A count that was taken for an account; it can be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Counted {
    by: Uid,
    /// Since 1970, in UTC.
    pub(super) day: i64,
    how_many: u32,
}

/// Why nothing was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The database does not answer.
    Unavailable,
    /// They would be more than the limit; so long until the next day.
    TooMany(Duration),
}

impl DailyLimit {
    /// Lets each account have `most` of `what` in a day (0: any number). Servers of one database count together, by `rates`.
    pub fn new(
        what: &'static str,
        most: u32,
        clock: Clock,
        rates: Option<Arc<dyn SharedRates>>,
    ) -> DailyLimit {
        let counts = match rates {
            Some(rates) => Counts::Shared(rates),
            None => Counts::Alone(Mutex::default()),
        };
        DailyLimit { what, most, clock, counts }
    }

    /// In a day; 0: any number.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// The day, since 1970 in UTC.
    pub(super) fn day(&self) -> i64 {
        self.clock.now().0.div_euclid(DAY)
    }

    /// Counts `how_many` for an account.
    ///
    /// # Errors
    /// When they are too many for the day, or cannot be counted.
    pub async fn count(&self, by: Uid, how_many: u32) -> Result<Counted, Refused> {
        let now = self.clock.now().0;
        let counted = Counted { by, day: now.div_euclid(DAY), how_many };
        if how_many == 0 || self.most == 0 {
            return Ok(counted);
        }
        // More than the limit would be the first of a caller, which no rate refuses.
        let is_within = how_many <= self.most
            && match &self.counts {
                Counts::Alone(today) => {
                    let mut today = today.lock().unwrap_or_else(PoisonError::into_inner);
                    today.count(counted, self.most)
                }
                Counts::Shared(rates) => rates
                    .take(&self.caller(counted), OF_ONE * how_many, OF_ONE * self.most)
                    .await
                    .map_err(|_| Refused::Unavailable)?
                    .is_none(),
            };
        if is_within {
            return Ok(counted);
        }
        Err(Refused::TooMany(Duration::from_millis((DAY - now.rem_euclid(DAY)).cast_unsigned())))
    }

    /// It was not done after all. Where the database does not answer it stays counted for the day.
    pub async fn give_back(&self, counted: Counted) {
        if counted.how_many == 0 || self.most == 0 {
            return;
        }
        match &self.counts {
            Counts::Alone(today) => {
                today.lock().unwrap_or_else(PoisonError::into_inner).give_back(counted);
            }
            Counts::Shared(rates) => {
                let _ = rates.give_back(&self.caller(counted), OF_ONE * counted.how_many).await;
            }
        }
    }

    /// By what the shared rate of the account and the day is known: a text that begins as that of no other rate.
    fn caller(&self, Counted { by, day, .. }: Counted) -> [u8; 32] {
        Sha256::digest(format!("{} of {by} on day {day}", self.what)).into()
    }
}

impl Today {
    /// Whether there is room for them.
    fn count(&mut self, Counted { by, day, how_many }: Counted, most: u32) -> bool {
        if self.day != day {
            *self = Today { day, counts: HashMap::new() };
        }
        if self.counts.len() >= REMEMBERED && !self.counts.contains_key(&by) {
            self.counts.clear();
        }
        let so_far = self.counts.entry(by).or_default();
        let is_within = so_far.saturating_add(how_many) <= most;
        if is_within {
            *so_far += how_many;
        }
        is_within
    }

    fn give_back(&mut self, Counted { by, day, how_many }: Counted) {
        if let Some(so_far) = self.counts.get_mut(&by).filter(|_| self.day == day) {
            *so_far = so_far.saturating_sub(how_many);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::domain::Timestamp;
    use crate::store::StoreError;

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
    async fn while_nothing_can_be_counted_with_the_others_everything_counted_is_refused_for_the_moment() {
        let clock = Clock::new(|| Timestamp(DAY));
        let limit = DailyLimit::new("tests", 2, clock, Some(Arc::new(Failing)));
        assert_eq!(limit.count(Uid(1), 1).await, Err(Refused::Unavailable));
        let nothing = limit.count(Uid(1), 0).await.expect("nothing to count");
        limit.give_back(nothing).await;
        assert!(matches!(limit.count(Uid(1), 3).await, Err(Refused::TooMany(_))));
    }

    #[tokio::test]
    async fn a_day_begins_anew_and_what_is_given_back_is_there_again() {
        let now = Arc::new(AtomicI64::new(DAY * 3 + 1_000));
        let read = Arc::clone(&now);
        let clock = Clock::new(move || Timestamp(read.load(Ordering::Relaxed)));
        let limit = DailyLimit::new("tests", 2, clock, None);
        let counted = limit.count(Uid(1), 2).await.expect("within the limit");
        let refused = Err(Refused::TooMany(Duration::from_millis(DAY.cast_unsigned() - 1_000)));
        assert_eq!(limit.count(Uid(1), 1).await, refused);
        let _ = limit.count(Uid(2), 1).await.expect("another account");
        limit.give_back(counted).await;
        let counted = limit.count(Uid(1), 2).await.expect("it was given back");
        now.fetch_add(DAY, Ordering::Relaxed);
        let today = limit.count(Uid(1), 2).await.expect("another day");
        limit.give_back(counted).await;
        assert!(limit.count(Uid(1), 1).await.is_err(), "that was yesterday's");
        limit.give_back(today).await;
    }
}
