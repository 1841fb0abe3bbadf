//! The explorations state by state (docs/SIMULATION.md): each row has a few replicas and owners, and the rule that is broken in it, if
//! one is. The tests look at the first states of each; `cargo xtask chaos explore` at all of them.

use std::fmt;

use super::explore::{Explored, Protocol};
use super::owner::{Lane, OwnerPart, TAKEOVER};
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::store::Sizes;

/// A row: where it starts, and whether its promises must hold or break.
#[derive(Clone, Debug)]
pub struct Exploration {
    start: &'static str,
    flaw: Option<Flaw>,
    protocol: Protocol,
    /// How many of its states the tests look at.
    #[cfg(test)]
    pub(crate) first: usize,
}

/// The outcome of exploring a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplorationVerdict {
    /// The promises hold in every one of this number of states.
    Holds(usize),
    /// They hold in this number of states; there are more.
    HoldsSoFar(usize),
    /// A promise breaks.
    Breaks {
        /// How many states were seen before that.
        states: usize,
        /// The shortest history that breaks it, step by step.
        history: Vec<String>,
    },
}

impl fmt::Display for Exploration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Protocol { sizes, late, .. } = &self.protocol;
        write!(f, "{} ({}/{}", self.start, sizes.n(), sizes.w())?;
        if *late > 0 {
            write!(f, ", callers give up up to {late} times")?;
        }
        match self.flaw {
            Some(flaw) => write!(f, ", {flaw:?} broken)"),
            None => write!(f, ")"),
        }
    }
}

impl Exploration {
    /// Whether a rule is broken in it, so that a promise must be found broken.
    pub fn must_break(&self) -> bool {
        self.flaw.is_some()
    }

    /// The rule that is broken.
    #[cfg(test)]
    pub(crate) fn flaw(&self) -> Option<Flaw> {
        self.flaw
    }

    /// Looks at its states, shortest histories first: at all of them, at `most`, or as long as `goes_on` says so of how
    /// many were seen, and ends with the first broken promise. Some 50 bytes a state stay, and up to a kilobyte of 100,000 of them.
    pub fn explore(&self, most: usize, mut goes_on: impl FnMut(usize) -> bool) -> ExplorationVerdict {
        match self.protocol.explore(most, &mut goes_on) {
            Explored { states, broken: Some(history), .. } => ExplorationVerdict::Breaks { states, history },
            Explored { states, whole: true, .. } => ExplorationVerdict::Holds(states),
            Explored { states, .. } => ExplorationVerdict::HoldsSoFar(states),
        }
    }
}

/// All rows, those in which every rule holds first.
pub fn explorations() -> Vec<Exploration> {
    let holds = |start, protocol, first| row(start, None, protocol, first);
    let breaks = |start, flaw, protocol: fn(Flaws) -> Protocol| {
        row(start, Some(flaw), protocol(Flaws::only(flaw)), 100_000)
    };
    let (three, none) = (sizes(3, 2), Flaws::default());
    vec![
        holds(FENCE, fence(three, none), 2_000),
        holds(FENCE, hasty(2, fence(three, none)), 10_000),
        holds(FENCE, fence(sizes(5, 3), none), 5_000),
        holds(FENCE, fence(sizes(5, 4), none), 5_000),
        holds(HALF, half(none), 10_000),
        holds(THREE, versions(none), 10_000),
        holds(MEANWHILE, reading(none), 10_000),
        holds(MEANWHILE, hasty(1, reading(none)), 10_000),
        holds(RELEASE, release(three, none), 5_000),
        holds(RELEASE, release(sizes(5, 3), none), 5_000),
        holds(LATE_RELEASE, late_release(none), 20_000),
        holds(REPLACED, replaced(three, &[0], none), 20_000),
        holds(REPLACED, replaced(three, &[0, 2], none), 20_000),
        holds(REPLACED, replaced(sizes(5, 3), &[0], none), 5_000),
        holds(REPLACING, replacing(three, 1, none), 5_000),
        holds(REPLACING, replacing(three, 2, none), 5_000),
        breaks(REPLACED, Flaw::VoteWhileSealed, |flaws| replaced(sizes(3, 2), &[0], flaws)),
        breaks(REPLACED, Flaw::InstallWithoutState, |flaws| replaced(sizes(3, 2), &[0, 2], flaws)),
        breaks(FENCE, Flaw::FenceFromRead, |flaws| fence(sizes(3, 2), flaws)),
        breaks(HALF, Flaw::TableOnOne, half),
        breaks(MEANWHILE, Flaw::WriteBackUnanswered, reading),
        breaks(LATE_RELEASE, Flaw::LooseRelease, late_release),
    ]
}

const FENCE: &str = "a raise of the old owner has reached one replica, the new owner claims";
const REPLACED: &str = "the same, and the last replica is replaced: the change has come to its last step";
const REPLACING: &str = "the same, from the first step of the change on";
const HALF: &str = "an arbiter ended when one replica had its table";
const THREE: &str = "the same, and another replica missed the table before that";
const MEANWHILE: &str = "the same, while the new owner reads and the older two tables have been shown to it";
const RELEASE: &str = "the owner hears of the table, leaves and releases; the taker claims twice";
const LATE_RELEASE: &str = "the owner before the last releases late, while a third claims";

