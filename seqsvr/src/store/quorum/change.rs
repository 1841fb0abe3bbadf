//! Replacing a store while the others serve: carries the rounds of a change out, as often as it takes. Whoever runs it again after
//! it was cut off goes on where it ended. `seqsvr store replace` calls it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use super::rounds::{Ask, ChangeError, ChangeRound, Step, Timed, asked};
use super::{Link, Quorum};
use crate::flaws::Flaws;
use crate::replica::message::{Description, Phase};
use crate::replica::{Answer, LayoutsDiffer, Question};
use crate::store::{Address, Configuration, Member};

/// How often a change is begun anew after others were in the way.
const ATTEMPTS: usize = 8;

/// What replacing came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// The configuration in force.
    pub(crate) configuration: Arc<Configuration>,
    /// It was so before.
    pub(crate) already: bool,
}

/// Why a store was not replaced.
#[derive(Debug, Error)]
pub(crate) enum ReplaceError {
    #[error(
        "no configuration is stored yet: an AllocSvr of this version stores it once all stores answer and are of this version, too"
    )]
    Unconfigured,
    #[error("{old} is no member of configuration {number} of the Set; its members are {members}")]
    Unknown { old: String, number: u64, members: String },
    #[error("{addr} does not answer: {why}; start it with: seqsvr store --config FILE --join")]
    Silent { addr: String, why: String },
    #[error(
        "{addr} is {name}, which does not wait to be taken in; start a new store with: seqsvr store --config FILE --join"
    )]
    NotNew { addr: String, name: String },
    #[error("the new store {addr} is called {name}, as a member is; give it another name")]
    Name { addr: String, name: String },
    #[error(
        "the new store keeps other sections than the Set: set section_size = {section_size} and step = {step} in its file, remove its files, and start it again"
    )]
    Layout { section_size: u32, step: u32 },
    #[error("the stores disagree: {0}")]
    Layouts(LayoutsDiffer),
    #[error("{0}; nothing is lost: run the same command again")]
    Unavailable(String),
}

impl Quorum {
    /// Puts the store at `new` in the place of the member called `old`.
    ///
    /// # Errors
    ///
    /// [`ReplaceError`]. After [`ReplaceError::Unavailable`] the Set may stand still until it is called again.
    pub(crate) async fn replace(&self, old: &str, new: &str) -> Result<Replaced, ReplaceError> {
        let link = self.ways.dial(new).map_err(|why| ReplaceError::Silent { addr: new.to_owned(), why })?;
        let what = self.describe(new, &link).await?;
        self.ways.keep(what.id, &link);
        if let Some(taken_in) = &what.configuration {
            self.follow(Arc::clone(taken_in));
        }
        let newcomer = Member { id: what.id, name: what.name.clone(), addr: new.to_owned() };
        let mut why = "others change the stores at the same time".to_owned();
        for attempt in 0..ATTEMPTS {
            self.described(usize::MAX).await;
            let current = self.configuration().ok_or(ReplaceError::Unconfigured)?;
            let next = match self.next(&current, old, &what, &newcomer) {
                Ok(next) => next,
                Err(error) => return Err(error),
            };
            let already = next.is_none();
            let outcome = match next {
                Some(next) => self.change(Arc::clone(&current), Arc::new(next)).await,
                None => self.complete(&current).await.map(|()| Arc::clone(&current)),
            };
            match outcome {
                Ok(configuration) if already || configuration.has(newcomer.id) => {
                    self.follow(Arc::clone(&configuration));
                    return Ok(Replaced { configuration, already: already && attempt == 0 });
                }
                // Another change was to be completed first.
                Ok(configuration) => self.follow(configuration),
                Err(ChangeError::Layouts(differ)) => return Err(ReplaceError::Layouts(differ)),
                Err(ChangeError::Unavailable(reason)) => why = reason,
                Err(ChangeError::Newer(newer)) => {
                    // It may have been cut off before enough had it.
                    if self.complete(&newer).await.is_ok() {
                        self.follow(newer);
                    }
                }
                Err(ChangeError::Outbid(_) | ChangeError::Another(_)) => {
                    sleep(Duration::from_millis(rand::random_range(20..200))).await;
                }
            }
        }
        Err(ReplaceError::Unavailable(why))
    }

