//! What a replica asks the others before it serves: for copies of what they have, when it lost or restored its disk
//! (what `rejoin_plan` decides), and whether they are in use, when it is new. Owns the links to them; `serve` calls it.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use super::config::PeersConfig;
use super::identity::Identity;
use super::rejoin_plan::{Bid, Event, RejoinPlan, Step};
use crate::store::merge::LayoutsDiffer;
use crate::store::quorum::{Link, Remote};
use seqsvr_core::clock;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::store::Address;
use seqsvr_core::store::message::{Answer, Copy, Question};
use seqsvr_core::store::{Sizes, SizesError};
use seqsvr_rpc::security::{Call, SecurityError};

/// How long one replica may take to answer with a copy.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two questions whether another one is in use.
const AGAIN: Duration = Duration::from_millis(100);

/// Why nothing could be asked of the other replicas, or what they said.
#[derive(Debug, Error)]
pub enum PeersError {
    /// There is no section `[peers]`.
    #[error("a rejoin copies from the other replicas: list them in [peers] replicas")]
    Missing,
    /// N and W do not fit together.
    #[error("[peers]: {0}")]
    Sizes(#[from] SizesError),
    /// N = 1.
    #[error("[peers] lists no other replica, so there is nothing to copy from")]
    Alone,
    /// One replica stands twice: it would be taken for two.
    #[error("[peers]: replica {0} is listed twice")]
    Twice(String),
    /// Certificates, tokens or addresses are wrong.
    #[error("[peers]: {0}")]
    Security(#[from] SecurityError),
    /// A new replica beside some that are in use would vote without what they confirmed.
    #[error("{0} is in use already, so this replica is a lost one: start with --rejoin instead of --init")]
    InUse(String),
    /// A new replica beside some that do not answer could be a lost one.
    #[error(
        "{addr} does not say whether it is in use ({why}): start it, too (with --init if the Set is new); --init --without-peers asks \
         nobody, and if the Set was ever in use, numbers can then be handed out twice"
    )]
    Silent {
        /// Which one.
        addr: String,
        /// What came instead of an answer.
        why: String,
    },
    /// Another one took its place.
    #[error(
        "{name} is no member of configuration {number} of the Set ({members}): it was replaced; remove its files, and start it with \
         --join under another name to take it in again"
    )]
    Removed {
        /// Its name.
        name: String,
        /// Of the configuration.
        number: u64,
        /// Those that are.
        members: String,
    },
    /// There is no section `[peers]`.
    #[error(
        "list the other replicas in [peers] replicas, or replicas = [] if there are none; --init asks them whether the Set is new"
    )]
    Unlisted,
    /// The copies do not belong together.
    #[error(transparent)]
    Layouts(#[from] LayoutsDiffer),
}

/// The other replicas of the Set.
pub(super) struct Peers {
    links: Vec<(String, Remote)>,
    sizes: Sizes,
    rejoin_wait: Duration,
    init: Duration,
}

impl Peers {
    /// Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// What is wrong with the section.
    pub(super) fn new(config: &PeersConfig, identity: &Identity) -> Result<Self, PeersError> {
        let n = config.replicas.len() + 1;
        let write = config.write.map_or_else(|| Sizes::majority(n).map(Sizes::w), Ok)?;
        let sizes = Sizes::new(n, write)?;
        let call = Call::load(&config.security)?;
        let mut links: Vec<(String, Remote)> = Vec::new();
        for addr in &config.replicas {
            if links.iter().any(|(other, _)| other == addr) {
                return Err(PeersError::Twice(addr.clone()));
            }
            links.push((addr.clone(), Remote::new(addr, &call, &identity.cluster, identity.set, PATIENCE)?));
        }
        let (rejoin_wait, init) =
            (Duration::from_millis(config.rejoin_wait_ms), Duration::from_millis(config.init_ms));
        Ok(Self { links, sizes, rejoin_wait, init })
    }

