//! Takes ranges from the durable row of one tag, each once (S22). Keeps what it last saw of the row, so that
//! a process that is alone needs one statement a segment.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::asked::AskedStep;
use super::options::SegmentOptions;
use crate::range::Range;
use crate::repository::{Extension, Repository, RepositoryError, Values};
use crate::strategy::IssueError;
use crate::tag::Tag;

/// How often a range that others take at the same moment is tried again; each loss is another's success.
const ATTEMPTS: usize = 1_000;

pub(crate) struct Taker {
    pub(crate) repository: Arc<dyn Repository>,
    pub(crate) tag: Tag,
    pub(crate) options: SegmentOptions,
    asked: Arc<AskedStep>,
    seen: Option<Values>,
    checked: bool,
}

impl Taker {
    pub(crate) fn new(repository: Arc<dyn Repository>, tag: Tag, options: SegmentOptions) -> Self {
        let asked = Arc::new(AskedStep::new(&options));
        Self { repository, tag, options, asked, seen: None, checked: false }
    }

    /// Where calls leave their step for the next segment.
    pub(crate) fn asked_step(&self) -> Arc<AskedStep> {
        Arc::clone(&self.asked)
    }

    /// Checks the settings against what is stored, and makes the row if there is none.
    pub(crate) async fn load(&mut self) -> Result<(), IssueError> {
        self.values().await.map(drop)
    }

    /// Takes the next range: one step, but at least `count` numbers. `lasted`: how long the last used-up one did, by which the
    /// stored step is adapted; one that a call brought takes its place.
    pub(crate) async fn take(&mut self, count: u64, lasted: Option<Duration>) -> Result<Range, IssueError> {
        for _ in 0..ATTEMPTS {
            let seen = self.values().await?;
            let start = self.options.start.unwrap_or(seen.start);
            let from = seen.max.max(start - 1).max(self.options.above);
            let left = self.options.limit.saturating_sub(from);
            if left == 0 || left < count {
                return Err(IssueError::Final(format!(
                    "{}: numbers end at {}, the limit, and {from} of them are taken",
                    self.tag, self.options.limit
                )));
            }
            let asked = self.asked.get();
            let step = asked.unwrap_or_else(|| self.options.pace().next(seen.step, lasted));
            let next = Values { start, max: from + step.max(count).min(left), step };
            // Forgotten first: after an error nobody knows what is stored.
            self.seen = None;
            if self.call(self.repository.take(&self.tag, seen.max, next)).await? {
                self.seen = Some(next);
                if let Some(asked) = asked {
                    self.asked.done(asked);
                }
                return Ok(Range { first: from + 1, last: next.max });
            }
        }
        Err(IssueError::Retryable(format!(
            "{}: too many processes take numbers at the same time; try again",
            self.tag
        )))
    }

    /// Tells the database of numbers that were issued while it was away.
    pub(crate) async fn reconcile(&mut self, extension: &Extension) -> Result<(), IssueError> {
        self.seen = None;
        self.call(self.repository.reconcile(extension)).await.map(drop)
    }

    async fn values(&mut self) -> Result<Values, IssueError> {
        if let Some(seen) = self.seen {
            return Ok(seen);
        }
        loop {
            if let Some(row) = self.call(self.repository.get(&self.tag)).await? {
                // Once: later, another process may have been given other limits.
                if !self.checked {
                    self.check(row.values)?;
                    self.checked = true;
                }
                self.seen = Some(row.values);
                return Ok(row.values);
            }
            let start = self.options.start.unwrap_or(1);
            let fresh = Values { start, max: start - 1, step: self.options.step };
            self.call(self.repository.create(&self.tag, fresh)).await?;
        }
    }

    fn check(&self, stored: Values) -> Result<(), IssueError> {
        let Self { tag, options, .. } = self;
        if let Some(start) = options.start
            && start != stored.start
            && start <= stored.max
        {
            return Err(IssueError::Final(format!(
                "{tag}: start = {start} is not above {}, up to which numbers are taken; leave it at {} or set {} or more",
                stored.max,
                stored.start,
                stored.max + 1
            )));
        }
        if options.step_max < stored.step {
            return Err(IssueError::Final(format!(
                "{tag}: step_max = {} is below the step that is stored, {}; set {} or more",
                options.step_max, stored.step, stored.step
            )));
        }
        Ok(())
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, RepositoryError>>) -> Result<T, IssueError> {
        let waited = self.options.repository_timeout;
        match timeout(waited, call).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error @ RepositoryError::Unavailable(_))) => {
                Err(IssueError::Retryable(format!("{}: {error}", self.tag)))
            }
            Ok(Err(error @ RepositoryError::Smaller { .. })) => Err(IssueError::Final(error.to_string())),
            Err(_) => Err(IssueError::Retryable(format!(
                "{}: the repository did not answer within {waited:?}",
                self.tag
            ))),
        }
    }
}
