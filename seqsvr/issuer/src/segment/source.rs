//! Where a filler gets segments from: the database, or, while that is away and where it is configured, ranges that were
//! taken from it ahead for this process (S24). Never from a guess: two processes could make the same one.
//!
//! With ranges ahead every segment goes through their queue, so that numbers grow whether the database answers or not.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::journal::Journal;
use super::ledger::RangeEvent;
use super::taker::Taker;
use crate::range::Range;
use crate::repository::Extension;
use crate::strategy::IssueError;

pub(crate) struct Source {
    pub(crate) taker: Taker,
    /// `None`: nothing is taken ahead.
    journal: Option<Arc<Journal>>,
    /// How many ranges are kept ahead.
    depth: usize,
    queue: VecDeque<Range>,
}

/// The segments that come next, at least as many numbers as were asked for.
pub(crate) struct Supply {
    pub(crate) segments: Vec<Range>,
    /// Why the database was not asked, or could not be.
    pub(crate) away: Option<String>,
}

impl Source {
    /// Segments from the database, and, with a journal, from the configured number of ranges taken ahead.
    pub(crate) fn new(taker: Taker, journal: Option<Arc<Journal>>) -> Result<Self, String> {
        let depth = taker.options.ahead;
        if depth > 0 && journal.is_none() {
            return Err("extending while the database is away needs a journal; name a file".to_owned());
        }
        // Without ranges ahead the journal would only be written.
        let journal = journal.filter(|_| depth > 0);
        Ok(Self { taker, journal, depth: depth as usize, queue: VecDeque::new() })
    }

    /// Checks the settings against what is stored. Ranges that an earlier process took ahead are given up when the
    /// database is there, which goes on above them, and kept when it is away.
    pub(crate) async fn load(&mut self) -> Result<(), IssueError> {
        let loaded = self.taker.load().await;
        let Some(journal) = &self.journal else { return loaded };
        let left = journal.ahead(&self.taker.tag);
        match &loaded {
            Ok(()) => {
                let events = left.into_iter().map(|range| (RangeEvent::Void, range)).collect();
                self.note(events).await?;
                self.tell().await?;
            }
            Err(IssueError::Retryable(_)) => {
                warn!(tag = %self.taker.tag, ranges = left.len(), "starting with the ranges taken ahead");
                self.queue = left;
            }
            Err(IssueError::Final(_)) => {}
        }
        loaded
    }

    /// Numbers that wait ahead.
    pub(crate) fn ahead(&self) -> u64 {
        self.queue.iter().map(|range| range.count()).sum()
    }

    /// Segments with `count` numbers or more.
    pub(crate) async fn next(&mut self, count: u64, lasted: Option<Duration>) -> Result<Supply, IssueError> {
        let taken = match self.tell().await {
            Ok(()) => self.taker.take(count, lasted).await,
            Err(error) => Err(error),
        };
        let (event, new, away) = match taken {
            Ok(range) => (RangeEvent::Begun, Some(range), None),
            Err(IssueError::Retryable(problem)) if self.ahead() >= count => {
                (RangeEvent::Extended, None, Some(problem))
            }
            Err(error) => return Err(error),
        };
        self.queue.extend(new);
        let mut segments = Vec::new();
        let mut numbers = 0;
        while numbers < count
            && let Some(range) = self.queue.pop_front()
        {
            numbers += range.count();
            segments.push(range);
        }
        let mut events: Vec<_> = new.map(|range| (RangeEvent::Ahead, range)).into_iter().collect();
        events.extend(segments.iter().map(|&range| (event, range)));
        // When this fails the ranges are lost, which leaves a gap.
        self.note(events).await?;
        if away.is_some() {
            warn!(tag = %self.taker.tag, ?segments, left = self.ahead(), "extended while the database is away");
        }
        Ok(Supply { segments, away })
    }

    /// Whether there is something to do as soon as the database answers.
    pub(crate) fn lags(&self) -> bool {
        self.queue.len() < self.depth || !self.unreported().is_empty()
    }

    /// Tells the database what it missed, and takes the ranges ahead that lack.
    pub(crate) async fn catch_up(&mut self) -> Result<(), IssueError> {
        self.tell().await?;
        while self.queue.len() < self.depth {
            let range = self.taker.take(1, None).await?;
            self.note(vec![(RangeEvent::Ahead, range)]).await?;
            self.queue.push_back(range);
        }
        Ok(())
    }

    /// Replays the journal to the database. Twice does no harm: the database keeps each range once.
    async fn tell(&mut self) -> Result<(), IssueError> {
        for extension in self.unreported() {
            self.taker.reconcile(&extension).await?;
            self.note(vec![(RangeEvent::Reported, extension.range)]).await?;
            let Range { first, last } = extension.range;
            info!(tag = %self.taker.tag, first, last, "numbers that were issued without the database were reported to it");
        }
        Ok(())
    }

    fn unreported(&self) -> Vec<Extension> {
        self.journal.as_ref().map(|journal| journal.unreported(&self.taker.tag)).unwrap_or_default()
    }

    async fn note(&self, events: Vec<(RangeEvent, Range)>) -> Result<(), IssueError> {
        let Some(journal) = self.journal.clone().filter(|_| !events.is_empty()) else { return Ok(()) };
        let tag = self.taker.tag.clone();
        let noted = tokio::task::spawn_blocking(move || journal.note(&tag, &events)).await;
        let problem = match noted {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Err(IssueError::Retryable(format!("{}: the journal cannot be written: {problem}", self.taker.tag)))
    }
}
