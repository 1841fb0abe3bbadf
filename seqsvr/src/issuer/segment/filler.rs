//! The one task for each tag that brings segments, in the order in which they were taken, and what it shares with
//! callers. At any moment one call of the repository is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::line::Line;
use super::options::SegmentOptions;
use super::pace;
use super::taker::Taker;
use crate::issuer::strategy::{IssueError, Status};
use crate::issuer::tag::Tag;

/// What the last attempt to get a segment came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Fine,
    /// Storage is away.
    Down(String),
    /// No more numbers, or wrong settings.
    Ended(String),
}

impl Outcome {
    /// What a caller is told for whom there are no numbers.
    pub(super) fn refusal(&self) -> Result<(), IssueError> {
        match self {
            Self::Fine => Ok(()),
            Self::Down(problem) => Err(IssueError::Retryable(problem.clone())),
            Self::Ended(problem) => Err(IssueError::Final(problem.clone())),
        }
    }
}

/// What callers and the filler share.
pub(super) struct Shared {
    pub(super) tag: Tag,
    pub(super) line: Line,
    pub(super) wait: Duration,
    /// Changes after every attempt; waiting callers then look again.
    pub(super) rounds: watch::Sender<Outcome>,
    asked: Notify,
    /// The largest count that a caller waits for.
    need: AtomicU64,
    origin: Instant,
}

impl Shared {
    pub(super) fn new(tag: Tag, options: &SegmentOptions) -> Self {
        Self {
            tag,
            line: Line::new(options.prepare_at),
            wait: options.wait,
            rounds: watch::Sender::new(Outcome::Fine),
            asked: Notify::new(),
            need: AtomicU64::new(0),
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

    pub(super) fn tell(&self, outcome: Outcome) {
        self.rounds.send_replace(outcome);
    }

    pub(super) fn status(&self) -> Status {
        let standing = self.line.standing();
        let left = standing.left + standing.behind;
        let lasts = pace::lasts(left, standing.used, self.now().saturating_sub(standing.begun));
        let trouble = match &*self.rounds.borrow() {
            Outcome::Fine => None,
            Outcome::Down(problem) | Outcome::Ended(problem) => Some(problem.clone()),
        };
        Status { issued: standing.taken, left: Some(left), lasts, trouble }
    }

    /// How many numbers the next segment must hold at least; `None`: none is due.
    fn due(&self) -> Option<u64> {
        let standing = self.line.standing();
        // Before a caller asks again, which it does after every round.
        let need = self.need.swap(0, Ordering::AcqRel);
        let missing = need.saturating_sub(standing.left + standing.behind);
        (missing > 0 || standing.wants).then_some(missing.max(1))
    }
}

pub(super) struct Filler {
    shared: Arc<Shared>,
    pub(super) taker: Taker,
    stop: CancellationToken,
    /// The switches after which the step was last adapted.
    adapted: u64,
}

impl Filler {
    pub(super) fn new(shared: Arc<Shared>, taker: Taker, stop: CancellationToken) -> Self {
        Self { shared, taker, stop, adapted: 0 }
    }

    /// Runs until told to stop. A call of the repository that is under way is finished first, not dropped.
    pub(super) async fn run(mut self) {
        let (first, longest) = (self.taker.options.retry_first, self.taker.options.retry_longest);
        let mut pause = first;
        let mut due = self.shared.due();
        while !self.stop.is_cancelled() {
            let Some(count) = due else {
                tokio::select! {
                    () = self.stop.cancelled() => break,
                    () = self.shared.asked.notified() => due = self.shared.due(),
                }
                continue;
            };
            let outcome = self.fill(count).await;
            let failed = outcome != Outcome::Fine;
            self.report(&outcome);
            self.shared.tell(outcome);
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
        self.shared.tell(Outcome::Ended(stopped));
    }

    async fn fill(&mut self, count: u64) -> Outcome {
        let standing = self.shared.line.standing();
        // One segment changes the step once.
        let lasted = standing.lasted.filter(|_| standing.switches != self.adapted);
        match self.taker.take(count, lasted).await {
            Ok(range) => {
                self.adapted = standing.switches;
                if !self.shared.line.put(range, self.shared.now()) {
                    warn!(tag = %self.shared.tag, first = range.first, last = range.last,
                        "the database went back: a segment below those issued is left out");
                }
                Outcome::Fine
            }
            Err(IssueError::Retryable(problem)) => Outcome::Down(problem),
            Err(IssueError::Final(problem)) => Outcome::Ended(problem),
        }
    }

    /// Says once that something changed.
    fn report(&self, outcome: &Outcome) {
        if *self.shared.rounds.borrow() == *outcome {
            return;
        }
        match outcome {
            Outcome::Fine => info!(tag = %self.shared.tag, "segments come again"),
            Outcome::Down(problem) => {
                let lasts = self.shared.status().lasts.map(|lasts| lasts.as_secs() / 60);
                warn!(%problem, minutes_left = ?lasts, "no new segment");
            }
            Outcome::Ended(problem) => error!(%problem, "no new segments"),
        }
    }
}
