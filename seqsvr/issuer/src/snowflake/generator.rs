//! The lock-free shell around the format: one atomic last id, advanced by compare and swap.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;

use super::layout::{IdParts, IdStep, Layout};
use crate::Range;
use crate::clock::{ClockHealth, ClockHold, Guard};

/// The machine id of this process in the ids, and until when it holds. Asked once a millisecond.
pub trait MachineId: Send + Sync {
    /// The machine id with which ids of the millisecond `wall` (since 1970) may be made now.
    ///
    /// # Errors
    ///
    /// [`Unheld`] while there is none.
    fn at(&self, wall: u64) -> Result<u32, Unheld>;
}

/// Why there is no machine id now.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unheld {
    /// The lease is over, or none was granted yet.
    #[error(
        "no machine id is held, because its lease has ended; issuing continues once the registry can be reached"
    )]
    Over,
    /// An earlier holder of the same machine id may have used this time.
    #[error("an earlier holder of the machine id may have used the next {wait_ms} ms; wait")]
    Used {
        /// Milliseconds until the time is certainly unused.
        wait_ms: u64,
    },
}

/// Why no id was made; nothing was taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NotNow {
    /// All ids of this millisecond are taken: the next one begins within a millisecond.
    #[error("all ids of this millisecond are taken; wait for the next")]
    Full,
    /// The clock does not allow it.
    #[error(transparent)]
    Clock(#[from] ClockHold),
    /// The machine id does not allow it.
    #[error(transparent)]
    Machine(#[from] Unheld),
    /// The holder has a machine id that is none of the format's; this does not pass.
    #[error("machine id {0} does not fit the format; give the holder as many machines as the format has")]
    Misfit(u32),
    /// The time bits are used up; this does not pass.
    #[error("the format's time bits are used up; configure a later epoch or more bits for new tags")]
    RanOut,
}

/// Settings of a [`Snowflake`].
#[derive(Clone, Debug)]
pub struct SnowflakeOptions {
    /// How long a call waits for the clock, its file or the machine id before it is refused. Default 2 s.
    pub patience: Duration,
}

impl Default for SnowflakeOptions {
    fn default() -> Self {
        Self { patience: Duration::from_secs(2) }
    }
}

/// Counts since the generator was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnowflakeMetrics {
    /// Ids that were made.
    pub issued: u64,
    /// How often a call found all ids of a millisecond taken.
    pub full: u64,
    /// Milliseconds until the time bits run out.
    pub runs_out_in_ms: u64,
}

/// Makes the snowflakes of one tag.
pub struct Snowflake {
    layout: Layout,
    pub(super) options: SnowflakeOptions,
    pub(super) guard: Arc<Guard>,
    machine: Arc<dyn MachineId>,
    /// The last id, or the end of a millisecond in which no more ids may be made. Only grows.
    last: AtomicU64,
    /// The first `last`: the end of the ids that earlier runs may have issued.
    start: u64,
    /// Ids of the milliseconds before the one of `last`.
    settled: AtomicU64,
    full: AtomicU64,
}

impl Snowflake {
    /// Makes a generator that continues after everything that earlier runs may have issued.
    pub fn new(
        layout: Layout,
        options: SnowflakeOptions,
        guard: Arc<Guard>,
        machine: Arc<dyn MachineId>,
    ) -> Self {
        let start = layout.end_of(guard.floor());
        let (last, settled, full) = (AtomicU64::new(start), AtomicU64::new(0), AtomicU64::new(0));
        Self { layout, options, guard, machine, last, start, settled, full }
    }

    /// The format.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Takes an id apart; see [`Layout::decode`].
    pub fn decode(&self, id: u64) -> Option<IdParts> {
        self.layout.decode(id)
    }

    /// Takes one id if there is one now.
    ///
    /// # Errors
    ///
    /// [`NotNow`] says what to wait for.
    pub fn try_next(&self) -> Result<u64, NotNow> {
        self.try_take(1).map(|range| range.first)
    }

    /// Takes up to `count` (1 or more) adjacent ids of one millisecond: as many as are left in it.
    ///
    /// # Errors
    ///
    /// [`NotNow`] says what to wait for.
    pub fn try_take(&self, count: u64) -> Result<Range, NotNow> {
        loop {
            // Both before the clock: a reading older than these would look as if the clock had gone back.
            let newest = self.guard.latest();
            let before = self.last.load(Ordering::Acquire);
            let now = self.guard.clock().wall();
            let step = self.layout.step(before, now, count);
            let (first, last) = match step {
                IdStep::Within { first, last } => (first, last),
                IdStep::Begin => self.begin(newest, now, count)?,
                IdStep::Full => {
                    self.full.fetch_add(1, Ordering::Relaxed);
                    return Err(NotNow::Full);
                }
                IdStep::Behind { milliseconds } => return Err(self.guard.went_back(milliseconds).into()),
                IdStep::RanOut => return Err(NotNow::RanOut),
            };
            // The last id is the whole state: the thread that advances it owns the ids between.
            if self.last.compare_exchange_weak(before, last, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                if step == IdStep::Begin {
                    self.settled.fetch_add(self.used(before), Ordering::Relaxed);
                }
                return Ok(Range { first, last });
            }
        }
    }

    /// How many ids were made in the millisecond of `last`. Counted here and once a millisecond, not with each id.
    fn used(&self, last: u64) -> u64 {
        if last == self.start { 0 } else { self.layout.sequence(last) + 1 }
    }

    #[cold]
    fn begin(&self, newest: u64, now: u64, count: u64) -> Result<(u64, u64), NotNow> {
        // Another tag of the process is ahead: the clock went back although this tag has not used the time yet.
        if newest > now {
            return Err(self.guard.went_back(newest - now).into());
        }
        let machine = self.machine.at(now)?;
        if machine >= self.layout.machines() {
            return Err(NotNow::Misfit(machine));
        }
        self.guard.begin(now)?;
        Ok(self.layout.begin(now, machine, count))
    }

    /// Takes one id, spinning through the rest of a full millisecond: for callers without a runtime.
    ///
    /// # Errors
    ///
    /// [`NotNow`], but for [`NotNow::Full`].
    pub fn next(&self) -> Result<u64, NotNow> {
        loop {
            match self.try_next() {
                Err(NotNow::Full) => std::hint::spin_loop(),
                answer => return answer,
            }
        }
    }

    /// Why this generator cannot make ids now; `None`: it can.
    pub fn trouble(&self) -> Option<String> {
        let guard = &self.guard;
        let held = match guard.health() {
            ClockHealth::Good => None,
            ClockHealth::Back { behind_ms } => Some(ClockHold::Back { behind_ms }),
            ClockHealth::Ahead { ahead_ms } => Some(ClockHold::Ahead { ahead_ms }),
            ClockHealth::Unwritten => Some(ClockHold::Unwritten),
        };
        if let Some(held) = held {
            return Some(held.to_string());
        }
        self.machine.at(guard.clock().wall()).err().map(|unheld| unheld.to_string())
    }

    /// Counts since the generator was made.
    pub fn metrics(&self) -> SnowflakeMetrics {
        SnowflakeMetrics {
            issued: self.settled.load(Ordering::Relaxed) + self.used(self.last.load(Ordering::Relaxed)),
            full: self.full.load(Ordering::Relaxed),
            runs_out_in_ms: self.layout.last_ms().saturating_sub(self.guard.clock().wall()),
        }
    }
}
