//! The guard that snowflakes ask before they begin a millisecond. Its knowledge of time is in `shared`; a keeper task moves
//! the horizon ahead.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Clock;
use super::file::{HorizonError, HorizonFile};
use super::keeper::HorizonKeeper;
use super::options::{BadClockOption, ClockOptions};
use super::shared::GuardState;

/// Why a guard could not be opened.
#[derive(Debug, Error)]
pub enum OpenClockError {
    /// A setting is out of its range.
    #[error(transparent)]
    BadOption(#[from] BadClockOption),
    /// The file of the horizon cannot be used.
    #[error(transparent)]
    Horizon(#[from] HorizonError),
}

/// Why no millisecond may begin now; each may pass.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ClockHold {
    /// The clock is a little behind, or the last run's horizon is near: waiting is enough.
    #[error("the clock is {behind_ms} ms behind the last number; wait")]
    Wait {
        /// Milliseconds until it has caught up.
        behind_ms: u64,
    },
    /// The clock went back further than is waited out.
    #[error(
        "the clock is {behind_ms} ms behind the last number, so none is issued until it has caught up; \
         check the time service of this machine"
    )]
    Back {
        /// Milliseconds until it has caught up.
        behind_ms: u64,
    },
    /// The clock is further than the time since the last number allows: for a moment by mistake, or because it was set.
    #[error(
        "the clock jumped {ahead_ms} ms ahead, so no number is issued until it is set back or has run on for a \
         minute; check the time service of this machine"
    )]
    Ahead {
        /// Milliseconds by which it jumped.
        ahead_ms: u64,
    },
    /// The horizon has not been written far enough.
    #[error(
        "the clock file does not cover the current time yet; wait (the log says if the file cannot be written)"
    )]
    Unwritten,
    /// The guard was closed.
    #[error("the clock guard was closed")]
    Closed,
}

/// How the time of this process stands, for health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockHealth {
    /// Numbers can be issued.
    Good,
    /// The alarm: the clock is this many milliseconds behind, and numbers are refused.
    Back {
        /// Milliseconds until it has caught up.
        behind_ms: u64,
    },
    /// The clock jumped ahead by this many milliseconds, and is not believed yet.
    Ahead {
        /// Milliseconds by which it jumped.
        ahead_ms: u64,
    },
    /// The horizon could not be written at the last attempt.
    Unwritten,
}

/// Counts since the guard was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockMetrics {
    /// By how many milliseconds the clock is behind now.
    pub behind_ms: u64,
    /// How often the alarm was raised.
    pub alarms: u64,
    /// Calls that were refused because the clock had gone back.
    pub refused: u64,
    /// Times that the horizon was written, and could not be written.
    pub writes: u64,
    /// Times that the horizon could not be written.
    pub failed_writes: u64,
}

