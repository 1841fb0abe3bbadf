//! Removes rows that have expired, and idempotency records after them.
//!
//! It walks over all inboxes, and over all records, a step at a time, and pauses after each step for four times as long as it took. A step
//! that took long is followed by a smaller one, so that others who write to the tables wait for some milliseconds at most. Owns nothing
//! that lasts: how far an inbox has expired stands with it. Several servers may walk at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::domain::{Clock, IdempotencyKey, Timestamp, Uid};
use crate::log_limit::LogLimit;
use crate::store::{MessageStore, StoreError};

/// Between two walks over the rows: a twentieth of the time for which they are kept, within these bounds.
const ROWS_EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3_600));
/// The same of records, of which all are read.
const RECORDS_EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));
/// The rows of a step, or the records that it looks at. Fewer would cost more for each, and fall behind where much is sent.
const STEP: (usize, usize) = (100, 500);
/// Steps that take longer become smaller; those that take less than half as long become larger.
const STEP_TAKES: Duration = Duration::from_millis(10);
/// The least pause after a step.
const LEAST_PAUSE: Duration = Duration::from_millis(2);
/// How soon it goes on after the store has failed.
const AGAIN: Duration = Duration::from_secs(5);

/// See the module.
pub struct Retention {
    /// Where the rows are.
    pub store: Arc<dyn MessageStore>,
    /// Compared with when rows were sent.
    pub clock: Clock,
    /// For how long rows are kept.
    pub kept: Duration,
}

/// A walk, over rows or over records, and how far it has come.
#[derive(Clone, Copy, Debug)]
enum Old {
    Rows(Option<Uid>),
    /// They are kept for nine quarters of the time: a row behind a younger one goes after twice the time, and a key must not be used again
    /// before.
    Records(Option<IdempotencyKey>),
}

impl Retention {
    /// Removes what expires until `stopping`.
    pub async fn run(self, stopping: CancellationToken) {
        let forever = async {
            tokio::join!(
                self.walk_again_and_again(Old::Rows(None), ROWS_EVERY),
                self.walk_again_and_again(Old::Records(None), RECORDS_EVERY),
            );
        };
        stopping.run_until_cancelled(forever).await;
    }

    async fn walk_again_and_again(&self, old: Old, (least, most): (Duration, Duration)) {
        let log = LogLimit::default();
        loop {
            let pause = match self.walk(old).await {
                Ok(removed) => {
                    debug!(?old, removed, "what has expired is removed");
                    (self.kept / 20).clamp(least, most)
                }
                Err(error) => {
                    if let Some(left_out) = log.pass() {
                        warn!(%error, left_out, "what has expired cannot be removed; trying again");
                    }
                    AGAIN
                }
            };
            sleep(pause).await;
        }
    }

    /// One walk from there on. Says how much it has removed.
    async fn walk(&self, mut old: Old) -> Result<u64, StoreError> {
        let (mut removed, mut step) = (0, STEP.1);
        loop {
            let began = Instant::now();
            let (count, is_done) = self.step(&mut old, step).await?;
            let took = began.elapsed();
            removed += count;
            if is_done {
                return Ok(removed);
            }
            if took > STEP_TAKES {
                step = (step / 2).max(STEP.0);
            } else if took < STEP_TAKES / 2 {
                step = (step * 2).min(STEP.1);
            }
            sleep((took * 4).max(LEAST_PAUSE)).await;
        }
    }

    /// Says how much it has removed, and whether the walk is at its end.
    async fn step(&self, old: &mut Old, limit: usize) -> Result<(u64, bool), StoreError> {
        let before = |kept: Duration| {
            let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
            Timestamp(self.clock.now().0.saturating_sub(kept))
        };
        match old {
            Old::Rows(after) => {
                let expired = self.store.expire_rows(*after, before(self.kept), limit).await?;
                *after = expired.after;
                Ok((expired.removed, expired.is_done))
            }
            Old::Records(after) => {
                let expired = self.store.expire_records(*after, before(self.kept * 9 / 4), limit).await?;
                *after = expired.after;
                Ok((expired.removed, expired.is_done))
            }
        }
    }
}
