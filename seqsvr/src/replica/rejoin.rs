//! How a replica that lost or restored its disk comes back, and what a new one asks before it begins: both need the others.
//!
//! A lost replica may have confirmed things that its disk does not have any more. Each of them was confirmed by W - 1 others
//! too, so that copies from any N - W + 1 others hold all of them. One case remains: a caller may still count an answer of the
//! lost life together with one that another replica gives after it was copied. So the copies are taken only after a pause
//! that is longer than any caller goes on counting answers (`settle_ms`, far above `patience_ms` of the callers).

use std::time::Duration;

use futures_util::future::join_all;
use thiserror::Error;

use super::config::PeersConfig;
use super::identity::Identity;
use super::merge::{LayoutsDiffer, merge};
use super::message::{Answer, Copy, Question};
use crate::rpc::security::{Call, SecurityError};
use crate::store::quorum::{Link, Remote, Sizes, SizesError};

/// Between two attempts to reach enough replicas.
const PAUSE: Duration = Duration::from_millis(500);
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
    /// How many copies hold everything that was confirmed: N - W + 1.
    needed: usize,
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
        Ok(Self { links, needed: sizes.n() - sizes.w() + 1 })
    }

    /// Makes sure that none of the others that can be reached is in use: a new replica belongs to a new Set.
    ///
    /// # Errors
    ///
    /// [`PeersError::InUse`].
    pub(super) async fn all_new(&self) -> Result<(), PeersError> {
        for (addr, copy) in self.copies().await {
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

    /// Everything that was confirmed, once enough of the others have answered; asks until then.
    ///
    /// # Errors
    ///
    /// [`PeersError::Layouts`].
    pub(super) async fn copy(&self, kept: Option<Copy>) -> Result<Copy, PeersError> {
        let needed = self.needed;
        loop {
            let mut copies = Vec::new();
            for (addr, copy) in self.copies().await {
                match copy {
                    Ok(copy) => copies.push(copy),
                    Err(why) => tracing::warn!("{addr} cannot be copied: {why}"),
                }
            }
            if copies.len() >= needed {
                copies.extend(kept);
                return Ok(merge(copies)?);
            }
            tracing::warn!("{} of {needed} replicas copied; trying again", copies.len());
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn copies(&self) -> Vec<(String, Result<Copy, String>)> {
        join_all(self.links.iter().map(|(addr, link)| copy_of(addr, link))).await
    }
}

async fn copy_of(addr: &str, link: &Remote) -> (String, Result<Copy, String>) {
    let copy = match link.ask(Question::Copy).await {
        Ok(Answer::Copy(copy)) => Ok(copy),
        Ok(_) => Err("it answers another question".to_owned()),
        Err(why) => Err(why),
    };
    (addr.to_owned(), copy)
}