/// Says whether a millisecond may begin. See the module.
#[derive(Debug)]
pub struct Guard {
    shared: Arc<GuardState>,
    stop: CancellationToken,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl Guard {
    /// Opens a guard whose horizon is kept in `file`; without one (for numbers that need not outlive the process,
    /// such as trace ids), a clock that goes back between runs is not noticed.
    ///
    /// # Errors
    ///
    /// [`OpenClockError`]: a setting is out of its range, or the file is damaged, in use or not writable. A clock
    /// that is behind the file's horizon is no error: the guard refuses until it has caught up.
    pub async fn open(
        options: ClockOptions,
        clock: Clock,
        file: Option<&Path>,
    ) -> Result<Arc<Self>, OpenClockError> {
        options.check()?;
        let (file, floor) = match file.map(HorizonFile::open).transpose()? {
            Some((file, floor)) => (Some(file), floor),
            None => (None, 0),
        };
        let shared = Arc::new(GuardState::new(clock, options, floor, file.is_some()));
        shared.observe();
        let stop = CancellationToken::new();
        let keeper = match file {
            Some(file) => {
                let mut keeper = HorizonKeeper::new(file, Arc::clone(&shared), stop.clone());
                keeper.first().await?;
                Some(tokio::spawn(keeper.run()))
            }
            None => None,
        };
        Ok(Arc::new(Self { shared, stop, keeper: Mutex::new(keeper) }))
    }

    /// The clock that the guard reads.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Nothing issued by earlier runs is later than this millisecond; 0 when there was none.
    pub fn floor(&self) -> u64 {
        self.shared.floor
    }

    /// The newest millisecond that was begun, by any generator of the process, or the floor. To be read *before*
    /// the clock, else a thread that begins a millisecond in between looks like a clock that went back.
    pub fn latest(&self) -> u64 {
        self.shared.latest.load(Ordering::Acquire)
    }

    /// Begins the millisecond `now`, if that is safe.
    ///
    /// # Errors
    ///
    /// [`ClockHold`] says what to wait for.
    pub fn begin(&self, now: u64) -> Result<(), ClockHold> {
        let shared = &self.shared;
        if let Some(ahead_ms) = shared.ahead_at(now) {
            return Err(ClockHold::Ahead { ahead_ms });
        }
        // In this order, so that `close` either sees this millisecond or makes the test below fail.
        shared.latest.fetch_max(now, Ordering::SeqCst);
        let horizon = shared.horizon.load(Ordering::SeqCst);
        if now.saturating_add(shared.ahead() / 2) > horizon && !shared.asked.swap(true, Ordering::AcqRel) {
            shared.ask.notify_one();
        }
        if now > horizon {
            let closed = shared.closed.load(Ordering::Acquire);
            return Err(if closed { ClockHold::Closed } else { ClockHold::Unwritten });
        }
        if shared.alarm.load(Ordering::Relaxed) {
            shared.observe();
        }
        Ok(())
    }

    /// Takes note that a reading was `behind_ms` behind the last number, and says how to go on.
    pub fn went_back(&self, behind_ms: u64) -> ClockHold {
        if !self.shared.known().is_alarming(behind_ms) {
            return ClockHold::Wait { behind_ms };
        }
        self.shared.refused.fetch_add(1, Ordering::Relaxed);
        self.shared.raise_alarm(behind_ms);
        ClockHold::Back { behind_ms }
    }

    /// Waits until the horizon has moved, or `patience` is over.
    pub async fn moved(&self, patience: Duration) {
        let moved = self.shared.moved.notified();
        if self.shared.horizon.load(Ordering::SeqCst) < self.shared.clock.wall() {
            let _ = tokio::time::timeout(patience, moved).await;
        }
    }

    /// How the time of this process stands.
    pub fn health(&self) -> ClockHealth {
        let shared = &self.shared;
        let known = shared.known();
        let now = shared.clock.wall();
        let behind_ms = known.behind(now);
        if known.is_alarming(behind_ms) {
            ClockHealth::Back { behind_ms }
        } else if let Some(ahead_ms) = shared.ahead_at(now) {
            ClockHealth::Ahead { ahead_ms }
        } else if shared.unwritten.load(Ordering::Relaxed) {
            ClockHealth::Unwritten
        } else {
            ClockHealth::Good
        }
    }

    /// Counts since the guard was opened.
    pub fn metrics(&self) -> ClockMetrics {
        let shared = &self.shared;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ClockMetrics {
            behind_ms: shared.known().behind(shared.clock.wall()),
            alarms: read(&shared.alarms),
            refused: read(&shared.refused),
            writes: read(&shared.writes),
            failed_writes: read(&shared.failed_writes),
        }
    }

    /// Lets no further millisecond begin and writes the newest one as the horizon, so that the next start has
    /// nothing to wait for. Dropping the guard does the same without waiting for it.
    pub async fn close(&self) {
        self.stop.cancel();
        if let Some(keeper) = self.keeper.lock().await.take()
            && let Err(error) = keeper.await
        {
            tracing::error!(%error, "the task that writes the clock file failed");
        }
        self.shared.close();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
