//! The lease of a process, which `hold` keeps: asked by snowflakes once a millisecond, kept alive by the keeper task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::cache::{Cache, CacheError};
use super::hold::HolderState;
use super::keeper::MachineKeeper;
use super::options::{BadHolderOption, HolderOptions};
use super::registry::Registry;
use crate::clock::Clock;
use crate::snowflake::{MachineId, Unheld};

/// Why a holder could not be opened. That the registry is away is no reason: the holder goes on asking.
#[derive(Debug, Error)]
pub enum OpenHolderError {
    /// A setting is out of its range.
    #[error(transparent)]
    BadOption(#[from] BadHolderOption),
    /// The instance's file cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// How the machine id of this process stands, for health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineHealth {
    /// An id is held.
    Held {
        /// The id.
        machine: u32,
        /// For how many milliseconds it can still be used without a renewal.
        left_ms: u64,
    },
    /// None is held; the log says why.
    Unheld,
}

/// Counts since the holder was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineMetrics {
    /// For how many milliseconds the id can still be used without a renewal.
    pub left_ms: u64,
    /// Claims and renewals that succeeded.
    pub renewals: u64,
    /// Claims and renewals that failed.
    pub failures: u64,
    /// How often the process got another id than it had.
    pub changes: u64,
}

/// Holds the machine id of this process. See the module.
pub struct Holder {
    shared: Arc<HolderState>,
    stop: CancellationToken,
    keeper: Mutex<Option<JoinHandle<MachineKeeper>>>,
}

impl Holder {
    /// Claims an id for this process: once, within `call_timeout`; if the registry is away, goes on with what the instance's
    /// file holds, or with none, and keeps asking.
    ///
    /// # Errors
    ///
    /// [`OpenHolderError`]: a setting is out of its range, or the instance's file is locked by another process or
    /// cannot be read.
    pub async fn open(
        options: HolderOptions,
        clock: Clock,
        registry: Arc<dyn Registry>,
    ) -> Result<Arc<Self>, OpenHolderError> {
        options.check()?;
        let cache = match &options.folder {
            Some(folder) => Some(Cache::open(folder, &options.instance)?),
            None => None,
        };
        let (cache, cached) = cache.map_or((None, None), |(cache, cached)| (Some(cache), cached));
        let shared = Arc::new(HolderState::new(clock));
        let stop = CancellationToken::new();
        let mut keeper = MachineKeeper::new(options, registry, cache, Arc::clone(&shared), stop.clone());
        keeper.begin(cached).await;
        let keeper = Mutex::new(Some(tokio::spawn(keeper.run())));
        Ok(Arc::new(Self { shared, stop, keeper }))
    }

    /// How the machine id of this process stands.
    pub fn health(&self) -> MachineHealth {
        match self.shared.hold() {
            Some(hold) if self.shared.left(hold) > 0 => {
                MachineHealth::Held { machine: hold.machine, left_ms: self.shared.left(hold) }
            }
            _ => MachineHealth::Unheld,
        }
    }

    /// Whether the last claim found all ids held by living others.
    pub fn is_anothers(&self) -> bool {
        self.shared.exhausted.load(Ordering::Acquire)
    }

    /// Counts since the holder was opened.
    pub fn metrics(&self) -> MachineMetrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MachineMetrics {
            left_ms: self.shared.hold().map_or(0, |hold| self.shared.left(hold)),
            renewals: read(&self.shared.renewals),
            failures: read(&self.shared.failures),
            changes: read(&self.shared.changes),
        }
    }

    /// Gives the id back, as used until `used_until` (what [`Guard::latest`](crate::clock::Guard::latest)
    /// says after the guard was closed). Without this the id becomes free when the lease ends.
    pub async fn close(&self, used_until: u64) {
        self.stop.cancel();
        let Some(keeper) = self.keeper.lock().await.take() else { return };
        let keeper = keeper.await;
        let hold = self.shared.hold();
        self.shared.set(None);
        match keeper {
            Ok(keeper) => keeper.release(hold, used_until).await,
            Err(error) => tracing::error!(%error, "the task that renews the machine id failed"),
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl MachineId for Holder {
    fn at(&self, wall: u64) -> Result<u32, Unheld> {
        let boot = self.shared.clock.boot();
        let allowed = self.shared.hold().map_or(Err(Unheld::Over), |hold| hold.allows(boot, wall));
        if allowed == Err(Unheld::Over) && !self.shared.wants.swap(true, Ordering::AcqRel) {
            self.shared.wanted.notify_one();
        }
        allowed
    }
}
