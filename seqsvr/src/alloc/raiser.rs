//! The one task that makes ceilings durable. It owns the order of raises: at any moment one call of the
//! store is under way, with every section that was due when it began. Memory moves only after the store
//! confirmed; whatever else comes back is tried again, with the same or a larger absolute target.

use std::sync::Arc;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::shared::Shared;
use crate::config::Options;
use crate::ids::SectionId;
use crate::store::{Ceiling, RaiseError, SectionStore};

pub(super) struct Raiser {
    pub(super) shared: Arc<Shared>,
    pub(super) store: Arc<dyn SectionStore>,
    pub(super) options: Options,
    pub(super) stop: CancellationToken,
    /// Called with each section that another owner has claimed, once it is closed.
    pub(super) lost: Box<dyn Fn(SectionId) + Send + Sync>,
}

impl Raiser {
    /// Runs until told to stop, and closes all sections at the end. A call of the store that is under way is
    /// finished first, not dropped.
    pub(super) async fn run(self) {
        let mut pause = self.options.retry_first;
        while !self.stop.is_cancelled() {
            let batch = self.shared.collect_due(self.options.raise_batch);
            if batch.is_empty() {
                tokio::select! {
                    () = self.stop.cancelled() => break,
                    () = self.shared.asked.notified() => continue,
                }
            }
            let failed = self.raise(&batch).await;
            self.shared.rounds.send_modify(|round| *round += 1);
            if failed == 0 {
                pause = self.options.retry_first;
                continue;
            }
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = sleep(pause) => pause = (pause * 2).min(self.options.retry_longest),
            }
        }
        self.shared.stop();
    }

    /// One call of the store; answers how many ceilings are to be tried again.
    async fn raise(&self, batch: &[Ceiling]) -> usize {
        let began = Instant::now();
        let answers = timeout(self.options.store_timeout, self.store.raise(self.shared.owner, batch)).await;
        let late = || RaiseError::Unknown(format!("no answer within {:?}", self.options.store_timeout));
        let answers = answers.unwrap_or_else(|_| batch.iter().map(|_| Err(late())).collect());
        let mut again = 0;
        let mut confirmed = 0;
        let mut answers = answers.into_iter();
        for &target in batch {
            let missing = || Err(RaiseError::Unknown("the store gave too few answers".to_owned()));
            match answers.next().unwrap_or_else(missing) {
                Ok(ceiling) if ceiling >= target.max => {
                    confirmed += 1;
                    self.shared.confirm(target.section, ceiling);
                }
                Ok(ceiling) => {
                    again += self.failed(target, &RaiseError::Unknown(format!("confirmed {ceiling} only")))
                }
                Err(error) => again += self.failed(target, &error),
            }
        }
        self.shared.counters.raise_call(began.elapsed(), confirmed, batch.len() - confirmed);
        again
    }

    /// Answers 1 if the ceiling is to be tried again.
    fn failed(&self, target: Ceiling, error: &RaiseError) -> usize {
        let to = match error {
            RaiseError::NotOwner { newest } => {
                error!(section = %target.section, mine = %self.shared.owner.epoch, %newest, "section lost to another owner");
                self.shared.fence(target.section..=target.section);
                (self.lost)(target.section);
                return 0;
            }
            // An earlier raise of unknown outcome, or an operator's, went further. It becomes this owner's
            // ceiling by being confirmed, not by having been seen.
            RaiseError::Smaller { stored } => *stored,
            RaiseError::Unavailable(_) | RaiseError::Unknown(_) => target.max,
        };
        warn!(section = %target.section, to = target.max, %error, "ceiling not confirmed");
        self.shared.ask_again(target.section, to);
        1
    }
}
