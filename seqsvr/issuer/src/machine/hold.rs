//! The state that the holder and its keeper share: the held machine id with its lease, and counts.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{PoisonError, RwLock};

use tokio::sync::Notify;

use super::claim::Granted;
use crate::clock::Clock;
use crate::snowflake::Unheld;

/// The held machine id and its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub machine: u32,
    /// The first moment of the boot clock at which the lease is no longer used.
    pub deadline: u64,
    /// No id may be later than this.
    pub used_until: u64,
    /// Ids may only be later than this.
    pub not_before: u64,
}

impl Hold {
    /// The hold after the first or the next grant.
    pub(super) fn after(before: Option<Hold>, granted: Granted, margin: u64) -> Self {
        let Granted { machine, ends_boot, used_until, not_before } = granted;
        let earlier = before.filter(|before| before.machine == machine).map_or(0, |before| before.not_before);
        let deadline = ends_boot.saturating_sub(margin);
        Self { machine, deadline, used_until, not_before: not_before.max(earlier) }
    }

    /// Whether an id of the millisecond `wall` may be made at the moment `boot`.
    pub(super) fn allows(&self, boot: u64, wall: u64) -> Result<u32, Unheld> {
        if boot >= self.deadline || wall > self.used_until {
            return Err(Unheld::Over);
        }
        match self.not_before.checked_sub(wall) {
            Some(early) => Err(Unheld::Used { wait_ms: early + 1 }),
            None => Ok(self.machine),
        }
    }
}

/// See the module.
pub(super) struct HolderState {
    pub(super) clock: Clock,
    hold: RwLock<Option<Hold>>,
    /// The lease is over or the calendar passed what is registered: worth a renewal before its time.
    pub(super) wanted: Notify,
    pub(super) wants: AtomicBool,
    /// The last claim found every id held.
    pub(super) exhausted: AtomicBool,
    pub(super) renewals: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) changes: AtomicU64,
}

impl HolderState {
    /// No id is held yet.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            hold: RwLock::new(None),
            wanted: Notify::new(),
            wants: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
            renewals: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        }
    }

    pub(super) fn hold(&self) -> Option<Hold> {
        *self.hold.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, hold: Option<Hold>) {
        *self.hold.write().unwrap_or_else(PoisonError::into_inner) = hold;
    }

    /// Milliseconds for which `hold` can still be used.
    pub(super) fn left(&self, hold: Hold) -> u64 {
        hold.deadline.saturating_sub(self.clock.boot())
    }
}
