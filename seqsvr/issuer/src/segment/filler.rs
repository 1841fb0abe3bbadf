//! The one task for each tag that brings segments, in the order in which they were taken, and what it shares with
//! callers. At any moment one call of the repository is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::buffer::SegmentBuffer;
use super::options::SegmentOptions;
use super::pace;
use super::source::{Source, Supply};
use super::task::Task;
use crate::strategy::{IssueError, Status};
use crate::tag::Tag;

/// The result of the last attempt to get a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FillOutcome {
    Fine,
    /// Storage is away, and ranges that were taken ahead are used.
    Extended(String),
    /// Storage is away.
    Down(String),
    /// No more numbers, or wrong settings.
    Ended(String),
}

impl FillOutcome {
    /// The error for a caller that gets no numbers.
    pub(super) fn refusal(&self) -> Result<(), IssueError> {
        match self {
            Self::Fine | Self::Extended(_) => Ok(()),
            Self::Down(problem) => Err(IssueError::Retryable(problem.clone())),
            Self::Ended(problem) => Err(IssueError::Final(problem.clone())),
        }
    }
}

/// The state that callers and the filler share.
pub(super) struct FillerState {
    pub(super) tag: Tag,
    pub(super) buffer: SegmentBuffer,
    pub(super) wait: Duration,
    /// Changes after every attempt; waiting callers then look again.
    pub(super) rounds: watch::Sender<FillOutcome>,
    asked: Notify,
    /// The largest count that a caller waits for.
    need: AtomicU64,
    /// Numbers that wait ahead, behind those of the buffer.
    ahead: AtomicU64,
    origin: Instant,
}

impl FillerState {
    pub(super) fn new(tag: Tag, options: &SegmentOptions) -> Self {
        Self {
            tag,
            buffer: SegmentBuffer::new(options.prepare_at, options.reserve),
            wait: options.wait,
            rounds: watch::Sender::new(FillOutcome::Fine),
            asked: Notify::new(),
            need: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
            origin: Instant::now(),
        }
    }

    /// The time since this was made.
    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Wakes the filler; `count`: how many numbers a caller waits for, 0 when none does.
    pub(super) fn ask(&self, count: u64) {
        self.need.fetch_max(count, Ordering::AcqRel);
        self.asked.notify_one();
    }

    pub(super) fn tell(&self, outcome: FillOutcome) {
        self.rounds.send_replace(outcome);
    }

    pub(super) fn status(&self) -> Status {
        let standing = self.buffer.standing();
        let left = standing.left + standing.behind + self.ahead.load(Ordering::Relaxed);
        let lasts = pace::lasts(left, standing.used, self.now().saturating_sub(standing.begun));
        let trouble = match &*self.rounds.borrow() {
            FillOutcome::Fine => None,
            FillOutcome::Extended(problem) | FillOutcome::Down(problem) | FillOutcome::Ended(problem) => {
                Some(problem.clone())
            }
        };
        Status { issued: standing.taken, left: Some(left), lasts, trouble }
    }

    /// How many numbers the next segment must hold at least; `None`: none is due.
    fn due(&self) -> Option<u64> {
        let standing = self.buffer.standing();
        // Before a caller asks again, which it does after every round.
        let need = self.need.swap(0, Ordering::AcqRel);
        let missing = need.saturating_sub(standing.left + standing.behind);
        (missing > 0 || standing.wants).then_some(missing.max(1))
    }
}

pub(super) struct Filler {
    shared: Arc<FillerState>,
    pub(super) source: Source,
    stop: CancellationToken,
    /// The switches after which the step was last adapted.
    adapted: u64,
}

impl Filler {
    pub(super) fn new(shared: Arc<FillerState>, source: Source, stop: CancellationToken) -> Self {
        Self { shared, source, stop, adapted: 0 }
    }
}

