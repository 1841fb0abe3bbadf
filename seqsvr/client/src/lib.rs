//! The client of a cluster: finds the process that serves a uid by the routing table, asks it, and asks again elsewhere
//! or later within the caller's deadline (S9, S12).
//!
//! ```text
//!  Client ── sets: uid → Set ──▶ set: table → process, retries ──▶ peer: one stream to one process
//!                                  ▲ route_cache: the newest table    outbox: gathers, pairs answers
//!                                                                     reply_dispatcher: checks against `seen`
//! ```
//!
//! The modules without documentation are public for the simulation alone, whose callers go by the same code.

mod cache;
mod config;
#[doc(hidden)]
pub mod error;
mod later;
#[doc(hidden)]
pub mod metrics;
mod operate;
#[doc(hidden)]
pub mod outbox;
mod peer;
#[doc(hidden)]
pub mod reply_dispatcher;
mod retry;
#[doc(hidden)]
pub mod route_cache;
#[doc(hidden)]
pub mod seen;
mod sequencer;
mod set;
mod split;
pub mod status;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub use config::{ANSWER, ClientConfig, ClientConfigError, Policy, SetConfig};
pub use error::{CallError, EachError};
pub use later::{QueueOptions, RetryQueue, Ticket};
pub use metrics::ClientMetrics;
pub use operate::Change;
pub use sequencer::ClusterSequencer;

use metrics::Counters;
use outbox::CallRequest;
use set::{Deadline, SetClient};

use crate::cache::Cache;
use seqsvr_core::ids::{Granted, Uid};
use seqsvr_core::routing::Table;
use seqsvr_rpc::security::Call;

/// Numbers in one call for a range, as the AllocSvrs have it.
const COUNT_PER_CALL: u32 = 100_000;

/// A handle on a cluster; cheap to clone. Must be made and used within a Tokio runtime.
///
/// Calls may run at the same time, thousands of them: those for one number each share frames without waiting for each other.
/// A call that is dropped may still have taken its numbers, which leaves a gap.
#[derive(Clone)]
pub struct Client {
    inner: Arc<ClientInner>,
    patience: Duration,
}

struct ClientInner {
    /// By first uid.
    sets: Vec<(std::ops::RangeInclusive<u32>, SetClient)>,
    uids_per_call: usize,
    counters: Arc<Counters>,
}

impl Client {
    /// A client of the Sets in `config`. Connections are made at the first call of each Set.
    ///
    /// # Errors
    ///
    /// The errors of [`ClientConfig::check`]; certificates, tokens or the shared file cannot be used.
    pub fn new(config: &ClientConfig) -> Result<Self, ClientConfigError> {
        config.check()?;
        let counters = Arc::new(Counters::default());
        let call =
            Call::load(&config.security).map_err(|why| ClientConfigError::Security(why.to_string()))?;
        let call = Arc::new(call);
        let mut sets = Vec::new();
        for set in &config.sets {
            let open = |directory: &PathBuf| Cache::open(directory, &config.cluster, set.number);
            let cache = config.cache_dir.as_ref().map(open).transpose();
            let cache = cache.map_err(|why| ClientConfigError::Cache(why.to_string()))?;
            sets.push((set.uids(), SetClient::new(set, cache, config.answer, &counters, &call)));
        }
        sets.sort_by_key(|(uids, _)| *uids.start());
        let patience = Duration::from_millis(config.call_ms);
        let inner = ClientInner { sets, uids_per_call: config.uids_per_call, counters };
        Ok(Self { inner: Arc::new(inner), patience })
    }

    /// The same client for calls that have this much time.
    #[must_use]
    pub fn within(&self, patience: Duration) -> Self {
        Self { inner: Arc::clone(&self.inner), patience }
    }

