//! Numbers in segments (S22, S23): ranges taken from a durable row, each once, and handed out from memory. While one
//! segment is in use the next is prepared, so that a switch waits for nothing.
//!
//! `buffer` holds the numbers (lock-free), `pace` decides how large segments are (pure), `taker` takes them from the
//! repository, `source` adds what to do while that is away, with the `journal` and its `ledger` (pure), `filler` is the
//! one task for each tag that brings them, and this file is the whole for callers.

mod asked;
mod buffer;
mod filler;
mod journal;
mod ledger;
mod options;
mod pace;
mod source;
mod sync;
mod taker;
mod task;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::{Instant, timeout_at};

pub use journal::Journal;
pub use options::SegmentOptions;

use super::range;
use super::repository::Repository;
use super::strategy::{IssueError, Issued, Status, Strategy, TryIssueError};
use super::tag::Tag;
pub(super) use asked::AskedStep;
use buffer::BufferTake;
use filler::{Filler, FillerState};
#[cfg(feature = "service")]
pub(super) use pace::lasts;
pub(super) use source::Source;
#[cfg(feature = "service")]
pub(super) use source::Supply;
pub(super) use taker::Taker;
#[cfg(feature = "service")]
pub(super) use task::Task;
pub(super) use task::TaskHandle;

/// A [`Strategy`] of segments over one [`Repository`].
///
/// Strictly increasing within the process, under any concurrency; unique across all processes that share the
/// repository. The rest of a segment is lost at a restart, which leaves a gap.
pub struct SegmentStrategy {
    shared: Arc<FillerState>,
    asked: Arc<AskedStep>,
    filler: TaskHandle<Filler>,
}

impl SegmentStrategy {
    /// Numbers for `tag`; nothing is asked of the repository before [`init`](Strategy::init).
    ///
    /// # Errors
    ///
    /// [`IssueError::Final`] for an option out of its range, or ranges ahead without a journal.
    pub fn new(
        tag: &Tag,
        repository: Arc<dyn Repository>,
        journal: Option<Arc<Journal>>,
        options: SegmentOptions,
    ) -> Result<Self, IssueError> {
        let wrong = |problem| IssueError::Final(format!("{tag}: {problem}"));
        options.check().map_err(wrong)?;
        let shared = Arc::new(FillerState::new(tag.clone(), &options));
        let taker = Taker::new(repository, tag.clone(), options);
        let asked = taker.asked_step();
        let source = Source::new(taker, journal).map_err(wrong)?;
        let filler = TaskHandle::new(tag.clone(), |stop| Filler::new(Arc::clone(&shared), source, stop));
        Ok(Self { shared, asked, filler })
    }

    /// The way past the room: the number that was drawn, another in its place, or none.
    #[cold]
    #[inline(never)]
    fn resolve(&self, drawn: u64) -> Result<u64, TryIssueError> {
        let number = self.shared.buffer.resolve(drawn, self.shared.now());
        if number.is_none() {
            self.shared.ask(1);
        } else if self.shared.buffer.standing().wants {
            self.shared.ask(0);
        }
        number.ok_or(TryIssueError::WouldWait)
    }
}

#[async_trait]
impl Strategy for SegmentStrategy {
    async fn init(&self) -> Result<(), IssueError> {
        self.filler.start().await
    }

    #[inline]
    fn try_issue(&self) -> Result<u64, TryIssueError> {
        self.shared.buffer.take_one().or_else(|drawn| self.resolve(drawn))
    }

    async fn issue(&self, count: u32) -> Result<Issued, IssueError> {
        let shared = &self.shared;
        let mut rounds = shared.rounds.subscribe();
        let deadline = Instant::now() + shared.wait;
        loop {
            match shared.buffer.take(u64::from(count), shared.now()) {
                BufferTake::Taken(ranges) => {
                    if shared.buffer.standing().wants {
                        shared.ask(0);
                    }
                    return Ok(Issued::new(ranges));
                }
                BufferTake::Need(_) => shared.ask(u64::from(count)),
            }
            rounds.borrow_and_update().refusal()?;
            if timeout_at(deadline, rounds.changed()).await.is_err() {
                return Err(IssueError::Retryable(format!(
                    "{}: no segment within {:?}; try again (the log says why)",
                    shared.tag, shared.wait
                )));
            }
        }
    }

    fn ask_step(&self, step: u64) -> Result<(), String> {
        self.asked.set(step)
    }

    fn status(&self) -> Status {
        self.shared.status()
    }

    async fn shutdown(&self) {
        self.filler.shutdown().await;
    }
}
