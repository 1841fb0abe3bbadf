//! Removes rows that have expired, and idempotency records after them: for the whole installation, where it keeps them for a time, and for
//! conversations that have a time of their own.
//!
//! It walks over all inboxes, and over all records, a step at a time, and pauses after each step for four times as long as it took. A step
//! that took long is followed by a smaller one, so that others who write to the tables wait for some milliseconds at most. Owns nothing
//! that lasts: how far an inbox has expired stands with it. Several servers may walk at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::domain::{Clock, Content, Conversation, IdempotencyKey, KEEPS, Keep, Timestamp, Uid};
use crate::log_limit::LogLimit;
use crate::store::{MessageStore, StoreError, unless_corrupt};

/// Between two walks over the rows: a twentieth of the time for which they are kept, within these bounds.
const ROWS_EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3_600));
/// The same of records, of which all are read.
const RECORDS_EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));
/// Between two walks that look for conversations with a time of their own: twenty times as long as the last one took, within these bounds.
const CONVERSATIONS_EVERY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(3_600));
/// Rows that say for how long conversations are kept, of one inbox, which are read at once.
const KEEPS_AT_ONCE: usize = 200;
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
    /// For how long rows are kept; `None`: for good, but for conversations with a time of their own.
    pub kept: Option<Duration>,
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
            let of_all = async {
                let Some(kept) = self.kept else { return };
                tokio::join!(
                    self.walk_again_and_again(Old::Rows(None), kept, ROWS_EVERY),
                    self.walk_again_and_again(Old::Records(None), kept * 9 / 4, RECORDS_EVERY),
                );
            };
            tokio::join!(of_all, self.walk_over_conversations());
        };
        stopping.run_until_cancelled(forever).await;
    }

    async fn walk_again_and_again(&self, old: Old, kept: Duration, (least, most): (Duration, Duration)) {
        let log = LogLimit::default();
        loop {
            let pause = match self.walk(old, kept).await {
                Ok(removed) => {
                    debug!(?old, removed, "what has expired is removed");
                    (kept / 20).clamp(least, most)
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
    async fn walk(&self, mut old: Old, kept: Duration) -> Result<u64, StoreError> {
        let (mut removed, mut step) = (0, STEP.1);
        loop {
            let began = Instant::now();
            let (count, is_done) = self.step(&mut old, kept, step).await?;
            let took = began.elapsed();
            removed += count;
            if is_done {
                return Ok(removed);
            }
            step = next_step(step, took);
            sleep((took * 4).max(LEAST_PAUSE)).await;
        }
    }

    /// Says how much it has removed, and whether the walk is at its end.
    async fn step(&self, old: &mut Old, kept: Duration, limit: usize) -> Result<(u64, bool), StoreError> {
        let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp(self.clock.now().0.saturating_sub(kept));
        match old {
            Old::Rows(after) => {
                let expired = self.store.expire_rows(*after, before, limit).await?;
                *after = expired.after;
                Ok((expired.removed, expired.is_done))
            }
            Old::Records(after) => {
                let expired = self.store.expire_records(*after, before, limit).await?;
                *after = expired.after;
                Ok((expired.removed, expired.is_done))
            }
        }
    }

    async fn walk_over_conversations(&self) {
        let log = LogLimit::default();
        let (least, most) = CONVERSATIONS_EVERY;
        let mut pause = least;
        loop {
            sleep(pause).await;
            let began = Instant::now();
            pause = match self.walk_once_over_conversations().await {
                Ok(removed) => {
                    debug!(removed, "what has expired in conversations with a time of their own is removed");
                    (began.elapsed() * 20).clamp(least, most)
                }
                Err(error) => {
                    if let Some(left_out) = log.pass() {
                        warn!(%error, left_out, "what has expired in conversations cannot be removed; trying again");
                    }
                    AGAIN
                }
            };
        }
    }

    /// Says how much it has removed.
    async fn walk_once_over_conversations(&self) -> Result<u64, StoreError> {
        let (mut removed, mut after) = (0, None);
        loop {
            let began = Instant::now();
            let next = self.store.keeping(after).await?;
            sleep((began.elapsed() * 4).max(LEAST_PAUSE)).await;
            for uid in next.uids {
                removed += unless_corrupt(uid, self.expire_in(uid).await)?.unwrap_or(0);
            }
            if next.is_done {
                return Ok(removed);
            }
            after = next.after;
        }
    }

    /// Removes what has expired in the conversations of `uid` that have a time of their own.
    async fn expire_in(&self, uid: Uid) -> Result<u64, StoreError> {
        let (mut removed, mut key) = (0, String::new());
        // What was said of the conversation that was read last; more may be on the next page.
        let mut said: Option<(Conversation, Vec<Arc<Content>>)> = None;
        loop {
            let page = self.store.newest_under(uid, KEEPS, &key, KEEPS_AT_ONCE).await?;
            let is_last = page.len() < KEEPS_AT_ONCE;
            for (name, row) in page {
                let of = row.conversation();
                match &mut said {
                    Some((same, rows)) if *same == of => rows.push(row.content),
                    _ => {
                        if let Some((of, rows)) = said.replace((of, vec![row.content])) {
                            removed += self.expire_one(uid, of, &rows).await?;
                        }
                    }
                }
                key = name;
            }
            if is_last {
                break;
            }
        }
        if let Some((of, rows)) = said {
            removed += self.expire_one(uid, of, &rows).await?;
        }
        Ok(removed)
    }

    async fn expire_one(&self, uid: Uid, of: Conversation, said: &[Arc<Content>]) -> Result<u64, StoreError> {
        let before = Keep::of(said.iter().map(|row| &**row)).goes_before(self.clock.now());
        let (mut removed, mut step) = (0, STEP.1);
        // Nothing was ever sent before 1970.
        while before > Timestamp(0) {
            let began = Instant::now();
            let done = self.store.expire_conversation(uid, of, before, step).await?;
            removed += done.removed;
            step = next_step(step, began.elapsed());
            sleep((began.elapsed() * 4).max(LEAST_PAUSE)).await;
            if !done.more {
                break;
            }
        }
        Ok(removed)
    }
}

/// How large the step after one that took so long is.
fn next_step(step: usize, took: Duration) -> usize {
    match took {
        took if took > STEP_TAKES => (step / 2).max(STEP.0),
        took if took < STEP_TAKES / 2 => (step * 2).min(STEP.1),
        _ => step,
    }
}
