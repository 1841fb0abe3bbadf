//! N replicas as one store (S5): a [`SectionStore`] and a [`RoutingTableStore`] that ask StoreSvrs over [`Link`]s and count
//! their answers. Owns no durable state. The rounds, which are pure, decide on the questions and judge the answers; this
//! shell carries the questions. AllocSvrs and arbiters open one for each Set.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

use crate::store::merge::merge;
use crate::store::survey;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::ids::Epoch;
use seqsvr_core::routing::Table;
use seqsvr_core::store::backup::{Backup, SILENT};
use seqsvr_core::store::message::Copy;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::tables::StoreHealth;
use seqsvr_core::store::tables::{Reading, Revisions, RoutingTableStore, WriteError};
use seqsvr_core::store::{
    Address, Ceiling, Claimed, Layout, Owner, RaiseError, Ranges, SectionStore, Sizes, StoreError,
};

mod change;
mod completing;
mod first;
mod moving;
mod operator;
mod remote;
pub mod rounds;
#[cfg(test)]
mod tests;
mod verify;
mod voters;

use rounds::{
    ActingRound, Ask, ClaimRound, PromiseRound, RaiseRound, ReadRound, ReleaseRound, Round, StandingClaim,
    Step, WriteRound,
};

pub use change::ChangedConfiguration;
pub use moving::Moved;
pub use remote::Remote;
use voters::Voters;
pub use voters::{Tally, Ways};

/// The way to one replica.
#[async_trait]
pub trait Link: Send + Sync {
    /// Asks, and returns the answer, or why there is none. May take as long as the question's own wait and the network; the
    /// caller gives up in time.
    async fn ask(&self, question: Question) -> Result<Answer, String>;

    /// Asks a certain member, for a certain configuration.
    async fn call(&self, to: Address, question: Question) -> Result<Answer, String> {
        let _ = to;
        self.ask(question).await
    }
}

/// Claims that are remembered. A forgotten one only means that its owner needs the replicas that took part in it.
const REMEMBERED: usize = 1_024;

/// See the module.
pub struct Quorum {
    /// The members to ask: exchanged as a whole, so that every round asks the members of one configuration.
    voters: ArcSwap<Voters>,
    ways: Arc<Ways>,
    patience: Duration,
    /// An arbiter that was silent for this long has ended.
    silent: Duration,
    /// This role was found to be configured as the stores are.
    agreed: AtomicBool,
    /// The claims that stood, newest last: a replica that was down during one is given it.
    claims: Mutex<VecDeque<Arc<StandingClaim>>>,
}

impl Quorum {
    /// Reaches replicas as `ways` knows, and more when a configuration names them. Each question may take `patience` beside its own
    /// wait.
    pub(super) fn over(ways: Ways, sizes: Sizes, patience: Duration) -> Self {
        Self {
            voters: ArcSwap::from_pointee(Voters { configuration: None, sizes }),
            ways: Arc::new(ways),
            patience,
            silent: SILENT,
            agreed: AtomicBool::new(false),
            claims: Mutex::default(),
        }
    }

    /// Carries a round out. Questions whose answers are no longer needed are dropped.
    async fn run<R: Round>(&self, round: impl FnOnce(Sizes) -> R) -> R::Outcome {
        self.run_in(round).await.0
    }

    /// The same, with the voters that it asked.
    async fn run_in<R: Round>(&self, round: impl FnOnce(Sizes) -> R) -> (R::Outcome, Arc<Voters>) {
        self.learn().await;
        let voters = self.voters.load_full();
        let mut tally = Tally::default();
        let outcome = self.carry_out(round(voters.sizes), &voters, &mut tally).await;
        if let Some(newer) = tally.newer {
            self.follow(newer);
        } else if tally.answered.len() >= voters.sizes.w() {
            self.bring_up(&voters, &tally.behind);
        }
        (outcome, voters)
    }

    async fn reading(&self, round: impl FnOnce(Sizes) -> ReadRound) -> Result<Reading, StoreError> {
        let (outcome, voters) = self.run_in(round).await;
        let bounds = voters.configuration.as_ref().map(|one| one.bounds());
        outcome.map(|reading| Reading { bounds, ..reading })
    }

    async fn carry_out<R: Round>(&self, mut round: R, voters: &Voters, tally: &mut Tally) -> R::Outcome {
        let mut out = FuturesUnordered::new();
        out.extend(round.open().into_iter().map(|ask| self.ask(voters, ask)));
        loop {
            let (from, answer) = out.next().await.expect("a round ends with its last answer");
            let answer = answer.and_then(|answer| tally.note(from, answer));
            match round.on(from, answer) {
                Step::Ask(asks) => out.extend(asks.into_iter().map(|ask| self.ask(voters, ask))),
                Step::Done(outcome) => return outcome,
            }
        }
    }

