//! Log lines about what happens again and again: one now and then, which says how many it stands for.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Between two lines of one kind, unless another time is said.
const EVERY: Duration = Duration::from_secs(10);

/// Lets lines of one kind through, at most one in ten seconds or what else is said.
#[derive(Debug)]
pub(crate) struct LogLimit {
    every: Duration,
    last: Mutex<(Option<Instant>, u64)>,
}

impl Default for LogLimit {
    fn default() -> LogLimit {
        LogLimit::every(EVERY)
    }
}

impl LogLimit {
    /// At most one line in this time.
    pub(crate) fn every(every: Duration) -> LogLimit {
        LogLimit { every, last: Mutex::default() }
    }

    /// Whether a line is due now; if so, how many were left out since the one before it.
    pub(crate) fn pass(&self) -> Option<u64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (time, left_out) = &mut *last;
        if time.is_some_and(|time| time.elapsed() < self.every) {
            *left_out += 1;
            return None;
        }
        *time = Some(Instant::now());
        Some(std::mem::take(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_lines_is_one_in_ten_seconds_and_none_is_forgotten() {
        let limit = LogLimit::default();
        let passed: Vec<_> = (0..100).map(|_| limit.pass()).collect();
        assert_eq!((passed[0], passed[1..].iter().flatten().count()), (Some(0), 0));
        tokio::time::advance(EVERY).await;
        assert_eq!(limit.pass(), Some(99));
        assert_eq!(limit.pass(), None);
    }
}
