//! One run: a seed, a mix of faults, a time of faults and a time of quiet, and what the checker says.

use super::chance::Chance;
use super::checker::Broken;
use super::clock::Shows;
use super::cluster::{Arbiters, Shape, SimulatedCluster};
use super::faults::Faults;
use super::history::RunHistory;
use super::mix::Mix;
use super::{At, SECOND};
use seqsvr_core::flaws::Flaws;

/// How long after the last fault every section must be served at the latest: an arbiter's takeover, a damped node's return and a lease.
const QUIET: At = 45 * SECOND;

/// How seeds are run.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) mix: Mix,
    /// Changes the drawn shape.
    pub(crate) bend: fn(Shape) -> Shape,
    pub(crate) flaws: Flaws,
    pub(crate) clocks: Shows,
    /// How long things go wrong.
    pub(crate) faults: At,
    /// How many lines of its history to keep.
    pub(crate) lines: usize,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The history as one number.
    pub(crate) hash: u64,
    pub(crate) events: u64,
    pub(crate) answers: u64,
    pub(crate) broken: Option<Broken>,
    /// The last lines of the history.
    pub(crate) lines: Vec<String>,
}

#[cfg(test)]
impl Verdict {
    /// Numbers were wrong, which is worse than none.
    pub(crate) fn is_wrong(&self) -> bool {
        self.broken.as_ref().is_some_and(|broken| !matches!(broken, Broken::Silent { .. }))
    }
}

impl Trial {
    /// Everything goes wrong, and no rule is broken.
    pub(crate) fn all() -> Self {
        let (mix, flaws, clocks) = (Mix::all(), Flaws::default(), Shows::Boot);
        Self { mix, bend: |shape| shape, flaws, clocks, faults: 30 * SECOND, lines: 0 }
    }

    /// The same seed gives the same verdict.
    pub(crate) fn run(&self, seed: u64) -> Verdict {
        let mut chance = Chance::new(seed);
        let drawn = Shape::drawn(&mut chance, self.flaws);
        let shape = Shape { clocks: self.clocks, ..(self.bend)(drawn) };
        let mut cluster = SimulatedCluster::new(shape, chance, RunHistory::new(self.lines));
        Faults::new(self.mix.clone()).run(&mut cluster, self.faults);
        let world = &mut cluster.world;
        world.run_until(world.now() + SECOND);
        if cluster.shape.arbiters == Arbiters::Real {
            come_back(&mut cluster);
        }
        let world = &cluster.world;
        let history = &world.history;
        Verdict {
            hash: history.hash(),
            events: history.events(),
            answers: world.checker.answers(),
            broken: world.checker.broken().cloned(),
            lines: history.lines().map(str::to_owned).collect(),
        }
    }
}

/// Every section must be served again soon after the last fault.
fn come_back(cluster: &mut SimulatedCluster) {
    let (owed, caller) = (cluster.one_of_each(), cluster.callers[0]);
    cluster.world.insist(caller, owed);
    let until = cluster.world.now() + QUIET;
    while cluster.world.now() < until && cluster.world.checker.broken().is_none() {
        let next = cluster.world.now() + SECOND / 2;
        cluster.world.run_until(next);
        if cluster.world.owed(caller).is_empty() {
            return;
        }
    }
    let now = cluster.world.now();
    if let Some(&uid) = cluster.world.owed(caller).first() {
        cluster.world.checker.silent(now, uid);
    }
}