impl Task for Filler {
    async fn load(&mut self) -> Result<(), IssueError> {
        match self.source.load().await {
            Err(IssueError::Retryable(problem)) if self.source.ahead() > 0 => {
                self.shared.tell(FillOutcome::Extended(problem));
                Ok(())
            }
            Err(IssueError::Retryable(problem)) => {
                warn!(%problem, "starting without numbers; they are taken once the database answers");
                self.shared.tell(FillOutcome::Down(problem));
                Ok(())
            }
            loaded => loaded,
        }
    }

    // A call of the repository that is under way is finished first, not dropped.
    async fn run(mut self) {
        let (first, longest) =
            (self.source.taker.options.retry_first, self.source.taker.options.retry_longest);
        let mut pause = first;
        let mut due = self.shared.due();
        while !self.stop.is_cancelled() {
            let Some(count) = due else {
                let behind = self.catch_up().await;
                tokio::select! {
                    () = self.stop.cancelled() => break,
                    () = self.shared.asked.notified() => {}
                    () = sleep(longest), if behind => {}
                }
                due = self.shared.due();
                continue;
            };
            let outcome = self.fill(count).await;
            let failed = matches!(outcome, FillOutcome::Down(_) | FillOutcome::Ended(_));
            self.tell(outcome);
            if failed {
                tokio::select! {
                    () = self.stop.cancelled() => break,
                    () = sleep(pause) => pause = (pause * 2).min(longest),
                }
                due = self.shared.due().or(due);
            } else {
                pause = first;
                due = self.shared.due();
            }
        }
        let stopped = format!("{}: the issuer was shut down", self.shared.tag);
        self.shared.tell(FillOutcome::Ended(stopped));
    }
}

impl Filler {
    async fn fill(&mut self, count: u64) -> FillOutcome {
        let standing = self.shared.buffer.standing();
        // One segment changes the step once.
        let lasted = standing.lasted.filter(|_| standing.switches != self.adapted);
        match self.source.next(count, lasted).await {
            Ok(Supply { segments, away }) => {
                self.adapted = standing.switches;
                for segment in segments {
                    if !self.shared.buffer.put(segment, self.shared.now()) {
                        warn!(tag = %self.shared.tag, ?segment,
                            "the database went back; skipping a segment below those issued");
                    }
                }
                self.shared.ahead.store(self.source.ahead(), Ordering::Relaxed);
                away.map_or(FillOutcome::Fine, FillOutcome::Extended)
            }
            Err(IssueError::Retryable(problem)) => FillOutcome::Down(problem),
            Err(IssueError::Final(problem)) => FillOutcome::Ended(problem),
        }
    }

    /// Does what the database lacks or this process lacks of it, if it answers: whether that is still to be done.
    async fn catch_up(&mut self) -> bool {
        if !self.source.lags() {
            return false;
        }
        let done = self.source.catch_up().await;
        self.shared.ahead.store(self.source.ahead(), Ordering::Relaxed);
        match done {
            Ok(()) => self.tell(FillOutcome::Fine),
            // Numbers are there, so nobody is refused.
            Err(IssueError::Retryable(problem) | IssueError::Final(problem)) => {
                self.tell(FillOutcome::Extended(problem));
            }
        }
        self.source.lags()
    }

    /// Lets waiting callers look again, and says once that something changed.
    fn tell(&self, outcome: FillOutcome) {
        if *self.shared.rounds.borrow() != outcome {
            match &outcome {
                FillOutcome::Fine => info!(tag = %self.shared.tag, "segments can be taken again"),
                FillOutcome::Extended(problem) | FillOutcome::Down(problem) => {
                    let lasts = self.shared.status().lasts.map(|lasts| lasts.as_secs() / 60);
                    warn!(%problem, minutes_left = ?lasts, "a segment cannot be taken; trying again");
                }
                FillOutcome::Ended(problem) => error!(%problem, "no new segments"),
            }
        }
        self.shared.tell(outcome);
    }
}
