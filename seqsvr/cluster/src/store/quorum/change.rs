//! Changing the configuration while the stores serve: carries the rounds of a change out, as often as it takes. Whoever
//! runs it again after it was cut off goes on where it ended. `seqsvr store replace` and `seqsvr store lease` call it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use super::rounds::{Ask, ChangeError, ChangeRound, Step, Timed, asked};
use super::{Link, Quorum};
use crate::store::merge::LayoutsDiffer;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::store::configuration::CannotChange;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::message::{Description, Phase};
use seqsvr_core::store::{Address, Configuration, Member};

/// How often a change is begun anew after others were in the way.
pub(super) const ATTEMPTS: usize = 8;

/// What a change came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The configuration in force.
    pub configuration: Arc<Configuration>,
    /// It was so before.
    pub already: bool,
}

/// Why the configuration was not changed.
#[derive(Debug, Error)]
pub enum Unchanged {
    #[error("no configuration is stored yet: an AllocSvr stores it once all stores answer")]
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
    #[error(transparent)]
    Cannot(#[from] CannotChange),
    #[error(
        "the file is of sections of {file} uids, but the Set has sections of {stored}; choose another Set"
    )]
    Sections { stored: u32, file: u32 },
    #[error("the file has no layout; use the one that seqsvr store give wrote")]
    File,
    #[error(
        "the table of the Set still has some of these uids, or there is none yet: an arbiter takes them out; \
         start it, and run the same command again"
    )]
    Table,
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
    /// `Unchanged`. After `Unchanged::Unavailable` the Set may stand still until it is called again.
    pub async fn replace(&self, old: &str, new: &str) -> Result<Changed, Unchanged> {
        let link = self.ways.dial(new).map_err(|why| Unchanged::Silent { addr: new.to_owned(), why })?;
        let what = self.describe(new, &link).await?;
        self.ways.keep(what.id, &link);
        if let Some(taken_in) = &what.configuration {
            self.follow(Arc::clone(taken_in));
        }
        // A change that cannot reach W of the old members would seal the others, who then answer nobody.
        self.serving().await?;
        let newcomer = Member { id: what.id, name: what.name.clone(), addr: new.to_owned() };
        self.reconfigure(|current| replacement(current, old, &what, &newcomer)).await
    }

    /// Makes `lease` the lease of the Set. A shorter one is granted at once, and takers go on waiting for the longest one that
    /// anybody may still hold, until that has passed and the second step follows.
    ///
    /// # Errors
    ///
    /// `Unchanged`. Cut off at any moment the Set serves, and takers wait longer than they need to; to be called again.
    pub async fn set_lease(&self, lease: Duration) -> Result<Changed, Unchanged> {
        self.serving().await?;
        let mut already = true;
        for _ in 0..ATTEMPTS {
            let first = self.reconfigure(|current| Ok(current.toward_lease(lease)?)).await?;
            already &= first.already && first.configuration.transition.is_none();
            if first.configuration.transition.is_none() {
                return Ok(Changed { already, ..first });
            }
            // In force by now: whoever read under an earlier one asked before.
            sleep(first.configuration.awaited() * 11 / 10).await;
            // Another one that came meanwhile has to be waited for itself.
            let number = first.configuration.number;
            let settled =
                |current: &Configuration| Ok(current.settled().filter(|_| current.number == number));
            self.reconfigure(settled).await?;
        }
        Err(Unchanged::Unavailable("others change the stores at the same time".to_owned()))
    }

    /// Makes sure that as many members of the configuration in force serve as it needs.
    pub(super) async fn serving(&self) -> Result<(), Unchanged> {
        self.described(usize::MAX).await;
        let current = self.configuration().ok_or(Unchanged::Unconfigured)?;
        let links = self.ways.to(current.members.iter().map(|one| (one.id, one.addr.clone())));
        let ask = async |link: &Arc<dyn Link>| timeout(self.patience, link.ask(Question::Describe)).await;
        let serves = |answer: &_| {
            matches!(answer, Ok(Ok(Answer::Described(Description { phase: Phase::Serving, .. }))))
        };
        let serving = join_all(links.iter().map(ask)).await.iter().filter(|answer| serves(answer)).count();
        if serving < current.write {
            let line = format!("{serving} of {} needed stores answer", current.write);
            return Err(Unchanged::Unavailable(line));
        }
        Ok(())
    }

    /// Makes the changes, one after the other, that `next` asks for of the configuration in force, until it asks for none.
    pub(super) async fn reconfigure(
        &self,
        next: impl Fn(&Configuration) -> Result<Option<Configuration>, Unchanged>,
    ) -> Result<Changed, Unchanged> {
        let mut why = "others change the stores at the same time".to_owned();
        let mut already = true;
        for _ in 0..ATTEMPTS {
            self.described(usize::MAX).await;
            let current = self.configuration().ok_or(Unchanged::Unconfigured)?;
            let outcome = match next(&current)? {
                Some(next) => self.change(Arc::clone(&current), Arc::new(next)).await,
                // It may have been cut off before enough had it.
                None => match self.complete(&current).await {
                    Ok(()) => return Ok(Changed { configuration: current, already }),
                    Err(error) => Err(error),
                },
            };
            already = false;
            match outcome {
                Ok(configuration) => {
                    self.follow(Arc::clone(&configuration));
                    // Else it was another change, which had to be completed first.
                    if next(&configuration)?.is_none() {
                        return Ok(Changed { configuration, already });
                    }
                }
                Err(ChangeError::Layouts(differ)) => return Err(Unchanged::Layouts(differ)),
                Err(ChangeError::Unavailable(reason)) => why = reason,
                Err(ChangeError::Newer(newer)) => {
                    if self.complete(&newer).await.is_ok() {
                        self.follow(newer);
                    }
                }
                Err(ChangeError::Outbid(_) | ChangeError::Another(_)) => {
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
    pub(super) async fn complete(&self, newest: &Arc<Configuration>) -> Result<(), ChangeError> {
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

    async fn describe(&self, addr: &str, link: &Arc<dyn Link>) -> Result<Description, Unchanged> {
        let silent = |why| Unchanged::Silent { addr: addr.to_owned(), why };
        match link.ask(Question::Describe).await.map_err(silent)? {
            Answer::Described(what) if what.id != 0 => Ok(what),
            _ => Err(silent("it answers another question".to_owned())),
        }
    }
}

/// The configuration with the store `new`, which is `what`, in the place of the member called `old`. `None`: it is so already.
fn replacement(
    current: &Configuration,
    old: &str,
    what: &Description,
    new: &Member,
) -> Result<Option<Configuration>, Unchanged> {
    let addr = || new.addr.clone();
    if current.has(new.id) && current.named(old).is_none_or(|one| one.id == new.id) {
        return Ok(None);
    }
    if current.named(old).is_none() {
        let members = current.members.iter().map(|one| one.name.clone()).collect::<Vec<_>>().join(", ");
        return Err(Unchanged::Unknown { old: old.to_owned(), number: current.number, members });
    }
    if what.phase != Phase::Joining {
        return Err(Unchanged::NotNew { addr: addr(), name: new.name.clone() });
    }
    if current.named(&new.name).is_some() {
        return Err(Unchanged::Name { addr: addr(), name: new.name.clone() });
    }
    if what.layout.is_some_and(|layout| layout != current.layout) {
        let (section_size, step) = (current.layout.section_size, current.layout.step);
        return Err(Unchanged::Layout { section_size, step });
    }
    Ok(Some(current.replacing(old, new.clone())))
}
