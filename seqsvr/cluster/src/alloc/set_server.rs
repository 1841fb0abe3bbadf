//! The server of one Set in this process: the newest view, the clock, and the counters. Owns no task. The shell changes
//! the view and the deadline; the gRPC services answer through it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use tokio::time::{Instant, timeout_at};

use super::node::WaitingSections;
use super::view::{Cause, Denied, ServedView};
use seqsvr_core::alloc::metrics::{Counters, Metrics};
use seqsvr_core::clock::Moment;
use seqsvr_core::config::Options;
use seqsvr_core::ids::{Granted, SectionId, Uid};

/// Reads the clock.
pub(crate) type ClockReader = fn() -> Moment;

/// Serves one Set. The gRPC services read it, the shell changes it.
pub struct SetServer {
    /// The number of the Set.
    pub(crate) set: u32,
    /// The name of this node.
    pub(crate) node: String,
    /// This life of it.
    pub(crate) incarnation: u64,
    pub(super) options: Options,
    pub(super) view: ArcSwap<ServedView>,
    pub(super) clock: ClockReader,
    pub(super) counters: Arc<Counters>,
    /// Numbers handed out by section groups that have ended.
    pub(super) retired: AtomicU64,
    pub(super) tally: Tally,
    /// The tables are being read: until this moment, in nanoseconds.
    pub(super) tables_read_until: AtomicU64,
    /// Since when they have been read without a break of a lease's length.
    pub(super) tables_read_since: AtomicU64,
    /// How many sections are given to this process, and which of them are not served yet.
    pub(super) given: ArcSwap<Given>,
    /// Why the last claim failed.
    pub(super) unclaimed: ArcSwapOption<String>,
    /// The process is about to end, and wants to be given nothing.
    pub(super) draining: AtomicBool,
    pub(super) rates: ArcSwap<Vec<(SectionId, f32)>>,
}

/// The sections that a table gives to this process.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Given {
    /// How many sections.
    pub(crate) all: u32,
    /// Those that are not served yet.
    pub(crate) waiting: Vec<WaitingSections>,
}

impl Given {
    /// How many sections are not served yet.
    pub(crate) fn unserved(&self) -> u32 {
        self.waiting.iter().map(|one| one.sections.count()).sum()
    }
}

/// Refusals by reason.
#[derive(Debug, Default)]
pub struct Tally {
    not_owner: AtomicU64,
    no_table: AtomicU64,
    lease: AtomicU64,
    gaining: AtomicU64,
    raise: AtomicU64,
    crowded: AtomicU64,
    refused: AtomicU64,
}

impl SetServer {
    /// The newest view.
    #[inline]
    pub fn view(&self) -> Guard<Arc<ServedView>> {
        self.view.load()
    }

    /// The number of the Set.
    pub fn set(&self) -> u32 {
        self.set
    }

    /// Takes `count` numbers for `uid`, for callers in this process. Without waiting: the answer must leave at once.
    ///
    /// # Errors
    ///
    /// [`Denied`]; after [`Denied::Later`] ask [`take`](Self::take), which waits.
    pub fn try_take(&self, uid: Uid, count: u32) -> Result<Granted, Denied> {
        self.attempt(&self.view(), |view| view.take(uid, count))
    }

    /// Takes `count` numbers for `uid`, waiting for a raise if need be.
    ///
    /// # Errors
    ///
    /// [`Denied`], but never [`Denied::Later`].
    pub async fn take(&self, uid: Uid, count: u32) -> Result<Granted, Denied> {
        let taken = self.wait(|view| view.take(uid, count)).await;
        taken.inspect_err(|denied| self.count(denied))
    }

    /// An upper bound of what was handed out for `uid`.
    ///
    /// # Errors
    ///
    /// As for [`take`](Self::take).
    pub fn current(&self, uid: Uid) -> Result<u64, Denied> {
        self.attempt(&self.view(), |view| view.current(uid)).inspect_err(|denied| self.count(denied))
    }

    /// Lets `uid` go on above `at_least`.
    ///
    /// # Errors
    ///
    /// As for [`take`](Self::take).
    pub async fn advance(&self, uid: Uid, at_least: u64) -> Result<(), Denied> {
        let advanced = self.wait(|view| view.advance(uid, at_least)).await;
        advanced.inspect_err(|denied| self.count(denied))
    }

    /// Whether numbers taken through `view` may still be answered. Ask after taking and before answering: the lease was
    /// then valid from the one to the other, since a view's deadline only grows.
    #[inline]
    pub(crate) fn may_answer(&self, view: &ServedView) -> bool {
        (self.clock)() < view.deadline()
    }

