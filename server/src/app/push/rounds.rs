//! The work of each second: how far devices have come is kept, and those with something to tell get their push.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::devices::Come;
use super::{Push, PushParts};
use crate::domain::{MessageId, Timestamp, Uid};
use crate::log_limit::LogLimit;
use crate::store::{PushSubscription, StoreError};

/// Between two rounds. A device that follows its socket has the rows before.
const ROUND: Duration = Duration::from_secs(1);
/// Rounds between two times at which the directory learns how far connected devices have come.
const KEEP_EVERY: u64 = 60;
/// For how long another server believes that a device is connected here: more than twice as long.
const LIVE: i64 = 150_000;
/// Rounds between two questions whether anybody is subscribed.
const ASK_EVERY: u64 = 30;
/// Rounds between two looks for pushes that have to be tried again.
const AGAIN_EVERY: u64 = 5;
/// Rounds until all devices are looked at after a start: those that were connected are back by then.
const SWEEP_AFTER: u64 = 10;
/// Rounds between two such looks: for what a server has not told that has died.
const SWEEP_EVERY: u64 = 300;
/// Devices of one page of it, and of one look for repeated pushes.
const PAGE: usize = 500;
/// People of one question, and their devices: an account has at most 100 sessions.
const PEOPLE: usize = 100;
const DEVICES: usize = 10_000;
/// Devices of one transaction.
const KEPT_AT_ONCE: usize = 1_000;
/// Pushes under way at a time.
const MOST_UNDER_WAY: usize = 64;

/// The state between rounds.
struct Rounds {
    parts: Arc<PushParts>,
    number: u64,
    /// Where a look at all devices has come to.
    sweep: Option<[u8; 32]>,
    sending: JoinSet<()>,
    places: Arc<Semaphore>,
    log: LogLimit,
}

impl Push {
    /// Sends pushes until `stopping`. One that is under way then is sent again after the next start, if its answer did not come.
    pub async fn run(self, stopping: CancellationToken) {
        let Some(parts) = self.0 else { return };
        let mut rounds = Rounds {
            parts,
            number: 0,
            sweep: None,
            sending: JoinSet::new(),
            places: Arc::new(Semaphore::new(MOST_UNDER_WAY)),
            log: LogLimit::default(),
        };
        let forever = async {
            let mut ticks = interval(ROUND);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Err(error) = rounds.round().await
                    && let Some(left_out) = rounds.log.pass()
                {
                    warn!(%error, left_out, "pushes wait for storage");
                }
            }
        };
        stopping.run_until_cancelled(forever).await;
    }

    /// Keeps how far the devices have come that were connected to the end. No connection is left.
    pub async fn finish(&self) {
        let Some(parts) = &self.0 else { return };
        if let Err(error) = parts.keep_left().await {
            warn!(%error, "devices may get a push for what they have");
        }
    }
}

impl Rounds {
    async fn round(&mut self) -> Result<(), StoreError> {
        let number = self.number;
        self.number += 1;
        while self.sending.try_join_next().is_some() {}
        let parts = Arc::clone(&self.parts);
        parts.keep_left().await?;
        parts.keep_here(number % KEEP_EVERY == KEEP_EVERY - 1).await?;
        if number.is_multiple_of(ASK_EVERY) {
            let before = parts.pending.subscriptions();
            parts.pending.learn(parts.directory.has_push_subscriptions().await?, before);
        }
        if number % SWEEP_EVERY == SWEEP_AFTER {
            self.sweep.get_or_insert([0; 32]);
        }
        let (people, more) = parts.pending.take();
        if more {
            self.sweep = Some([0; 32]);
        }
        for (at, some) in people.chunks(PEOPLE).enumerate() {
            if let Err(error) = self.look(some).await {
                parts.pending.add(people[at * PEOPLE..].iter().copied());
                return Err(error);
            }
        }
        if number.is_multiple_of(AGAIN_EVERY) {
            let again = parts.directory.to_push_again(parts.times(), PAGE).await?;
            self.tell(again).await?;
        }
        if let Some(after) = self.sweep {
            let page = parts.directory.to_push_after(&after, parts.times(), PAGE).await?;
            self.sweep = page.last().filter(|_| page.len() == PAGE).map(|last| last.token_hash);
            self.tell(page).await?;
        }
        Ok(())
    }

    async fn look(&mut self, people: &[Uid]) -> Result<(), StoreError> {
        let found = self.parts.directory.to_push(people, self.parts.times(), DEVICES).await?;
        self.tell(found).await
    }

    /// Sends each of these devices a push, if it is to be told. Waits where many are under way.
    async fn tell(&mut self, found: Vec<PushSubscription>) -> Result<(), StoreError> {
        if found.is_empty() {
            return Ok(());
        }
        let people: Vec<Uid> = found.iter().map(|each| each.uid).collect();
        let latest: Vec<MessageId> = self.parts.store.latest_ids(&people).await?;
        for (each, latest) in found.into_iter().zip(latest) {
            let place = Arc::clone(&self.places).acquire_owned().await.expect("it is never closed");
            if let Some((device, to)) = self.parts.claimed(each, latest).await? {
                self.sending.spawn(Arc::clone(&self.parts).send(device, to, place));
            }
        }
        Ok(())
    }
}

impl PushParts {
    /// Keeps how far the devices have come that have left. Rows that have come for them since are to be told.
    async fn keep_left(&self) -> Result<(), StoreError> {
        let left = self.devices.take_left();
        let kept = self.keep(&left, Timestamp(0)).await;
        match kept {
            Ok(()) => self.pending.add(left.iter().map(|come| come.uid)),
            Err(_) => self.devices.put_back(left),
        }
        kept
    }

    /// Keeps how far those have come that are connected; `all`: that is due. Other servers hear of it at once, to leave them alone.
    async fn keep_here(&self, all: bool) -> Result<(), StoreError> {
        let (come, until) = match (self.is_shared, all) {
            (true, true) => (self.devices.take_moved(true), Timestamp(self.clock.now().0 + LIVE)),
            (true, false) => (self.devices.take_new(), Timestamp(self.clock.now().0 + LIVE)),
            (false, true) => (self.devices.take_moved(false), Timestamp(0)),
            (false, false) => return Ok(()),
        };
        self.keep(&come, until).await
    }

    async fn keep(&self, come: &[Come], live_until: Timestamp) -> Result<(), StoreError> {
        for some in come.chunks(KEPT_AT_ONCE) {
            let devices: Vec<_> = some.iter().map(|come| (come.token_hash, come.synced)).collect();
            self.directory.devices_synced(&devices, live_until).await?;
        }
        Ok(())
    }
}
