//! The whole cluster in virtual time, from a seed: the real cores of replicas, AllocSvrs, arbiters and the quorum's rounds over a simulated
//! network, disks and clocks, with faults, and a checker on what callers see. Single-threaded; a seed gives one history,
//! on any machine. Compiled for tests and under the feature `simulation`, for `cargo xtask chaos sim`.

mod alloc;
mod arbiter;
mod chance;
mod checker;
mod client;
mod clock;
mod cluster;
mod cx;
mod disk;
mod explorations;
mod explore;
mod faults;
mod history;
mod memory;
mod message;
mod mix;
#[cfg(test)]
mod moves;
mod network;
mod owner;
mod quorum;
mod replacer;
mod replica;
mod request;
mod role;
#[cfg(test)]
mod tests;
mod trial;
mod wild;
mod world;

use std::fmt;

pub use explorations::{Exploration, ExplorationVerdict, explorations};
use trial::Trial;

/// The outcome of one seed.
#[derive(Clone, Debug)]
pub struct SeedOutcome {
    /// The whole history as one number: the same for the same seed.
    pub history: u64,
    /// Events in it.
    pub events: u64,
    /// Requests that were answered with numbers.
    pub answers: u64,
    /// The promise that was broken, if one was.
    pub broken: Option<String>,
    /// The last lines of the history, as many as were asked for.
    pub lines: Vec<String>,
}

impl fmt::Display for SeedOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events, {} answers, history {:016x}", self.events, self.answers, self.history)
    }
}

/// Runs the cluster of `seed` through its faults, and keeps the last `lines` of its history. Equal for equal seeds.
pub fn run(seed: u64, lines: usize) -> SeedOutcome {
    let verdict = Trial { lines, ..Trial::all() }.run(seed);
    SeedOutcome {
        history: verdict.hash,
        events: verdict.events,
        answers: verdict.answers,
        broken: verdict.broken.map(|broken| broken.to_string()),
        lines: verdict.lines,
    }
}

/// The true time, which only the world knows, in nanoseconds.
pub(crate) type At = u64;

/// Which process, by its number.
pub(crate) type Place = usize;

pub(crate) const MICRO: At = 1_000;
pub(crate) const MILLI: At = 1_000_000;
pub(crate) const SECOND: At = 1_000_000_000;
