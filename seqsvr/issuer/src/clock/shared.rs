//! The state that the guard and its keeper share: the newest millisecond of the process, the horizon as far as it is durable,
//! the alarm, and counts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::Clock;
use super::options::ClockOptions;
use super::state::{ClockPace, ClockTimes, target};

#[derive(Debug)]
pub(super) struct GuardState {
    pub(super) clock: Clock,
    options: ClockOptions,
    pub(super) floor: u64,
    pace: Mutex<ClockPace>,
    pub(super) latest: AtomicU64,
    pub(super) horizon: AtomicU64,
    pub(super) asked: AtomicBool,
    pub(super) ask: Notify,
    pub(super) moved: Notify,
    pub(super) alarm: AtomicBool,
    pub(super) unwritten: AtomicBool,
    pub(super) closed: AtomicBool,
    pub(super) alarms: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) failed_writes: AtomicU64,
}

impl GuardState {
    /// The state at a start whose earlier runs issued nothing later than `floor`. `is_kept`: the horizon is kept in a file.
    pub(super) fn new(clock: Clock, options: ClockOptions, floor: u64, is_kept: bool) -> Self {
        let pace = ClockPace::new(clock.wall(), clock.boot());
        Self {
            clock,
            options,
            floor,
            pace: Mutex::new(pace),
            latest: AtomicU64::new(floor),
            horizon: AtomicU64::new(if is_kept { floor } else { u64::MAX }),
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
        }
    }

    /// By how much the clock has jumped, if it has and is not believed yet.
    pub(super) fn ahead_at(&self, now: u64) -> Option<u64> {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.ahead(now, self.clock.boot())
    }

    pub(super) fn ahead(&self) -> u64 {
        self.options.ahead.as_millis() as u64
    }

    pub(super) fn pause(&self) -> Duration {
        self.options.ahead / 4
    }

    pub(super) fn known(&self) -> ClockTimes {
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

    pub(super) fn raise_alarm(&self, behind_ms: u64) {
        if !self.alarm.swap(true, Ordering::AcqRel) {
            self.alarms.fetch_add(1, Ordering::Relaxed);
            tracing::error!(behind_ms, "the clock went back; no numbers are issued until it has caught up");
        }
    }
}