    /// One attempt: its result is thrown away when the lease is over by then.
    #[inline]
    pub(crate) fn attempt<T>(
        &self,
        view: &ServedView,
        attempt: impl FnOnce(&ServedView) -> Result<T, Denied>,
    ) -> Result<T, Denied> {
        let taken = attempt(view);
        match taken {
            Ok(_) | Err(Denied::Later(_)) if !self.may_answer(view) => Err(self.lapsed(view)),
            taken => taken,
        }
    }

    /// Why nothing may be answered through `view`.
    pub(crate) fn lapsed(&self, view: &ServedView) -> Denied {
        Denied::Unavailable(if view.table().is_some() { Cause::Lease } else { Cause::NoTable })
    }

    /// Repeats `attempt` after each round of raises until it no longer has to wait, for a bounded time.
    pub(crate) async fn wait<T>(
        &self,
        mut attempt: impl FnMut(&ServedView) -> Result<T, Denied>,
    ) -> Result<T, Denied> {
        let deadline = Instant::now() + self.options.raise_wait;
        loop {
            let attempted = self.attempt(&self.view(), &mut attempt);
            let mut rounds = match attempted {
                Err(Denied::Later(rounds)) => rounds,
                done => return done,
            };
            // An error means that the section group has ended: look again, too.
            if timeout_at(deadline, rounds.changed()).await.is_err() {
                return Err(Denied::Unavailable(Cause::Raise));
            }
        }
    }

    /// Whether no table was read for longer than the lease.
    pub(crate) fn is_lapsed(&self) -> bool {
        (self.clock)() >= Moment::from_nanos(self.tables_read_until.load(Ordering::Acquire))
    }

    /// The sections given to this process by the table that it goes by.
    pub(crate) fn given(&self) -> Guard<Arc<Given>> {
        self.given.load()
    }

    /// For how long `waiting` could have been served: since no earlier owner could have a lease, and while this process read the
    /// tables without a break. Zero while it does not read them, which it says by itself.
    pub(crate) fn overdue(&self, waiting: &WaitingSections) -> Duration {
        if self.is_lapsed() {
            return Duration::ZERO;
        }
        let since = Moment::from_nanos(self.tables_read_since.load(Ordering::Acquire));
        (self.clock)().since(waiting.due.max(since))
    }

    /// How long ago `waiting` was given, and why it is not served yet.
    pub(crate) fn why(&self, waiting: &WaitingSections) -> (Duration, String) {
        let now = (self.clock)();
        let why = match self.unclaimed.load_full() {
            _ if self.is_lapsed() => "the stores do not answer".to_owned(),
            Some(why) => format!("the stores refuse the claim: {why}"),
            None if now < waiting.due => {
                let left = waiting.due.since(now).as_millis();
                format!("the node that served them before may hold its lease for {left} ms more")
            }
            None => "the claim is in progress".to_owned(),
        };
        (now.since(waiting.given), why)
    }

    /// Whether callers are served: the lease holds, and not all of the given sections still wait.
    pub fn is_serving(&self) -> bool {
        let given = self.given();
        !self.is_lapsed() && (given.all == 0 || given.unserved() < given.all)
    }

    /// Whether the process is about to end.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Numbers a second of the sections that handed out some lately.
    pub(crate) fn rates(&self) -> Arc<Vec<(SectionId, f32)>> {
        self.rates.load_full()
    }

    /// How long the lease still lasts.
    pub(crate) fn lease_remaining(&self) -> Duration {
        self.view().deadline().since((self.clock)())
    }

    /// The counters of all section groups together. Sums the touched slots.
    pub fn metrics(&self) -> Metrics {
        let view = self.view.load_full();
        let live = view.groups().iter().map(|group| group.shared().allocated());
        let retired = self.retired.load(Ordering::Acquire);
        self.counters.snapshot(live.fold(retired, u64::wrapping_add))
    }

    /// Counts a refusal.
    pub(crate) fn count(&self, denied: &Denied) {
        let tally = &self.tally;
        let counter = match denied {
            Denied::Later(_) => return,
            Denied::NotOwner => &tally.not_owner,
            Denied::Unavailable(Cause::NoTable) => &tally.no_table,
            Denied::Unavailable(Cause::Lease) => &tally.lease,
            Denied::Unavailable(Cause::Gaining) => &tally.gaining,
            Denied::Unavailable(Cause::Raise) => &tally.raise,
            Denied::Unavailable(Cause::Crowded) => &tally.crowded,
            Denied::Refused(_) => &tally.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Refusals by reason.
    pub(crate) fn refusals(&self) -> [(&'static str, u64); 7] {
        let tally = &self.tally;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("not_owner", read(&tally.not_owner)),
            ("no_table", read(&tally.no_table)),
            ("lease", read(&tally.lease)),
            ("gaining", read(&tally.gaining)),
            ("raise", read(&tally.raise)),
            ("crowded", read(&tally.crowded)),
            ("refused", read(&tally.refused)),
        ]
    }
}
