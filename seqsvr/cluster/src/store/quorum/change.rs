//! Changing the configuration while the stores serve: carries the rounds of a change out, as often as it takes. A change
//! that was cut off goes on where it ended when it is run again. `operator`, `moving`, `first` and `completing` call it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use super::Quorum;
use super::rounds::{Ask, ChangeError, ChangeRound, Round as _, Step, asked};
use crate::store::merge::LayoutsDiffer;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::ids::SectionId;
use seqsvr_core::store::configuration::CannotChange;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::{Address, Configuration, Member, SizesError};

/// How often a change is begun anew after others were in the way.
const ATTEMPTS: usize = 8;

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedConfiguration {
    /// The configuration in force.
    pub configuration: Arc<Configuration>,
    /// It was so before.
    pub already: bool,
}

/// Why the configuration was not changed.
#[derive(Debug, Error)]
pub enum Unchanged {
    #[error("no configuration is stored yet: an arbiter stores it once all stores of its file answer")]
    Unconfigured,
    #[error("{old} is no member of configuration {number} of the Set; its members are {members}")]
    Unknown { old: String, number: u64, members: String },
    #[error("{addr} does not answer: {why}; start it with: seqsvr store --config FILE --init")]
    Silent { addr: String, why: String },
    #[error(
        "{addr} is {name}, which is no new store: it has a configuration, or takes part in a first one; move its files away, and start \
         it with: seqsvr store --config FILE --init"
    )]
    NotNew { addr: String, name: String },
    #[error("the new store {addr} is called {name}, as a member is that stays; give it another name")]
    Name { addr: String, name: String },
    #[error(
        "the new store keeps other sections than the Set: set section_size = {section_size} and step = {step} in its file, remove its files, and start it again"
    )]
    Layout { section_size: u32, step: u32 },
    #[error("{0}")]
    Sizes(#[from] SizesError),
    #[error("{old} is the only store of the Set; add another one first")]
    Last { old: String },
    #[error(transparent)]
    Cannot(#[from] CannotChange),
    #[error(
        "the file is of sections of {file} uids, but the Set has sections of {stored}; choose another Set"
    )]
    Sections { stored: u32, file: u32 },
    #[error("the file has no layout; use the one that seqsvr backup --uids wrote")]
    File,
    #[error("an arbiter acts on these stores; stop all arbiters and AllocSvrs of the Set first")]
    Acting,
    #[error(
        "the file is older than what the stores have: section {section} has come to {stored}, beyond the file; use the file of the last \
         move of these uids"
    )]
    Stale { section: SectionId, stored: u64 },
    #[error(
        "the table of the Set still has some of these uids: start an arbiter, which takes them out, stop it, and run the same command again"
    )]
    Table,
    #[error("the stores disagree: {0}")]
    Layouts(LayoutsDiffer),
    #[error("{0}; nothing is lost: run the same command again")]
    Unavailable(String),
}

impl Quorum {
    /// Makes sure that a change from `current` to `next` can be completed: enough members decide, and enough vote afterwards.
    /// Otherwise it would seal some, which then answer no caller.
    async fn can_complete(&self, current: &Configuration, next: &Configuration) -> Result<(), Unchanged> {
        let answers = async |one: &Member| {
            let asked = timeout(self.patience, self.ways.to(one.id, &one.addr).ask(Question::Describe)).await;
            matches!(asked, Ok(Ok(Answer::Described(what))) if what.id == one.id)
        };
        for (of, needed) in [(current, current.deciders()), (next, next.write)] {
            let there = join_all(of.members.iter().map(answers)).await;
            let there = there.into_iter().filter(|there| *there).count();
            if there < needed {
                let line = format!("{there} of {needed} needed stores answer");
                return Err(Unchanged::Unavailable(line));
            }
        }
        Ok(())
    }

