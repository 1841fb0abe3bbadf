//! The one task that makes ceilings durable. It owns the order of raises: at any moment one call of the
//! store is under way, with every section that was due when it began. Memory moves only after the store
//! confirmed; whatever else comes back is tried again, with the same or a larger absolute target.

use std::sync::Arc;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::raised::{After, Pauses, after};
use super::shared::SectionGroupState;
use crate::config::Options;
use crate::flaws::Flaws;
use crate::ids::SectionId;
use crate::store::{Ceiling, RaiseError, SectionStore};

pub(super) struct Raiser {
    pub(super) shared: Arc<SectionGroupState>,
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
        let mut pauses = Pauses::new(self.options.retry_first, self.options.retry_longest);
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
                pauses.succeeded();
                continue;
            }
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = sleep(pauses.failed()) => {}
            }
        }
        self.shared.stop();
    }

    /// One call of the store; answers how many ceilings must be tried again.
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
            match after(target, answers.next().unwrap_or_else(missing), Flaws::default()) {
                After::Confirmed(ceiling) => {
                    confirmed += 1;
                    self.shared.confirm(target.section, ceiling);
                }
                After::Lost { newest } => {
                    error!(section = %target.section, mine = %self.shared.owner.epoch, %newest, "section lost to another owner");
                    self.shared.fence(target.section..=target.section);
                    (self.lost)(target.section);
                }
                After::Again { to, why: error } => {
                    again += 1;
                    warn!(section = %target.section, to, %error, "ceiling not confirmed");
                    self.shared.ask_again(target.section, to);
                }
            }
        }
        self.shared.counters.raise_call(began.elapsed(), confirmed, batch.len() - confirmed);
        again
    }
}
