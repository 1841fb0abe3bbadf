//! A change of the configuration whose coordinator ended between its first and its last step leaves stores that answer
//! no call, or too few that vote in the next one. Arbiters look for that, and complete it: as one more coordinator with
//! a higher ballot, which the protocol allows at any moment.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::change::Unchanged;
use super::rounds::ChangeError;
use super::{Link, Quorum};
use seqsvr_core::store::Configuration;
use seqsvr_core::store::message::Description;
use seqsvr_core::store::message::{Answer, Question};

/// Between two looks at the stores.
const LOOK: Duration = Duration::from_secs(2);
/// This many looks in a row must find a change under way: longer than one that is being made takes.
const LOOKS: u32 = 5;

impl Quorum {
    /// Completes changes that no coordinator completes. Never ends.
    pub async fn keep_complete(&self) -> std::convert::Infallible {
        let (mut halted, mut number) = (0, 0);
        loop {
            let is_halted = self.is_halted().await;
            let now = self.configuration().map_or(0, |one| one.number);
            halted = if is_halted && now == number { halted + 1 } else { u32::from(is_halted) };
            number = now;
            if halted >= LOOKS {
                warn!(configuration = number, "a change of the stores was not completed; completing it");
                match self.complete_halted().await {
                    Ok(configuration) => {
                        info!(number = configuration.number, "the change of the stores is completed")
                    }
                    Err(error) => warn!(%error, "the change of the stores is not completed; trying again"),
                }
                halted = 0;
            }
            sleep(LOOK).await;
        }
    }

    /// The incomplete part of the configuration, in one line for operators.
    pub(super) async fn report_unfinished(&self) -> Option<String> {
        let is_halted = self.is_halted().await;
        let current = self.configuration()?;
        let number = current.number;
        if is_halted {
            return Some(format!(
                "the change of configuration {number} of the stores is not complete, and stores wait for that; an arbiter \
                 completes it within {} s, or the same command when it is run again",
                (LOOK * LOOKS).as_secs() + 2
            ));
        }
        let command = current.taking.as_ref()?.command();
        Some(format!(
            "configuration {number} of the Set is the first half of a change; to complete it: {command}"
        ))
    }

    /// Whether a member takes part in a change, or too few of those that answer vote in the newest configuration, which this role goes by.
    async fn is_halted(&self) -> bool {
        self.described(usize::MAX).await;
        let Some(current) = self.configuration() else { return false };
        let links = self.ways.to_all(&current.members);
        let ask = async |link: &Arc<dyn Link>| timeout(self.patience, link.ask(Question::Describe)).await;
        let answers = join_all(links.iter().map(ask)).await;
        let what = |answer| match answer {
            Ok(Ok(Answer::Described(what))) => Some(what),
            _ => None,
        };
        let all: Vec<Description> = answers.into_iter().filter_map(what).collect();
        let newest = all.iter().filter_map(|what| what.configuration.clone()).max_by_key(|one| one.number);
        newest.into_iter().for_each(|newest| self.follow(newest));
        let Some(newest) = self.configuration() else { return false };
        let vote = all.iter().filter(|what| what.configuration.as_ref() == Some(&newest)).count();
        all.iter().any(|what| what.sealed) || all.len() >= newest.write && vote < newest.write
    }

    /// Completes the accepted configuration; where none was accepted, the next one is as the current one.
    pub(super) async fn complete_halted(&self) -> Result<Arc<Configuration>, Unchanged> {
        let is_halted = self.is_halted().await;
        let current = self.configuration().ok_or(Unchanged::Unconfigured)?;
        let failed = |error| match error {
            ChangeError::Layouts(differ) => Unchanged::Layouts(differ),
            ChangeError::Unavailable(why) => Unchanged::Unavailable(why),
            ChangeError::Outbid(_)
            | ChangeError::Another(_)
            | ChangeError::Newer(_)
            | ChangeError::Behind(_) => {
                Unchanged::Unavailable("others change the stores at the same time".to_owned())
            }
        };
        if !is_halted {
            return Ok(current);
        }
        // Enough vote in it already, or one does: then it was decided.
        if self.complete(&current).await.is_ok() && !self.is_halted().await {
            return Ok(current);
        }
        let next = Arc::new(current.next());
        let done = self.change(Arc::clone(&current), next).await.map_err(failed)?;
        self.follow(Arc::clone(&done));
        Ok(done)
    }
}