    /// `None`: it is so already.
    fn next(
        &self,
        current: &Configuration,
        old: &str,
        what: &Description,
        new: &Member,
    ) -> Result<Option<Configuration>, ReplaceError> {
        let addr = || new.addr.clone();
        if current.has(new.id) && current.named(old).is_none_or(|one| one.id == new.id) {
            return Ok(None);
        }
        if current.named(old).is_none() {
            let members = current.members.iter().map(|one| one.name.clone()).collect::<Vec<_>>().join(", ");
            return Err(ReplaceError::Unknown { old: old.to_owned(), number: current.number, members });
        }
        if what.phase != Phase::Joining {
            return Err(ReplaceError::NotNew { addr: addr(), name: new.name.clone() });
        }
        if current.named(&new.name).is_some() {
            return Err(ReplaceError::Name { addr: addr(), name: new.name.clone() });
        }
        if what.layout.is_some_and(|layout| layout != current.layout) {
            let (section_size, step) = (current.layout.section_size, current.layout.step);
            return Err(ReplaceError::Layout { section_size, step });
        }
        Ok(Some(current.replacing(old, new.clone())))
    }

    /// Changes `current` to `next`, or completes the change that was begun before.
    async fn change(
        &self,
        current: Arc<Configuration>,
        next: Arc<Configuration>,
    ) -> Result<Arc<Configuration>, ChangeError> {
        let (mut next, mut least) = (next, 0);
        for _ in 0..ATTEMPTS {
            // Larger than any that was seen, and nobody else's.
            let ballot = (((least >> 32) + 1) << 32) | u64::from(rand::random::<u32>());
            let members = asked(&current, &next);
            let round = ChangeRound::new(Arc::clone(&current), Arc::clone(&next), ballot, Flaws::default());
            match self.carry(&current, &next, members, round).await {
                Ok(()) => return Ok(next),
                Err(ChangeError::Outbid(higher)) => least = higher,
                Err(ChangeError::Another(accepted)) => (next, least) = (accepted, ballot),
                Err(error) => return Err(error),
            }
            sleep(Duration::from_millis(rand::random_range(5..50))).await;
        }
        Err(ChangeError::Unavailable("others change the stores at the same time".to_owned()))
    }

    /// Makes sure that as many vote in `newest` as it needs.
    async fn complete(&self, newest: &Arc<Configuration>) -> Result<(), ChangeError> {
        let round = ChangeRound::completing(Arc::clone(newest), Flaws::default());
        self.carry(newest, newest, asked(newest, newest), round).await
    }

    async fn carry(
        &self,
        current: &Arc<Configuration>,
        next: &Configuration,
        members: Vec<u64>,
        round: ChangeRound,
    ) -> Result<(), ChangeError> {
        let addr = |id: u64| {
            let of =
                |one: &Configuration| one.members.iter().find(|one| one.id == id).map(|one| one.addr.clone());
            (id, of(next).or_else(|| of(current)).unwrap_or_default())
        };
        let links = self.ways.to(members.iter().map(|&id| addr(id)));
        let patience = self.patience;
        let ask = |(index, question): Ask| {
            let (link, to) =
                (Arc::clone(&links[index]), Address { number: current.number, member: members[index] });
            async move {
                let answer = timeout(patience, link.call(to, question)).await;
                (index, answer.unwrap_or_else(|_| Err(format!("no answer within {patience:?}"))))
            }
        };
        let mut round = Timed::new(round, (self.clock)(), patience, Flaws::default());
        let mut out = FuturesUnordered::new();
        out.extend(round.open().into_iter().map(ask));
        loop {
            let (from, answer) = out.next().await.expect("a round ends with its last answer");
            match round.on((self.clock)(), from, answer) {
                Step::Ask(asks) => out.extend(asks.into_iter().map(ask)),
                Step::Done(outcome) => return outcome,
            }
        }
    }

    async fn describe(&self, addr: &str, link: &Arc<dyn Link>) -> Result<Description, ReplaceError> {
        let silent = |why| ReplaceError::Silent { addr: addr.to_owned(), why };
        match link.ask(Question::Describe).await.map_err(silent)? {
            Answer::Described(what) if what.id != 0 => Ok(what),
            _ => Err(silent("it is of an earlier version".to_owned())),
        }
    }
}
