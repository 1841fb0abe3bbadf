//! The allocator for the whole uid space inside the caller's process. Owns the sections in memory and the
//! raiser's task; the queues of the chat server call it for every row.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::metrics::Metrics;
use super::section_group::{Means, SectionGroup};
use super::shared::SectionGroupState;
use crate::config::Options;
use crate::error::{NextError, OpenAllocatorError, TryNextError, Unavailable};
use crate::ids::{Epoch, Granted, Uid};
use crate::sequencer::Sequencer;
use crate::store::{Owner, SectionStore};

/// A [`Sequencer`] that serves every uid from this process, over one [`SectionStore`].
///
/// One at a time: opening another one over the same store is a restart, and the first must be shut down or dropped before. The claim
/// fences its raises, but until its next raise it would go on handing out numbers below its ceilings.
///
/// Must be opened within a Tokio runtime. Dropping it stops its task; [`shutdown`](Self::shutdown) also
/// waits for that.
pub struct Embedded {
    group: SectionGroup,
    options: Options,
    raiser: Mutex<Option<JoinHandle<()>>>,
}

impl Embedded {
    /// Claims all sections under a new epoch and loads their ceilings in one sweep (S4). Nothing is written but
    /// the claim; each uid goes on above the ceiling of its section (S3).
    ///
    /// # Errors
    ///
    /// [`OpenAllocatorError::BadOption`]; [`OpenAllocatorError::Shared`] for a store that other processes may use too;
    /// [`OpenAllocatorError::Store`] when the store cannot be used, was written with another `section_size` or `step`, or was
    /// claimed by another process in the same moment.
    pub async fn open(store: Arc<dyn SectionStore>, options: Options) -> Result<Self, OpenAllocatorError> {
        options.check()?;
        if !store.is_exclusive() {
            return Err(OpenAllocatorError::Shared);
        }
        let epoch = store.newest_epoch().await?.next();
        let owner = Owner { epoch, incarnation: options.incarnation };
        let sections = [SectionGroupState::all(&options)];
        let claimed = store.claim(&sections, owner, options.layout()).await?;
        // The raiser says in the log what was lost, and callers are told when they ask.
        let lost = Box::new(|_| {});
        let means = Means { store, options: options.clone(), counters: Arc::default(), lost };
        let (group, raiser) = SectionGroup::begin(means, owner, &sections, &claimed);
        Ok(Self { group, options, raiser: Mutex::new(Some(raiser)) })
    }

    /// The epoch under which every number of this allocator is handed out.
    pub fn epoch(&self) -> Epoch {
        self.group.shared().owner.epoch
    }

    /// Stops handing out numbers, for good, and returns when a raise under way has ended. Later calls are
    /// refused with [`Refusal::Stopped`](crate::Refusal::Stopped).
    pub async fn shutdown(&self) {
        self.group.stop();
        if let Some(raiser) = self.raiser.lock().await.take()
            && let Err(error) = raiser.await
        {
            tracing::error!(%error, "the raiser panicked");
        }
    }

    /// The counters. Sums the touched slots (a few milliseconds for a million uids), so call it for a scrape,
    /// not for a request.
    pub fn metrics(&self) -> Metrics {
        self.group.shared().metrics()
    }

    /// Repeats `attempt` after each round of raises until it no longer would wait, for `patience` and the configured bound at most.
    async fn wait<T>(
        &self,
        patience: Duration,
        mut attempt: impl FnMut() -> Result<T, TryNextError>,
    ) -> Result<T, NextError> {
        let waited = self.options.raise_wait.min(patience);
        let deadline = Instant::now() + waited;
        let mut rounds = self.group.shared().rounds.subscribe();
        loop {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(TryNextError::Final(refusal)) => return Err(refusal.into()),
                Err(TryNextError::WouldWait) => {}
            }
            // The sender lives in `shared`, so only time can end the wait without a round.
            if timeout_at(deadline, rounds.changed()).await.is_err() {
                self.group.shared().counters.gave_up();
                let reason =
                    Cow::Borrowed("the ceiling could not be raised (the log of this process says why)");
                return Err(Unavailable { waited, reason }.into());
            }
        }
    }
}

#[async_trait]
impl Sequencer for Embedded {
    #[inline]
    fn try_next(&self, uid: Uid, count: u32) -> Result<Granted, TryNextError> {
        self.group.shared().take(uid, count)
    }

    async fn next(&self, uid: Uid, count: u32) -> Result<Granted, NextError> {
        self.wait(Duration::MAX, || self.group.shared().take(uid, count)).await
    }

    async fn next_each(&self, uids: &[Uid], patience: Duration) -> Vec<Result<u64, NextError>> {
        let shared = self.group.shared();
        let mut numbers = Vec::with_capacity(uids.len());
        numbers.extend(uids.iter().map_while(|&uid| taken(shared.take(uid, 1))));
        if numbers.len() == uids.len() {
            return numbers;
        }
        let mut waiting: Vec<usize> = (numbers.len()..uids.len()).collect();
        numbers.resize(uids.len(), Ok(0));
        let all = self.wait(patience, || {
            // All that must wait ask for their raises in one pass. A uid that is there twice is not asked about again in it: the
            // raise could come in between, and the later number would be the smaller one.
            let mut passed_over = HashSet::new();
            waiting.retain(|&at| {
                if passed_over.contains(&uids[at]) {
                    return true;
                }
                match taken(shared.take(uids[at], 1)) {
                    Some(number) => numbers[at] = number,
                    None => return passed_over.insert(uids[at]),
                }
                false
            });
            if waiting.is_empty() { Ok(()) } else { Err(TryNextError::WouldWait) }
        });
        if let Err(late) = all.await {
            for at in waiting {
                numbers[at] = Err(late.clone());
            }
        }
        numbers
    }

    async fn current(&self, uid: Uid) -> Result<u64, NextError> {
        Ok(self.group.shared().current(uid).expect("every section is here"))
    }

    async fn advance(&self, uid: Uid, at_least: u64) -> Result<(), NextError> {
        self.wait(Duration::MAX, || self.group.shared().advance(uid, at_least)).await
    }
}

/// The outcome of one take; `None`: it would have to wait.
fn taken(take: Result<Granted, TryNextError>) -> Option<Result<u64, NextError>> {
    match take {
        Ok(granted) => Some(Ok(granted.last)),
        Err(TryNextError::Final(refusal)) => Some(Err(refusal.into())),
        Err(TryNextError::WouldWait) => None,
    }
}
