//! The task that claims and renews the machine id, and writes the instance's file. Owns the way to the registry;
//! started and stopped by the holder.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::cache::{Cache, Cached};
use super::claim::{Claim, ClaimError, claim, release};
use super::hold::{Hold, HolderState};
use super::options::HolderOptions;
use super::registry::{Registry, RegistryError};

pub(super) struct MachineKeeper {
    options: HolderOptions,
    claim: Claim,
    registry: Arc<dyn Registry>,
    cache: Option<Arc<Cache>>,
    shared: Arc<HolderState>,
    stop: CancellationToken,
    /// Whether the last claim failed: what is logged once.
    failing: bool,
}

impl MachineKeeper {
    pub(super) fn new(
        options: HolderOptions,
        registry: Arc<dyn Registry>,
        cache: Option<Cache>,
        shared: Arc<HolderState>,
        stop: CancellationToken,
    ) -> Self {
        let HolderOptions { instance, machines, lease, holder, .. } = options.clone();
        let claim = Claim { instance, holder, machines, lease, asked: None };
        Self { options, claim, registry, cache: cache.map(Arc::new), shared, stop, failing: false }
    }

    fn margin(&self) -> u64 {
        self.options.margin.as_millis() as u64
    }

    /// Takes over what the file holds, as far as it is still good, and asks the registry once.
    pub(super) async fn begin(&mut self, cached: Option<Cached>) {
        if let Some(cached) = cached {
            self.claim.holder = cached.holder;
            let deadline = cached.usable_until(&self.shared.clock, self.margin());
            if let Some(deadline) = deadline.filter(|_| self.claim.machines.contains(&cached.machine)) {
                let Cached { machine, used_until, .. } = cached;
                self.shared.set(Some(Hold { machine, deadline, used_until, not_before: 0 }));
            }
        }
        self.renew().await;
    }

    pub(super) async fn run(mut self) -> Self {
        loop {
            let failing = self.failing;
            let pause = if failing { self.options.retry } else { self.options.renew_every };
            tokio::select! {
                () = self.stop.cancelled() => return self,
                () = tokio::time::sleep(pause) => {}
                // Not while it fails: each refused number would ask again at once.
                () = self.shared.wanted.notified(), if !failing => {}
            }
            self.shared.wants.store(false, Ordering::Release);
            self.renew().await;
        }
    }

    async fn renew(&mut self) {
        let attempt = claim(&*self.registry, &self.shared.clock, &mut self.claim);
        let answer = tokio::time::timeout(self.options.call_timeout, attempt).await.unwrap_or_else(|_| {
            let waited = self.options.call_timeout;
            Err(ClaimError::Registry(RegistryError(format!("no answer within {waited:?}"))))
        });
        self.shared.exhausted.store(matches!(answer, Err(ClaimError::Exhausted(_))), Ordering::Release);
        let before = self.shared.hold();
        let granted = match answer {
            Ok(granted) => granted,
            Err(error) => return self.failed(&error, before),
        };
        let hold = Hold::after(before, granted, self.margin());
        self.shared.set(Some(hold));
        self.shared.renewals.fetch_add(1, Ordering::Relaxed);
        if std::mem::replace(&mut self.failing, false) {
            tracing::info!(machine = hold.machine, "the registry of machine ids answers again");
        }
        match before {
            None => {
                tracing::info!(machine = hold.machine, instance = %self.claim.instance, "machine id claimed")
            }
            Some(before) if before.machine != hold.machine => {
                self.shared.changes.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(from = before.machine, to = hold.machine, "the machine id changed");
            }
            Some(_) => {}
        }
        self.keep(hold, granted.ends_boot).await;
    }

    fn failed(&mut self, error: &ClaimError, before: Option<Hold>) {
        self.shared.failures.fetch_add(1, Ordering::Relaxed);
        let left_ms = before.map_or(0, |hold| self.shared.left(hold));
        if left_ms == 0 && before.is_some() {
            self.shared.set(None);
            tracing::error!(%error, "the lease of the machine id has ended; no snowflakes until it is renewed");
        } else if !self.failing {
            tracing::warn!(%error, left_ms, "the machine id could not be renewed; trying again");
        }
        self.failing = true;
    }

    /// Writes the instance's file. A failure costs only the next start its independence of the registry.
    async fn keep(&self, hold: Hold, boot_end: u64) {
        let Some(cache) = self.cache.clone() else { return };
        let clock = &self.shared.clock;
        let (boot, wall) = (clock.boot(), clock.wall());
        let cached = Cached {
            machine: hold.machine,
            holder: self.claim.holder,
            boot_end,
            boot_name: clock.boot_name(),
            written: wall,
            wall_end: wall.saturating_add(boot_end.saturating_sub(boot)),
            used_until: hold.used_until,
        };
        let written = tokio::task::spawn_blocking(move || cache.write(&cached)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "the file of the machine id could not be written");
        }
    }

    /// Gives the id back. The file keeps the mark of this process, with a lease that is over.
    pub(super) async fn release(self, hold: Option<Hold>, used_until: u64) {
        let Some(hold) = hold else { return };
        // The file first: a lease in it that nobody holds any more could be used by the next start.
        self.keep(hold, self.shared.clock.boot()).await;
        let call = release(&*self.registry, &self.claim, hold.machine, used_until);
        match tokio::time::timeout(self.options.call_timeout, call).await {
            Ok(Ok(())) => tracing::info!(machine = hold.machine, "machine id released"),
            Ok(Err(error)) => tracing::warn!(%error, "the machine id becomes free when its lease ends"),
            Err(_) => {
                tracing::warn!(
                    "the registry does not answer; the machine id becomes free when its lease ends"
                );
            }
        }
    }
}
