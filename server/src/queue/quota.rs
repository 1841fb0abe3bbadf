//! How much one account may have stored in a day: all rows that it causes, its own and those of others.
//!
//! A day's amount, not one for ever: what was said is kept for those who got it, so an account that has reached an amount for ever could
//! do nothing about it. Counted by parts, so that a message asks nobody: an account takes a part, uses it up, and takes the next one.
//! What one message stores is known only when it is decided, so the last one of a day may go beyond its end.

use quick_cache::sync::Cache;

use super::SendError;
use super::daily::{DailyLimit, Refused};
use crate::domain::Uid;

/// Accounts that are remembered.
const KNOWN: usize = 100_000;

/// KiB that an account takes at a time.
pub(super) const PART_KIB: u32 = 64;

/// The same in bytes.
const PART: i64 = PART_KIB as i64 * 1_024;

/// Counts what accounts have stored today.
pub(super) struct Quota {
    /// Of parts.
    limit: DailyLimit,
    /// What each has left of the parts that it took, and on which day.
    left: Cache<Uid, (i64, i64)>,
}

impl Quota {
    pub(super) fn new(limit: DailyLimit) -> Quota {
        Quota { limit, left: Cache::new(KNOWN) }
    }

    /// Whether `who` may have more stored.
    ///
    /// # Errors
    /// When it may not, or that cannot be found out.
    pub(super) async fn look(&self, who: Uid) -> Result<(), SendError> {
        let left = self.left_on(self.limit.day(), who);
        if left > 0 || self.limit.most() == 0 {
            return Ok(());
        }
        let parts = u32::try_from(-left / PART + 1).unwrap_or(u32::MAX);
        match self.limit.count(who, parts).await {
            Ok(counted) => {
                let left = self.left_on(counted.day, who) + i64::from(parts) * PART;
                self.left.insert(who, (counted.day, left));
                Ok(())
            }
            Err(Refused::Unavailable) => Err(SendError::Unavailable),
            Err(Refused::TooMany(wait)) => {
                let mib = self.limit.most().saturating_mul(PART_KIB) / 1_024;
                Err(SendError::QuotaReached { mib, wait })
            }
        }
    }

    /// So much was stored for `who`.
    pub(super) fn charge(&self, who: Uid, bytes: usize) {
        if self.limit.most() == 0 {
            return;
        }
        let day = self.limit.day();
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.left.insert(who, (day, self.left_on(day, who).saturating_sub(bytes)));
    }

    fn left_on(&self, day: i64, who: Uid) -> i64 {
        self.left.get(&who).filter(|(of, _)| *of == day).map_or(0, |(_, left)| left)
    }
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
        let quota = Quota::new(DailyLimit::new("parts", 32, 10, clock, None));
        let part = usize::try_from(PART).expect("small");
        quota.look(ann).await.expect("the first part");
        quota.charge(ann, part - 1);
        quota.look(ann).await.expect("a byte is left");
        quota.charge(ann, 31 * part);
        quota.look(ann).await.expect("the rest, of which there is a byte");
        quota.charge(ann, 1);
        let refused = quota.look(ann).await.expect_err("nothing is left");
        assert!(matches!(refused, SendError::QuotaReached { mib: 2, .. }), "{refused}");
        quota.look(bob).await.expect("another account");
        now.store(86_400_000, Ordering::Relaxed);
        quota.look(ann).await.expect("another day");
        quota.charge(ann, 33 * part);
        quota.look(ann).await.expect_err("more than a day's at once");
        let lifted = Quota::new(DailyLimit::new("parts", 0, 10, Clock::new(|| Timestamp(0)), None));
        lifted.charge(ann, usize::MAX);
        lifted.look(ann).await.expect("lifted");
    }
}