fn row(start: &'static str, flaw: Option<Flaw>, protocol: Protocol, first: usize) -> Exploration {
    #[cfg(not(test))]
    let _ = first;
    Exploration {
        start,
        flaw,
        protocol,
        #[cfg(test)]
        first,
    }
}

fn sizes(n: usize, w: usize) -> Sizes {
    Sizes::new(n, w).expect("these quorums meet")
}

/// Each owner does its part, and nothing else happens.
fn plain(sizes: Sizes, flaws: Flaws, owners: Vec<OwnerPart>) -> Protocol {
    Protocol {
        sizes,
        flaws,
        owners,
        claimed: 1,
        ticks: TAKEOVER,
        tables: Vec::new(),
        begun: None,
        late: 0,
        changes: 0,
        decided: false,
    }
}

/// The first owner's raise has reached one replica when the second one claims; its lease ends with tick 1.
fn fence(sizes: Sizes, flaws: Flaws) -> Protocol {
    let old = OwnerPart { serves: true, lease: 1, raises: 1, answers: 1, ..OwnerPart::default() };
    let new = OwnerPart { given: Some(0), wait: 1, lease: 9, claims: 1, answers: 1, ..OwnerPart::default() };
    Protocol { ticks: 1, begun: Some((Lane::Raise(0), &[0])), ..plain(sizes, flaws, vec![old, new]) }
}

/// So often a caller gives up on an answer that may still come.
fn hasty(late: u8, protocol: Protocol) -> Protocol {
    Protocol { late, ..protocol }
}

/// A raise has reached these replicas, and the change of the configuration is decided.
fn replaced(sizes: Sizes, reached: &'static [usize], flaws: Flaws) -> Protocol {
    Protocol { decided: true, begun: Some((Lane::Raise(0), reached)), ..fence(sizes, flaws) }
}

/// So many change the configuration at a time; the second owner claims twice if need be.
fn replacing(sizes: Sizes, changes: usize, flaws: Flaws) -> Protocol {
    let mut protocol = fence(sizes, flaws);
    protocol.owners[1].claims = 2;
    Protocol { changes, ..protocol }
}

/// The arbiter ended when one replica had the second owner's table; either reads, when it likes.
fn half(flaws: Flaws) -> Protocol {
    let old = OwnerPart { serves: true, base: Some(20), reads: 1, answers: 1, ..OwnerPart::default() };
    let new =
        OwnerPart { base: Some(100), wait: TAKEOVER, lease: 9, reads: 1, answers: 1, ..OwnerPart::default() };
    Protocol { tables: vec![1], ..plain(sizes(3, 2), flaws, vec![old, new]) }
}

/// The second owner's table counts on two replicas; the third owner's, of which the arbiter ended, is on one of these. Either of
/// the two reads, when it likes.
fn versions(flaws: Flaws) -> Protocol {
    let gone = OwnerPart::default();
    let old = OwnerPart { serves: true, base: Some(20), reads: 1, answers: 1, ..OwnerPart::default() };
    let new =
        OwnerPart { base: Some(100), wait: TAKEOVER, lease: 9, reads: 1, answers: 1, ..OwnerPart::default() };
    Protocol { claimed: 2, tables: vec![1, 0, 2], ..plain(sizes(3, 2), flaws, vec![gone, old, new]) }
}

fn reading(flaws: Flaws) -> Protocol {
    Protocol { begun: Some((Lane::Read(2), &[0, 1])), ..versions(flaws) }
}

/// The section goes to the second owner by a table that counts; the first hears of it, leaves and releases.
fn release(sizes: Sizes, flaws: Flaws) -> Protocol {
    let old = OwnerPart {
        serves: true,
        base: Some(20),
        lease: 2,
        reads: 1,
        answers: 1,
        releases: 1,
        ..OwnerPart::default()
    };
    let new =
        OwnerPart { given: Some(0), wait: TAKEOVER, lease: 9, claims: 2, answers: 1, ..OwnerPart::default() };
    Protocol { tables: vec![1; sizes.n()], ..plain(sizes, flaws, vec![old, new]) }
}

/// The first owner has left and says so only now, when the second one serves and the third is given the section.
fn late_release(flaws: Flaws) -> Protocol {
    let gone = OwnerPart { left: true, releases: 1, ..OwnerPart::default() };
    let old = OwnerPart { serves: true, base: Some(20), lease: 2, answers: 1, ..OwnerPart::default() };
    let new =
        OwnerPart { given: Some(0), wait: TAKEOVER, lease: 9, claims: 2, answers: 1, ..OwnerPart::default() };
    Protocol { claimed: 2, ..plain(sizes(3, 2), flaws, vec![gone, old, new]) }
}
