//! When to flush: the flush that runs, the one that failed and will be tried again, and the time of the next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, error};

use super::flush::{Flush, Frozen};
use super::shared::SqliteShared;
use crate::store::StoreError;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

enum FlushWork {
    Idle,
    Running(RunningFlush),
    Failed(Arc<Frozen>, Instant),
}

struct RunningFlush {
    frozen: Arc<Frozen>,
    /// Says how many rows were set aside.
    task: AbortOnDropHandle<Result<u64, StoreError>>,
    /// How much of it is done, 0 to 1.
    share: watch::Receiver<f64>,
}

/// The committer's view of flushing.
pub(super) struct Flusher {
    shared: Arc<SqliteShared>,
    work: FlushWork,
    /// When the active memtable got its first row.
    since: Option<Instant>,
    pause: Duration,
    flushed: u64,
}

impl Flusher {
    /// `flushed`: the last batch that is in the tables.
    pub(super) fn new(shared: Arc<SqliteShared>, flushed: u64) -> Flusher {
        Flusher { shared, work: FlushWork::Idle, since: None, pause: FIRST_PAUSE, flushed }
    }

    /// The last batch that is in the tables.
    pub(super) fn flushed(&self) -> u64 {
        self.flushed
    }

    /// Whether a flush is under way.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.work, FlushWork::Running(..))
    }

    /// Whether a flush failed and waits to be tried again.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.work, FlushWork::Failed(..))
    }

    /// Whether so much waits in memory that no more can be taken before the flush has moved on. While one runs, room for
    /// new rows opens as fast as it gets old ones away; so commits are slowed down bit by bit, and never stopped for a
    /// whole flush.
    pub(super) fn is_overfull(&self) -> bool {
        match &self.work {
            FlushWork::Idle => false,
            FlushWork::Running(running) => self.fill() >= 1.0 + *running.share.borrow(),
            FlushWork::Failed(..) => self.fill() >= 2.0,
        }
    }

    /// How full the active memtable is: 1 is when a flush is due.
    fn fill(&self) -> f64 {
        let active = self.shared.memory.active();
        let options = &self.shared.options;
        let rows = active.rows() as f64 / options.flush_rows.max(1) as f64;
        rows.max(active.bytes() as f64 / options.flush_bytes.max(1) as f64)
    }

    /// When [`Flusher::is_due`] may turn true by itself.
    pub(super) fn next_look(&self) -> Option<Instant> {
        match self.work {
            FlushWork::Idle => self.since.map(|since| since + self.shared.options.flush_age),
            FlushWork::Running(..) => None,
            FlushWork::Failed(_, again) => Some(again),
        }
    }

    /// Notes that there are rows. Whether a flush should begin now.
    pub(super) fn is_due(&mut self) -> bool {
        if self.since.is_none() && self.shared.memory.active().rows() > 0 {
            self.since = Some(Instant::now());
        }
        match self.work {
            FlushWork::Running(..) => false,
            FlushWork::Failed(_, again) => Instant::now() >= again,
            FlushWork::Idle => {
                let aged = self.since.is_some_and(|since| since.elapsed() >= self.shared.options.flush_age);
                self.since.is_some() && (aged || self.fill() >= 1.0)
            }
        }
    }

    /// Begins a flush: the failed one again, or one of what `freeze` freezes.
    pub(super) fn begin(&mut self, freeze: impl FnOnce() -> Frozen) {
        let frozen = match std::mem::replace(&mut self.work, FlushWork::Idle) {
            FlushWork::Failed(frozen, _) => frozen,
            FlushWork::Running(running) => {
                self.work = FlushWork::Running(running);
                return;
            }
            FlushWork::Idle => {
                self.since = None;
                Arc::new(freeze())
            }
        };
        let (shared, flushing) = (self.shared.clone(), frozen.clone());
        let (moved, share) = watch::channel(0.0);
        let task = tokio::spawn(async move {
            let flush = Flush::new(flushing, &shared.options);
            flush.run(&shared.db, &shared.options, |share| _ = moved.send_replace(share)).await
        });
        self.work = FlushWork::Running(RunningFlush { frozen, task: AbortOnDropHandle::new(task), share });
    }

    /// Waits until the running flush has moved on or ended.
    pub(super) async fn moved(&mut self) {
        let FlushWork::Running(running) = &mut self.work else { return };
        // Its end takes the other side of the channel away.
        if running.share.changed().await.is_err() {
            self.ended().await;
        }
    }

    /// Waits until the running flush ends and takes note of how. Never returns when none is running.
    pub(super) async fn ended(&mut self) {
        let FlushWork::Running(RunningFlush { frozen, task, .. }) = &mut self.work else {
            return std::future::pending().await;
        };
        let result = match task.await {
            Ok(result) => result,
            Err(panic) => Err(StoreError::unavailable(panic)),
        };
        match result {
            Ok(set_aside) => {
                self.shared.condition.set_aside(set_aside);
                self.flushed = frozen.through;
                debug!(rows = frozen.memtable.rows(), through = self.flushed, "journal flushed");
                self.shared.memory.flushed();
                self.pause = FIRST_PAUSE;
                self.work = FlushWork::Idle;
            }
            Err(error) => {
                self.shared.condition.flush_failed();
                error!(%error, again_in = ?self.pause, "a flush failed; everything stays in the journal");
                self.work = FlushWork::Failed(frozen.clone(), Instant::now() + self.pause);
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// Gives up whatever is under way, for memory that is about to be read back. `flushed` must be read anew.
    pub(super) async fn abandon(&mut self) {
        if let FlushWork::Running(RunningFlush { task, .. }) =
            std::mem::replace(&mut self.work, FlushWork::Idle)
        {
            task.abort();
            // Of the flush at most a chunk of rows of tables is written after this, before anybody else writes. It is in the journal, too,
            // and what is replayed lies over it.
            _ = task.await;
        }
        self.since = None;
    }

    /// After [`Flusher::abandon`]: the last batch that is in the tables.
    pub(super) fn resume(&mut self, flushed: u64) {
        self.flushed = flushed;
    }
}
