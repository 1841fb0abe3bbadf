//! The task that moves the horizon ahead of the clock. Owns the file; started and stopped by the guard.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::file::{HorizonError, HorizonFile};
use super::shared::GuardState;

pub(super) struct HorizonKeeper {
    file: Arc<HorizonFile>,
    /// The slot to write next: never the one that holds the newest confirmed horizon.
    slot: u64,
    shared: Arc<GuardState>,
    stop: CancellationToken,
}

impl HorizonKeeper {
    pub(super) fn new(file: HorizonFile, shared: Arc<GuardState>, stop: CancellationToken) -> Self {
        Self { file: Arc::new(file), slot: 0, shared, stop }
    }

    /// Writes the floor into both slots, so that the order of the slots does not matter from here on, and then the
    /// first horizon, unless the clock is behind.
    pub(super) async fn first(&mut self) -> Result<(), HorizonError> {
        let floor = self.shared.horizon.load(Ordering::SeqCst);
        self.write(floor).await?;
        self.write(floor).await?;
        let now = self.shared.clock.wall();
        if now >= floor {
            let horizon = now.saturating_add(4 * self.shared.pause().as_millis() as u64);
            self.write(horizon).await?;
            self.shared.reached(horizon);
        }
        Ok(())
    }

    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = self.shared.ask.notified() => {}
                () = tokio::time::sleep(self.shared.pause()) => {}
            }
            self.shared.observe();
            if let Some(horizon) = self.shared.target() {
                match self.write(horizon).await {
                    Ok(()) => self.shared.reached(horizon),
                    Err(_) => tokio::time::sleep(self.shared.pause() / 5).await,
                }
            }
        }
        let latest = self.shared.close();
        // Into both slots, since the larger one counts. A failure is no error for anybody: the next start waits for
        // the longer horizon instead.
        if self.write(latest).await.is_ok() {
            let _ = self.write(latest).await;
        }
    }

    async fn write(&mut self, horizon: u64) -> Result<(), HorizonError> {
        let (file, slot) = (Arc::clone(&self.file), self.slot);
        let written = tokio::task::spawn_blocking(move || file.write(slot, horizon));
        let written = written.await.unwrap_or_else(|ended| Err(self.file.failed(ended.into())));
        let shared = &self.shared;
        match &written {
            Ok(()) => {
                self.slot = 1 - slot;
                shared.writes.fetch_add(1, Ordering::Relaxed);
                if shared.unwritten.swap(false, Ordering::AcqRel) {
                    tracing::info!("the clock file can be written again");
                }
            }
            Err(error) => {
                shared.failed_writes.fetch_add(1, Ordering::Relaxed);
                if !shared.unwritten.swap(true, Ordering::AcqRel) {
                    tracing::error!(%error, "the clock file cannot be written; no numbers are issued beyond its last time");
                }
            }
        }
        written
    }
}