    /// The copy of each member, or why it gave none.
    async fn copies(&self) -> (Arc<Voters>, Vec<Result<Copy, String>>) {
        self.learn().await;
        loop {
            let voters = self.voters.load_full();
            let asked = (0..voters.sizes.n()).map(|index| self.ask(&voters, (index, Question::Copy)));
            let mut tally = Tally::default();
            let mut copies = Vec::new();
            for (from, answer) in join_all(asked).await {
                copies.push(match answer.and_then(|answer| tally.note(from, answer)) {
                    Ok(Answer::Copy(copy)) => Ok(copy),
                    Ok(_) => Err("it answers another request".to_owned()),
                    Err(why) => Err(why),
                });
            }
            if let Some(newer) = tally.newer {
                self.follow(newer);
            }
            // Under a newer configuration others are asked; numbers only grow, so that ends.
            if Arc::ptr_eq(&voters, &self.voters.load()) {
                return (voters, copies);
            }
        }
    }

    fn claims(&self) -> MutexGuard<'_, VecDeque<Arc<StandingClaim>>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, voters: &Voters, (to, question): Ask) -> (usize, Result<Answer, String>) {
        let wait = if let Question::Read { wait, .. } = question { wait } else { Duration::ZERO };
        let allowed = wait + self.patience;
        let (link, address) = self.way(voters, to);
        let answer = timeout(allowed, link.call(address, question)).await;
        (to, answer.unwrap_or_else(|_| Err(format!("no answer within {allowed:?}"))))
    }
}

#[async_trait]
impl SectionStore for Quorum {
    /// The newest epoch on any W replicas: of interest only where nothing else assigns sections.
    async fn newest_epoch(&self) -> Result<Epoch, StoreError> {
        self.run(rounds::EpochRound::new).await
    }

    async fn claim(&self, sections: &Ranges, owner: Owner, layout: Layout) -> Result<Claimed, StoreError> {
        let question = Question::Claim { sections: sections.to_vec(), owner, layout };
        let claimed = self.run(|sizes| ClaimRound::new(question, sizes, Flaws::default())).await?;
        let mut claims = self.claims();
        let earlier = claims.iter().position(|one| one.owner == owner).and_then(|index| claims.remove(index));
        if claims.len() == REMEMBERED {
            claims.pop_front();
        }
        let standing = StandingClaim { owner, layout, sections: sections.to_vec() };
        claims.push_back(Arc::new(standing.with(earlier.as_deref())));
        Ok(claimed)
    }

    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        if raises.is_empty() {
            return Vec::new();
        }
        let standing = self.claims().iter().rfind(|one| one.owner == owner).cloned();
        self.run(|sizes| RaiseRound::new(owner, standing, raises.to_vec(), sizes)).await
    }

    async fn release(&self, sections: &Ranges, owner: Owner) -> Result<(), StoreError> {
        let question = Question::Release { owner, sections: sections.to_vec() };
        self.run(|sizes| ReleaseRound::new(question, sizes)).await
    }

    /// Of any N - W + 1 replicas, at least one has each value that W replicas have confirmed.
    async fn backup(&self) -> Result<Backup, StoreError> {
        let (voters, copies) = self.copies().await;
        let needed = voters.sizes.n() - voters.sizes.w() + 1;
        let why: Vec<String> = copies.iter().filter_map(|copy| copy.as_ref().err().cloned()).collect();
        let copies: Vec<Copy> = copies.into_iter().flatten().collect();
        if copies.len() < needed {
            let line =
                format!("{} of {needed} needed replicas gave a copy ({})", copies.len(), why.join("; "));
            return Err(StoreError::Unavailable(line));
        }
        let merged = merge(copies).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(merged.into())
    }
}

#[async_trait]
impl RoutingTableStore for Quorum {
    async fn read(&self, known: &Revisions, wait: Duration) -> Result<Reading, StoreError> {
        self.reading(|sizes| ReadRound::new(known, wait, sizes, Flaws::default())).await
    }

    async fn read_table(&self, known: &Revisions, wait: Duration) -> Result<Reading, StoreError> {
        let round = |sizes| ReadRound::new(known, wait, sizes, Flaws::default()).of_the_table_only();
        self.reading(round).await
    }

    async fn promise(&self, term: u64) -> Result<Option<Arc<Table>>, WriteError> {
        self.run(|sizes| PromiseRound::new(term, sizes)).await
    }

    async fn write(&self, table: &Arc<Table>) -> Result<(), WriteError> {
        self.run(|sizes| WriteRound::new(Arc::clone(table), sizes)).await
    }

    async fn acting(&self, term: u64) -> Result<u64, StoreError> {
        self.run(|sizes| ActingRound::new(term, sizes)).await
    }

    async fn unfinished(&self) -> Option<String> {
        self.report_unfinished().await
    }

    async fn survey(&self) -> Vec<StoreHealth> {
        let (voters, copies) = self.copies().await;
        let mut stores = survey::compare(self.addrs(&voters), copies);
        stores.sort_by(|one, other| one.addr.cmp(&other.addr));
        stores
    }
}
