//! What a replica asks the others before it serves: for copies of what they have, when it lost or restored its disk (what
//! `comeback` decides), and whether they are in use, when it is new. Owns the links to them; `serve` calls it.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use thiserror::Error;
use tokio::time::sleep;

use super::comeback::{Comeback, Event, Step};
use super::config::PeersConfig;
use super::identity::Identity;
use super::merge::LayoutsDiffer;
use super::message::{Answer, Copy, Question};
use crate::clock;
use crate::flaws::Flaws;
use crate::rpc::security::{Call, SecurityError};
use crate::store::quorum::{Link, Remote, Sizes, SizesError};

/// How long one replica may take to answer with a copy.
const PATIENCE: Duration = Duration::from_secs(10);

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
    /// The copies do not belong together.
    #[error(transparent)]
    Layouts(#[from] LayoutsDiffer),
}

/// The other replicas of the Set.
pub(super) struct Peers {
    links: Vec<(String, Remote)>,
    sizes: Sizes,
    settle: Duration,
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
        // R is not asked for here; N always fits.
        let sizes = Sizes::new(n, n, write)?;
        let call = Call::load(&config.security)?;
        let mut links: Vec<(String, Remote)> = Vec::new();
        for addr in &config.replicas {
            if links.iter().any(|(other, _)| other == addr) {
                return Err(PeersError::Twice(addr.clone()));
            }
            links.push((addr.clone(), Remote::new(addr, &call, &identity.cluster, identity.set, PATIENCE)?));
        }
        Ok(Self { links, sizes, settle: Duration::from_millis(config.settle_ms) })
    }

    /// Makes sure that none of the others that can be reached is in use: a new replica belongs to a new Set.
    ///
    /// # Errors
    ///
    /// [`PeersError::InUse`].
    pub(super) async fn all_new(&self) -> Result<(), PeersError> {
        let copies = join_all((0..self.links.len()).map(|index| self.copy_of(index))).await;
        for (addr, copy) in self.links.iter().map(|(addr, _)| addr.clone()).zip(copies) {
            match copy {
                Ok(copy) if Copy { layout: None, ..copy.clone() } != Copy::default() => {
                    return Err(PeersError::InUse(addr));
                }
                Ok(_) => {}
                Err(why) => tracing::info!("{addr} cannot say whether it is in use: {why}"),
            }
        }
        Ok(())
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
        tracing::info!("waiting {:?} until no caller counts on the lost state", self.settle);
        let mut back = Comeback::new(self.sizes, clock::now(), self.settle, kept, Flaws::default());
        let mut copies = FuturesUnordered::new();
        let mut event = Event::Wake;
        loop {
            match back.on(clock::now(), event)? {
                Step::Vote(copy) => return Ok(copy),
                Step::Ask(others) => {
                    copies.extend(
                        others.into_iter().map(|from| async move { (from, self.copy_of(from).await) }),
                    );
                }
            }
            let due = back.wake_at().map(|at| sleep(at.since(clock::now())));
            event = tokio::select! {
                Some((from, copy)) = copies.next() => self.answered(from, copy, back.progress()),
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

    async fn copy_of(&self, index: usize) -> Result<Copy, String> {
        match self.links[index].1.ask(Question::Copy).await {
            Ok(Answer::Copy(copy)) => Ok(copy),
            Ok(_) => Err("it answers another question".to_owned()),
            Err(why) => Err(why),
        }
    }
}