    /// Takes `count` numbers for `uid`.
    ///
    /// # Errors
    ///
    /// [`CallError`]; nothing was handed out to anybody else.
    pub async fn next(&self, uid: Uid, count: u32) -> Result<Granted, CallError> {
        if count == 0 || count > COUNT_PER_CALL {
            return Err(CallError::BadCount { asked: count as usize, max: COUNT_PER_CALL as usize });
        }
        self.set(uid)?.next(uid.get(), count, self.deadline()).await
    }

    /// Takes one number for each of `uids`, in their order; a uid that is there twice gets two, the later one larger.
    ///
    /// # Errors
    ///
    /// [`EachError`] when any of them got none, with the numbers of those that did. Sets and sections that are not served take
    /// no others down with them.
    pub async fn next_each(&self, uids: &[Uid]) -> Result<Vec<u64>, EachError> {
        self.many(uids, CallRequest::Each).await
    }

    /// Upper bounds of what was handed out for `uids`, in their order (S2): not smaller than it, perhaps far larger. They are not
    /// the newest committed numbers and must not reach clients (I2).
    ///
    /// # Errors
    ///
    /// [`EachError`], as for [`next_each`](Self::next_each).
    pub async fn current(&self, uids: &[Uid]) -> Result<Vec<u64>, EachError> {
        self.many(uids, CallRequest::Current).await
    }

    /// Makes everything handed out for `uid` from now on larger than `at_least`, durably: for restoring data.
    ///
    /// # Errors
    ///
    /// [`CallError`]; after a retryable one it may have happened.
    pub async fn advance(&self, uid: Uid, at_least: u64) -> Result<(), CallError> {
        self.set(uid)?.advance(uid.get(), at_least, self.deadline()).await
    }

    /// The routing tables known, by uid; `None` for a Set that was not reached yet.
    pub fn tables(&self) -> Vec<Option<Arc<Table>>> {
        self.inner.sets.iter().map(|(_, set)| set.table()).collect()
    }

    /// The counters.
    pub fn metrics(&self) -> ClientMetrics {
        self.inner.counters.snapshot()
    }

    fn deadline(&self) -> Deadline {
        Deadline { at: Instant::now() + self.patience, patience: self.patience }
    }

    fn set(&self, uid: Uid) -> Result<&SetClient, CallError> {
        self.inner.set(uid).map(|index| &self.inner.sets[index].1).ok_or(CallError::NoSet(uid))
    }

    async fn many(&self, uids: &[Uid], make: fn(Arc<[u32]>) -> CallRequest) -> Result<Vec<u64>, EachError> {
        let max = self.inner.uids_per_call;
        let failed = |first| EachError::all(uids.len(), first);
        if uids.is_empty() || uids.len() > max {
            return Err(failed(CallError::BadCount { asked: uids.len(), max }));
        }
        let home = self.inner.set(uids[0]).ok_or_else(|| failed(CallError::NoSet(uids[0])))?;
        let (range, set) = &self.inner.sets[home];
        let deadline = self.deadline();
        let all: Vec<u32> = uids.iter().map(|uid| uid.get()).collect();
        if all.iter().all(|uid| range.contains(uid)) {
            return set.many(all, make, deadline).await;
        }
        // A uid outside every Set refuses the call before anything is taken.
        let mut sets = split::by(&all, |uid| self.inner.set(Uid::new(uid)));
        if let Some(outside) = sets.remove(&None) {
            return Err(failed(CallError::NoSet(uids[outside[0]])));
        }
        let sets = sets.into_iter().filter_map(|(set, part)| Some((set?, part))).collect();
        split::ask(&all, sets, |set, part| self.inner.sets[set].1.many(part, make, deadline)).await
    }
}

impl ClientInner {
    /// The index of the Set that holds `uid`.
    fn set(&self, uid: Uid) -> Option<usize> {
        let after = self.sets.partition_point(|(uids, _)| *uids.start() <= uid.get());
        let index = after.checked_sub(1)?;
        self.sets[index].0.contains(&uid.get()).then_some(index)
    }
}

/// Nothing panics with a lock held in this folder; if it did, the counters in it would still be whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
