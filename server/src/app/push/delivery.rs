//! One push: whether a device is to be told, the claim, and what follows from the answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tracing::warn;

use super::PushParts;
use crate::domain::{Entry, MessageId, PageLimit, RangeQuery, Timestamp};
use crate::push::{DeviceKeys, Endpoint, PushAnswer, PushError};
use crate::store::{PushSubscription, PushTimes, StoreError};

/// The rows of an inbox that are looked at in one go.
const LOOK: PageLimit = PageLimit { rows: 500, bytes: 256 << 10 };
/// A push that was taken and not followed for so long counts as lost: the next row is told again.
const LOST_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// For how long a claim holds: longer than a push and its statement take.
const CLAIM: Duration = Duration::from_secs(45);
/// How soon a push that was not taken is tried again, at first; then after as long as it has failed, up to an hour.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
/// The longest pause that a push service may ask for.
const LONGEST_WISH: Duration = Duration::from_secs(6 * 3_600);
/// After so long it is given up; the next row is told as if nothing had been.
const GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The rows after those that a device has.
enum News {
    /// One of them is for its owner.
    Told,
    /// None is, up to this id; and whether more follow.
    Nothing(MessageId, bool),
}

/// The counter of pushes under way, until it is dropped.
struct UnderWay<'a>(&'a PushParts);