    /// Makes sure that none of the others is in use: a new replica belongs to a new Set. One that does not answer might be. Asks
    /// until all have answered, or the configured time is over.
    ///
    /// # Errors
    ///
    /// [`PeersError::InUse`], [`PeersError::Silent`].
    pub(super) async fn all_new(&self) -> Result<(), PeersError> {
        let until = clock::now() + self.init;
        loop {
            let all = join_all((0..self.links.len()).map(|index| self.is_used(index))).await;
            let mut silent = None;
            for (addr, used) in self.links.iter().map(|(addr, _)| addr.clone()).zip(all) {
                match used {
                    Ok(true) => return Err(PeersError::InUse(addr)),
                    Ok(false) => {}
                    Err(why) => silent = Some(PeersError::Silent { addr, why }),
                }
            }
            match silent {
                None => return Ok(()),
                Some(silent) if clock::now() >= until => return Err(silent),
                Some(_) => sleep(AGAIN).await,
            }
        }
    }

    async fn is_used(&self, index: usize) -> Result<bool, String> {
        let link = &self.links[index].1;
        let asked = self.init.min(PATIENCE);
        let described = timeout(asked, link.ask(Question::Describe)).await;
        match described.unwrap_or_else(|_| Err(format!("no answer within {asked:?}")))? {
            Answer::Described(what) => Ok(what.in_use),
            _ => Err("it answers another question".to_owned()),
        }
    }

    /// Everything that was confirmed, once enough of the others have answered; asks until then. `kept` is what could still
    /// be read here.
    ///
    /// # Errors
    ///
    /// [`PeersError::Layouts`], [`PeersError::Alone`].
    pub(super) async fn copy(&self, kept: Option<Copy>) -> Result<Copy, PeersError> {
        if self.links.is_empty() {
            return Err(PeersError::Alone);
        }
        tracing::info!("waiting {:?} until no caller counts on the lost state", self.rejoin_wait);
        let mut plan = RejoinPlan::new(self.sizes, clock::now(), self.rejoin_wait, kept, Flaws::default());
        let mut copies = FuturesUnordered::new();
        let mut event = Event::Wake;
        loop {
            match plan.on(clock::now(), event)? {
                Step::Vote(copy) => return Ok(copy),
                Step::Ask(others, bid) => {
                    copies.extend(
                        others
                            .into_iter()
                            .map(|from| async move { (from, self.copy_after(from, bid).await) }),
                    );
                }
            }
            let due = plan.wake_at().map(|at| sleep(at.since(clock::now())));
            event = tokio::select! {
                Some((from, copy)) = copies.next() => self.answered(from, copy, plan.progress()),
                Some(()) = async { due?.await; Some(()) } => Event::Wake,
            };
        }
    }

    fn answered(&self, from: usize, copy: Result<Copy, String>, (copied, needed): (usize, usize)) -> Event {
        if let Err(why) = &copy {
            let (addr, _) = &self.links[from];
            tracing::warn!("{addr} cannot be copied: {why}; {copied} of {needed} are; trying again");
        }
        Event::Answered { from, copy: copy.ok() }
    }

    async fn copy_after(&self, index: usize, bid: Option<Bid>) -> Result<Copy, String> {
        if let Some(Bid { number, term }) = bid {
            tracing::info!("{} is asked to promise term {term}", self.links[index].0);
            // The copy tells whether it did.
            let _ = self.links[index].1.call(Address { number, member: 0 }, Question::Promise { term }).await;
        }
        self.copy_of(index).await
    }

    async fn copy_of(&self, index: usize) -> Result<Copy, String> {
        match self.links[index].1.ask(Question::Copy).await {
            Ok(Answer::Copy(copy)) => Ok(copy),
            Ok(Answer::Misaddressed { why, .. }) => Err(why.to_string()),
            Ok(_) => Err("it answers another question".to_owned()),
            Err(why) => Err(why),
        }
    }
}
