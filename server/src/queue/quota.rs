//! How much one account may have stored in a day: all rows that it causes, in its own inbox and in others.
//!
//! A day's amount, not one for ever: messages are kept for their receivers, so an account that has reached an amount for ever could do
//! nothing about it. Counted by chunks, so that a message asks nobody: an account takes a chunk, uses it up, and takes the next one.
//! The size of a message is known only when it is decided, so the last one of a day may go beyond the amount.

use std::sync::{Mutex, MutexGuard, PoisonError};

use quick_cache::sync::Cache;

use super::SendError;
use super::daily::{DailyLimit, Refused};
use crate::domain::Uid;

/// Accounts that are remembered.
const KNOWN: usize = 100_000;

/// Chunks of a day. Few, since a shared rate remembers each for a day (`daily`).
pub(super) const CHUNKS: u32 = 32;

/// Counts what accounts have stored today.
pub(super) struct Quota {
    /// In a day.
    kib: u32,
    /// Of chunks.
    limit: DailyLimit,
    /// The day of each account, and the bytes left of its chunks. Locked while an amount is changed: the writers of all queues charge.
    left: Mutex<Cache<Uid, (i64, i64)>>,
}

impl Quota {
    /// `kib` in a day; 0 lifts the limit. `limit` counts [`CHUNKS`].
    pub(super) fn new(kib: u32, limit: DailyLimit) -> Quota {
        Quota { kib, limit, left: Mutex::new(Cache::new(KNOWN)) }
    }

    /// Whether `who` may have more stored.
    ///
    /// # Errors
    /// When it may not, or that cannot be found out.
    pub(super) async fn look(&self, who: Uid) -> Result<(), SendError> {
        if self.kib == 0 {
            return Ok(());
        }
        let left = left_on(&self.left(), self.limit.day(), who);
        if left > 0 {
            return Ok(());
        }
        let chunks = u32::try_from(-left / self.chunk() + 1).unwrap_or(u32::MAX);
        match self.limit.count(who, chunks).await {
            Ok(counted) => {
                self.change(counted.day, who, i64::from(chunks) * self.chunk());
                Ok(())
            }
            Err(Refused::Unavailable) => Err(SendError::Unavailable),
            Err(Refused::TooMany(_)) => Err(SendError::QuotaReached { kib: self.kib }),
        }
    }

    /// So much was stored for `who`.
    pub(super) fn charge(&self, who: Uid, bytes: usize) {
        if self.kib > 0 {
            self.change(self.limit.day(), who, -i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// Bytes.
    fn chunk(&self) -> i64 {
        (i64::from(self.kib) * 1_024 / i64::from(CHUNKS)).max(1)
    }

    fn change(&self, day: i64, who: Uid, by: i64) {
        let left = self.left();
        left.insert(who, (day, left_on(&left, day, who).saturating_add(by)));
    }

    fn left(&self) -> MutexGuard<'_, Cache<Uid, (i64, i64)>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn left_on(left: &Cache<Uid, (i64, i64)>, day: i64, who: Uid) -> i64 {
    left.get(&who).filter(|(of, _)| *of == day).map_or(0, |(_, left)| left)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::domain::{Clock, Timestamp};

    #[tokio::test]
    async fn an_account_stores_so_much_a_day_and_no_more() {
        let (ann, bob) = (Uid(1), Uid(2));
        let now = Arc::new(AtomicI64::new(0));
        let read = Arc::clone(&now);
        let clock = Clock::new(move || Timestamp(read.load(Ordering::Relaxed)));
        // A chunk has a kibibyte.
        let quota = Quota::new(32, DailyLimit::new("chunks", CHUNKS, clock, None));
        quota.look(ann).await.expect("the first chunk");
        quota.charge(ann, 1_023);
        quota.look(ann).await.expect("a byte is left");
        quota.charge(ann, 31 * 1_024);
        quota.look(ann).await.expect("the rest, of which there is a byte");
        quota.charge(ann, 1);
        let refused = quota.look(ann).await.expect_err("nothing is left");
        assert!(matches!(refused, SendError::QuotaReached { kib: 32 }) && !refused.is_retryable());
        quota.look(bob).await.expect("another account");
        now.store(86_400_000, Ordering::Relaxed);
        quota.look(ann).await.expect("another day");
        quota.charge(ann, 33 * 1_024);
        quota.look(ann).await.expect_err("more than a day's at once");
        let lifted = Quota::new(0, DailyLimit::new("chunks", CHUNKS, Clock::new(|| Timestamp(0)), None));
        lifted.charge(ann, usize::MAX);
        lifted.look(ann).await.expect("lifted");
    }
}