impl<'a> UnderWay<'a> {
    fn new(parts: &'a PushParts) -> UnderWay<'a> {
        parts.counts.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(parts)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.counts.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a device tells its owner of a row.
fn is_told(row: &Entry) -> bool {
    row.content.kind.is_told() && row.content.sender != row.receiver
}

/// How long to wait after an attempt that failed, where all have for `failing`, and the push service wishes a pause. `None`: it is given up.
fn pause_after(failing: Duration, wished: Option<Duration>) -> Option<Duration> {
    let own = failing.clamp(FIRST_PAUSE, LONGEST_PAUSE);
    (failing < GIVE_UP_AFTER).then(|| own.max(wished.unwrap_or_default().min(LONGEST_WISH)))
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    Timestamp(at.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}

impl PushParts {
    /// When pushes may be sent, as of now.
    pub(super) fn times(&self) -> PushTimes {
        let now = self.clock.now();
        let lost_after = i64::try_from(LOST_AFTER.as_millis()).unwrap_or(i64::MAX);
        PushTimes { now, lost_before: Timestamp(now.0.saturating_sub(lost_after)) }
    }

    /// Those of `found` with something to tell, and up to which id; each is claimed. Rows that are for nobody are not looked at again.
    pub(super) async fn claimed(
        &self,
        found: PushSubscription,
        latest: MessageId,
    ) -> Result<Option<(PushSubscription, MessageId)>, StoreError> {
        // A push that counts as lost is repeated for a later row alone.
        if latest <= found.synced.max(found.told_to) || self.devices.is_here(&found.token_hash) {
            return Ok(None);
        }
        match self.news(&found, latest).await? {
            News::Nothing(up_to, more) => {
                self.directory.skip_push(&found, up_to).await?;
                if more {
                    self.pending.add([found.uid]);
                }
                Ok(None)
            }
            News::Told => {
                let times = self.times();
                let is_ours = self.directory.claim_push(&found, times, later(times.now, CLAIM)).await?;
                Ok(is_ours.then_some((found, latest)))
            }
        }
    }

    async fn news(&self, of: &PushSubscription, latest: MessageId) -> Result<News, StoreError> {
        let page = match self.store.tail(of.uid, of.synced, latest, LOOK) {
            Some(page) => page,
            None => {
                let query = RangeQuery::after(of.synced, LOOK.rows).within(LOOK.bytes);
                self.store.range(of.uid, query).await?
            }
        };
        if page.rows.iter().any(is_told) {
            return Ok(News::Told);
        }
        let last = page.rows.last().map_or(latest, |row| row.message_id);
        Ok(News::Nothing(if page.more { last } else { last.max(latest) }, page.more))
    }

    /// Sends a push that was claimed, and keeps what came of it.
    pub(super) async fn send(
        self: Arc<Self>,
        of: PushSubscription,
        to: MessageId,
        _place: OwnedSemaphorePermit,
    ) {
        let under_way = UnderWay::new(&self);
        let kept = match self.outcome(&of, to).await {
            Ok(PushAnswer::Taken) => {
                self.counts.sent.fetch_add(1, Ordering::Relaxed);
                self.directory.push_taken(&of, to, self.clock.now()).await
            }
            Ok(PushAnswer::Gone) => self.forget(&of).await,
            Ok(PushAnswer::NotTaken(status, wished)) => {
                self.tell(&of, &format_args!("it answers {status}"));
                self.not_taken(&of, to, wished).await
            }
            Err(error @ PushError::Inside(_)) => {
                self.tell(&of, &error);
                self.forget(&of).await
            }
            Err(error @ PushError::Unanswered(_)) => {
                self.tell(&of, &error);
                self.not_taken(&of, to, None).await
            }
        };
        drop(under_way);
        if let Err(error) = kept {
            // Its claim ends, and it is sent again; the later one takes the place of this.
            warn!(%error, "what came of a push could not be stored");
        }
    }

    async fn outcome(&self, of: &PushSubscription, to: MessageId) -> Result<PushAnswer, PushError> {
        let keys = DeviceKeys::new(&of.device.p256dh, &of.device.auth);
        match (of.device.endpoint.parse::<Endpoint>(), keys) {
            (Ok(endpoint), Some(keys)) => self.services.push(&endpoint, &keys, to, self.clock.now()).await,
            // Stored under rules that do not hold any more.
            _ => Ok(PushAnswer::Gone),
        }
    }

    async fn forget(&self, of: &PushSubscription) -> Result<(), StoreError> {
        self.counts.forgotten.fetch_add(1, Ordering::Relaxed);
        self.directory.forget_push_endpoint(of).await
    }

    async fn not_taken(
        &self,
        of: &PushSubscription,
        to: MessageId,
        wished: Option<Duration>,
    ) -> Result<(), StoreError> {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        let now = self.clock.now();
        let since = of.failing_since.unwrap_or(now);
        let failing = Duration::from_millis((now.0 - since.0).max(0).unsigned_abs());
        match pause_after(failing, wished) {
            Some(pause) => self.directory.push_not_taken(of, since, later(now, pause)).await,
            None => self.directory.skip_push(of, to).await,
        }
    }

    /// The log says to which push service a push did not get, and nothing by which somebody could send there.
    fn tell(&self, of: &PushSubscription, why: &dyn std::fmt::Display) {
        let Some(left_out) = self.log.pass() else { return };
        let service = of.device.endpoint.parse::<Endpoint>().map_or_else(|_| String::new(), |at| at.origin());
        warn!(uid = %of.uid, service, %why, left_out, "a push was not taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_the_time_that_it_fails_and_end() {
        let seconds = Duration::from_secs;
        let pause = |failing, wished: Option<u64>| pause_after(seconds(failing), wished.map(seconds));
        assert_eq!(pause(0, None), Some(FIRST_PAUSE));
        assert_eq!(pause(100, None), Some(seconds(100)));
        assert_eq!(pause(80_000, None), Some(LONGEST_PAUSE));
        assert_eq!(pause(86_400, None), None);
        assert_eq!(pause(0, Some(120)), Some(seconds(120)));
        assert_eq!(pause(0, Some(1)), Some(FIRST_PAUSE));
        assert_eq!(pause(0, Some(u64::MAX)), Some(LONGEST_WISH));
        let mut failing = Duration::ZERO;
        let mut tries = 0;
        while let Some(pause) = pause_after(failing, None) {
            failing += pause;
            tries += 1;
        }
        assert!((20..50).contains(&tries), "{tries}");
    }
}
