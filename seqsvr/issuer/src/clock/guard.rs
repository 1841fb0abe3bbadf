//! The guard that snowflakes ask before they begin a millisecond. Owns the newest millisecond of the process,
//! the horizon as far as it is durable, and the alarm; a keeper task moves the horizon ahead.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Clock;
use super::file::{HorizonError, HorizonFile};
use super::keeper::HorizonKeeper;
use super::state::{ClockPace, ClockTimes, target};

/// Settings of a [`Guard`].
#[derive(Clone, Debug)]
pub struct ClockOptions {
    /// How far the clock may go back and be waited out instead of refused: up to 1 s. Default 5 ms.
    pub tolerance: Duration,
    /// How far ahead of the clock the horizon is written: 100 ms to 1 h. A run that was cut off leaves up to
    /// this long to wait at the next start. Default 2 s, hence about one sync a second.
    pub ahead: Duration,
    /// How long after the last number the horizon is still moved, so that an occasional number need not wait for
    /// a sync. Default 60 s.
    pub idle: Duration,
}

impl Default for ClockOptions {
    fn default() -> Self {
        Self {
            tolerance: Duration::from_millis(5),
            ahead: Duration::from_secs(2),
            idle: Duration::from_secs(60),
        }
    }
}

/// A setting of the clock guard that is out of its range.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("clock option {name}: {value:?} is not between {least:?} and {most:?}")]
pub struct BadClockOption {
    name: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
}

impl ClockOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    ///
    /// [`BadClockOption`] names the first setting that is out of its range.
    pub fn check(&self) -> Result<(), BadClockOption> {
        let ranges = [
            ("tolerance", self.tolerance, Duration::ZERO, Duration::from_secs(1)),
            ("ahead", self.ahead, Duration::from_millis(100), Duration::from_secs(3_600)),
            ("idle", self.idle, Duration::ZERO, Duration::from_secs(86_400)),
        ];
        for (name, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(BadClockOption { name, value, least, most });
            }
        }
        Ok(())
    }
}

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

#[derive(Debug)]
pub(super) struct GuardState {
    pub(super) clock: Clock,
    options: ClockOptions,
    floor: u64,
    pace: StdMutex<ClockPace>,
    latest: AtomicU64,
    pub(super) horizon: AtomicU64,
    asked: AtomicBool,
    pub(super) ask: Notify,
    pub(super) moved: Notify,
    alarm: AtomicBool,
    pub(super) unwritten: AtomicBool,
    closed: AtomicBool,
    alarms: AtomicU64,
    refused: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) failed_writes: AtomicU64,
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
        let pace = ClockPace::new(clock.wall(), clock.boot());
        let shared = Arc::new(GuardState {
            clock,
            options,
            floor,
            pace: StdMutex::new(pace),
            latest: AtomicU64::new(floor),
            horizon: AtomicU64::new(if file.is_some() { floor } else { u64::MAX }),
            asked: AtomicBool::new(false),
            ask: Notify::new(),
            moved: Notify::new(),
            alarm: AtomicBool::new(false),
            unwritten: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            alarms: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            failed_writes: AtomicU64::new(0),
        });
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

impl GuardState {
    /// By how much the clock has jumped, if it has and is not believed yet.
    fn ahead_at(&self, now: u64) -> Option<u64> {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.ahead(now, self.clock.boot())
    }

    fn ahead(&self) -> u64 {
        self.options.ahead.as_millis() as u64
    }

    pub(super) fn pause(&self) -> Duration {
        self.options.ahead / 4
    }

    fn known(&self) -> ClockTimes {
        ClockTimes {
            latest: self.latest.load(Ordering::Acquire),
            floor: self.floor,
            tolerance: self.options.tolerance.as_millis() as u64,
            ahead: self.ahead(),
        }
    }

    /// Where the horizon is to be written now, if it is time.
    pub(super) fn target(&self) -> Option<u64> {
        let wanted_at = self.latest.load(Ordering::Acquire);
        let horizon = self.horizon.load(Ordering::Acquire);
        let idle = self.options.idle.as_millis() as u64;
        let now = self.clock.wall();
        // A horizon at a wrong time would outlive it.
        if self.ahead_at(now).is_some() {
            return None;
        }
        target(now, horizon, self.ahead(), wanted_at, idle)
    }

    /// Makes a durable horizon count.
    pub(super) fn reached(&self, horizon: u64) {
        self.horizon.store(horizon, Ordering::SeqCst);
        self.asked.store(false, Ordering::Release);
        self.moved.notify_waiters();
    }

    /// Ends the issue of new milliseconds and answers with the newest one.
    pub(super) fn close(&self) -> u64 {
        self.closed.store(true, Ordering::Release);
        self.horizon.store(0, Ordering::SeqCst);
        self.moved.notify_waiters();
        self.latest.load(Ordering::SeqCst)
    }

    /// Raises or ends the alarm by the clock's reading now.
    pub(super) fn observe(&self) {
        let known = self.known();
        let behind_ms = known.behind(self.clock.wall());
        if known.is_alarming(behind_ms) {
            self.raise_alarm(behind_ms);
        } else if behind_ms == 0 && self.alarm.swap(false, Ordering::AcqRel) {
            tracing::info!("the clock has caught up; numbers are issued again");
        }
    }

    fn raise_alarm(&self, behind_ms: u64) {
        if !self.alarm.swap(true, Ordering::AcqRel) {
            self.alarms.fetch_add(1, Ordering::Relaxed);
            tracing::error!(behind_ms, "the clock went back; no numbers are issued until it has caught up");
        }
    }
}
