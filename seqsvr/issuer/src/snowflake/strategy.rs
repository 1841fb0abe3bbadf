//! Snowflakes behind the issuer's seam: waiting, in a runtime, for what a call needs.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::generator::{NotNow, Snowflake, SnowflakeMetrics, Unheld};
use crate::clock::{ClockHold, moment};
use crate::{IssueError, Issued, Part, Range, Status, Strategy, TryIssueError};

impl Snowflake {
    /// Takes exactly `count` ids, waiting through full milliseconds, small steps back of the clock and writes of
    /// its file.
    async fn take(&self, count: u32) -> Result<Vec<Range>, NotNow> {
        let mut ranges: Vec<Range> = Vec::new();
        let mut missing = u64::from(count);
        let mut waited_since = Instant::now();
        while missing > 0 {
            match self.try_take(missing) {
                Ok(range) => {
                    missing -= range.count();
                    ranges.push(range);
                    waited_since = Instant::now();
                }
                // Yielding, not sleeping: a timer's grain is a whole millisecond, which would halve the rate.
                Err(NotNow::Full) => tokio::task::yield_now().await,
                Err(reason) => {
                    let left = self.options.patience.saturating_sub(waited_since.elapsed());
                    let Some(pause) = pause(reason).filter(|&pause| pause <= left) else {
                        return Err(reason);
                    };
                    match reason {
                        NotNow::Clock(ClockHold::Unwritten) => self.guard.moved(pause).await,
                        _ => tokio::time::sleep(pause).await,
                    }
                }
            }
        }
        Ok(ranges)
    }
}

/// How long to wait for what is missing; `None` for what is refused at once.
fn pause(reason: NotNow) -> Option<Duration> {
    match reason {
        NotNow::Clock(ClockHold::Wait { behind_ms }) => Some(Duration::from_millis(behind_ms)),
        NotNow::Machine(Unheld::Used { wait_ms }) => Some(Duration::from_millis(wait_ms)),
        NotNow::Clock(ClockHold::Unwritten) => Some(Duration::from_millis(50)),
        NotNow::Full => Some(Duration::ZERO),
        NotNow::Machine(Unheld::Over)
        | NotNow::Clock(ClockHold::Back { .. } | ClockHold::Ahead { .. } | ClockHold::Closed) => None,
        NotNow::Misfit(_) | NotNow::RanOut => None,
    }
}

impl From<NotNow> for IssueError {
    fn from(reason: NotNow) -> Self {
        match reason {
            NotNow::Misfit(_) | NotNow::RanOut | NotNow::Clock(ClockHold::Closed) => {
                Self::Final(reason.to_string())
            }
            _ => Self::Retryable(reason.to_string()),
        }
    }
}

#[async_trait]
impl Strategy for Snowflake {
    async fn init(&self) -> Result<(), IssueError> {
        let bits = self.layout().bits();
        tracing::info!(
            time = bits.time,
            data_centre = bits.data_centre,
            worker = bits.worker,
            sequence = bits.sequence,
            until = self.layout().last_day(),
            "snowflakes can be made"
        );
        Ok(())
    }

    fn try_issue(&self) -> Result<u64, TryIssueError> {
        self.try_next().map_err(|_| TryIssueError::WouldWait)
    }

    async fn issue(&self, count: u32) -> Result<Issued, IssueError> {
        Ok(Issued::new(self.take(count).await?))
    }

    fn parts(&self, number: u64) -> Vec<Part> {
        let Some(parts) = self.decode(number) else { return Vec::new() };
        let part = |name: &str, value: String| Part { name: name.to_owned(), value };
        let mut named = vec![part("time", moment(parts.unix_ms)), part("machine", parts.machine.to_string())];
        if self.layout().bits().data_centre > 0 {
            named.push(part("data_centre", parts.data_centre.to_string()));
            named.push(part("worker", parts.worker.to_string()));
        }
        named.push(part("sequence", parts.sequence.to_string()));
        named
    }

    fn status(&self) -> Status {
        let SnowflakeMetrics { issued, runs_out_in_ms, .. } = self.metrics();
        let lasts = Some(Duration::from_millis(runs_out_in_ms));
        Status { issued, left: None, lasts, trouble: self.trouble() }
    }
}
