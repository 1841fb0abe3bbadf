//! The last numbers that were issued, and the last failures, in a ring of fixed length.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Plugin;
use crate::error::NextError;
use crate::range::Range;
use crate::strategy::Issued;
use crate::tag::Tag;

/// One call, as it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// The tag.
    pub tag: Tag,
    /// The issued ranges, or why nothing was issued.
    pub outcome: Result<Vec<Range>, String>,
    /// When, counted from when the history was made.
    pub at: Duration,
}

/// A [`Plugin`] that keeps the last calls.
#[derive(Debug)]
pub struct CallHistory {
    most: usize,
    origin: Instant,
    records: Mutex<VecDeque<CallRecord>>,
}

impl CallHistory {
    /// Keeps up to `most` calls.
    pub fn new(most: usize) -> Self {
        Self { most, origin: Instant::now(), records: Mutex::default() }
    }

    /// The kept calls, oldest first.
    pub fn records(&self) -> Vec<CallRecord> {
        self.lock().iter().cloned().collect()
    }

    fn keep(&self, tag: &Tag, outcome: Result<Vec<Range>, String>) {
        if self.most == 0 {
            return;
        }
        let record = CallRecord { tag: tag.clone(), outcome, at: self.origin.elapsed() };
        let mut records = self.lock();
        if records.len() == self.most {
            records.pop_front();
        }
        records.push_back(record);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<CallRecord>> {
        // Whole at any moment.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plugin for CallHistory {
    fn name(&self) -> &str {
        "history"
    }

    /// Last, so that it sees what the others made of it.
    fn order(&self) -> i32 {
        i32::MAX
    }

    fn after(&self, tag: &Tag, issued: &mut Issued) -> Result<(), String> {
        self.keep(tag, Ok(issued.ranges().to_vec()));
        Ok(())
    }

    fn on_error(&self, tag: &Tag, error: &NextError) {
        self.keep(tag, Err(error.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_the_last_calls_are_kept() {
        let history = CallHistory::new(2);
        let tag = Tag::new("order").unwrap();
        for number in 1..=3 {
            tokio::time::advance(Duration::from_secs(1)).await;
            history.after(&tag, &mut Issued::new(vec![Range::one(number)])).unwrap();
        }
        let kept = history.records();
        assert_eq!(kept.len(), 2);
        assert_eq!(kept[0].outcome, Ok(vec![Range::one(2)]));
        assert_eq!(kept[1].at, Duration::from_secs(3));
    }
}