    /// Makes the changes, one after the other, that `next` asks for of the configuration in force, until it asks for none.
    pub(super) async fn reconfigure(
        &self,
        next: impl Fn(&Configuration) -> Result<Option<Configuration>, Unchanged>,
    ) -> Result<ChangedConfiguration, Unchanged> {
        let mut why = "others change the stores at the same time".to_owned();
        let mut already = true;
        for _ in 0..ATTEMPTS {
            self.described(usize::MAX).await;
            let current = self.configuration().ok_or(Unchanged::Unconfigured)?;
            let outcome = match next(&current)? {
                Some(next) => {
                    self.can_complete(&current, &next).await?;
                    self.change(Arc::clone(&current), Arc::new(next)).await
                }
                // It may have been cut off before enough had it.
                None => match self.complete(&current).await {
                    Ok(()) => return Ok(ChangedConfiguration { configuration: current, already }),
                    Err(error) => Err(error),
                },
            };
            already = false;
            match outcome {
                Ok(configuration) => {
                    self.follow(Arc::clone(&configuration));
                    // Else it was another change, which had to be completed first.
                    if next(&configuration)?.is_none() {
                        return Ok(ChangedConfiguration { configuration, already });
                    }
                }
                Err(ChangeError::Layouts(differ)) => return Err(Unchanged::Layouts(differ)),
                Err(ChangeError::Unavailable(reason)) => why = reason,
                Err(ChangeError::Newer(newer)) => {
                    if self.complete(&newer).await.is_ok() {
                        self.follow(newer);
                    }
                }
                Err(ChangeError::Outbid(_) | ChangeError::Another(_) | ChangeError::Behind(_)) => {
                    sleep(Duration::from_millis(rand::random_range(20..200))).await;
                }
            }
        }
        Err(Unchanged::Unavailable(why))
    }

    /// Changes `current` to `next`, or completes the change that was begun before.
    pub(super) async fn change(
        &self,
        current: Arc<Configuration>,
        next: Arc<Configuration>,
    ) -> Result<Arc<Configuration>, ChangeError> {
        let (mut next, mut least) = (next, 0);
        for _ in 0..ATTEMPTS {
            // Larger than any that was seen, and of no other change.
            let ballot = (((least >> 32) + 1) << 32) | u64::from(rand::random::<u32>());
            let members = asked(&current, &next);
            let round = ChangeRound::new(Arc::clone(&current), Arc::clone(&next), ballot, Flaws::default());
            match self.carry(&current, &next, members, round).await {
                Ok(()) => return Ok(next),
                Err(ChangeError::Outbid(higher)) => least = higher,
                // The members of another list may have come to something, or not.
                Err(ChangeError::Another(other)) if current.number == 0 && !same_members(&other, &next) => {
                    return Err(ChangeError::Another(other));
                }
                Err(ChangeError::Another(accepted)) => (next, least) = (accepted, ballot),
                // Too few have come to `current`, which was decided.
                Err(ChangeError::Behind(_)) => {
                    Box::pin(self.complete(&current)).await?;
                    least = ballot;
                }
                Err(error) => return Err(error),
            }
            sleep(Duration::from_millis(rand::random_range(5..50))).await;
        }
        Err(ChangeError::Unavailable("others change the stores at the same time".to_owned()))
    }

    /// Makes sure that as many vote in `newest` as it needs. Where the only stores that came to it are gone, the others accepted it and
    /// are sealed: the change to it is made once more.
    pub(super) async fn complete(&self, newest: &Arc<Configuration>) -> Result<(), ChangeError> {
        let round = ChangeRound::completing(Arc::clone(newest), Flaws::default());
        match self.carry(newest, newest, asked(newest, newest), round).await {
            Err(ChangeError::Behind(Some(older))) => self.change(older, Arc::clone(newest)).await.map(drop),
            Err(ChangeError::Behind(None)) => Err(ChangeError::Unavailable(format!(
                "no store that answers has configuration {} or the one before it",
                newest.number
            ))),
            outcome => outcome,
        }
    }

    async fn carry(
        &self,
        current: &Arc<Configuration>,
        next: &Configuration,
        members: Vec<u64>,
        mut round: ChangeRound,
    ) -> Result<(), ChangeError> {
        let member = |id: u64| next.members.iter().chain(&current.members).find(|one| one.id == id);
        let links = self.ways.to_all(members.iter().filter_map(|&id| member(id)));
        let patience = self.patience;
        let ask = |(index, question): Ask| {
            let (link, to) =
                (Arc::clone(&links[index]), Address { number: current.number, member: members[index] });
            async move {
                let answer = timeout(patience, link.call(to, question)).await;
                (index, answer.unwrap_or_else(|_| Err(format!("no answer within {patience:?}"))))
            }
        };
        let mut out = FuturesUnordered::new();
        out.extend(round.open().into_iter().map(ask));
        loop {
            let (from, answer) = out.next().await.expect("a round ends with its last answer");
            match round.on(from, answer) {
                Step::Ask(asks) => out.extend(asks.into_iter().map(ask)),
                Step::Done(outcome) => return outcome,
            }
        }
    }
}

fn same_members(one: &Configuration, other: &Configuration) -> bool {
    one.members.len() == other.members.len() && one.members.iter().all(|member| other.has(member.id))
}
