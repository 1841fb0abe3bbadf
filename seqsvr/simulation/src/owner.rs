//! An owner of the explored protocol: what an AllocSvr has to do with one section, without names, records or retries. Reads the table for its
//! lease, claims what a table gives it, waits, hands out what is confirmed, raises, and releases what it has left.

use std::sync::Arc;
use std::time::Duration;

pub(crate) use seqsvr_cluster::store::quorum::rounds::{
    Ask, ChangeRound, ClaimRound, RaiseRound, ReadRound, ReleaseRound, Round, Step,
};
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::ids::SectionId;
use seqsvr_core::routing::Table;
use seqsvr_core::store::Sizes;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::tables::Revisions;
use seqsvr_core::store::{Ceiling, Claimed, Layout, Owner};

/// The one section that changes hands.
pub(crate) const SECTION: SectionId = SectionId::new(0);

/// The layout of its numbers.
pub(crate) const LAYOUT: Layout = Layout { section_size: 8, step: 2 };

/// How long a lease lasts, and how long a taker waits, in ticks: between the two lies what clocks may differ by.
const LEASE: u8 = 2;
pub(crate) const TAKEOVER: u8 = 3;

/// Which call: one at a time of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lane {
    Read(usize),
    Claim(usize),
    Raise(usize),
    Release(usize),
    /// Not an owner's either: somebody replaces a replica.
    Change(usize),
}

impl Lane {
    /// Whose.
    pub(crate) fn owner(self) -> usize {
        match self {
            Self::Read(owner) | Self::Claim(owner) | Self::Raise(owner) | Self::Release(owner) => owner,
            Self::Change(_) => usize::MAX,
        }
    }
}

/// A round under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OwnerCall {
    /// With the tick at which it was asked.
    Read(u8, ReadRound),
    Claim(ClaimRound),
    Raise(u64, RaiseRound),
    Release(ReleaseRound),
    Change(ChangeRound),
}

/// The outcome of a call.
pub(crate) enum Done {
    Read(u8, Option<Arc<Table>>),
    Claimed(Claimed),
    Raised(u64),
    Nothing,
}

impl OwnerCall {
    pub(crate) fn on(&mut self, replica: usize, answer: Result<Answer, String>) -> (Vec<Ask>, Option<Done>) {
        match self {
            Self::Read(asked, round) => step(round.on(replica, answer), |outcome| match outcome {
                Ok(reading) => Done::Read(*asked, reading.table),
                Err(_) => Done::Nothing,
            }),
            Self::Claim(round) => {
                step(round.on(replica, answer), |outcome| outcome.map_or(Done::Nothing, Done::Claimed))
            }
            Self::Raise(to, round) => step(round.on(replica, answer), |outcomes| match outcomes[..] {
                [Ok(_)] => Done::Raised(*to),
                _ => Done::Nothing,
            }),
            Self::Release(round) => step(round.on(replica, answer), |_| Done::Nothing),
            Self::Change(round) => step(round.on(replica, answer), |_| Done::Nothing),
        }
    }
}

fn step<T>(step: Step<T>, done: impl FnOnce(T) -> Done) -> (Vec<Ask>, Option<Done>) {
    match step {
        Step::Ask(asks) => (asks, None),
        Step::Done(outcome) => (Vec::new(), Some(done(outcome))),
    }
}

/// An owner's first state, and how often it may take each step that it can repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct OwnerPart {
    /// It serves from the beginning, from 10 on.
    pub(crate) serves: bool,
    /// From which tick on a table counts that gives it the section, unless it has to read that first.
    pub(crate) given: Option<u8>,
    /// How long it waits after that.
    pub(crate) wait: u8,
    /// With which tick its lease ends, unless it reads again.
    pub(crate) lease: u8,
    /// The ceiling of one that serves; where another would start without a claim.
    pub(crate) base: Option<u64>,
    pub(crate) reads: u8,
    pub(crate) claims: u8,
    pub(crate) raises: u8,
    pub(crate) answers: u8,
    /// It has left the section, and may tell so.
    pub(crate) left: bool,
    pub(crate) releases: u8,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owning {
    owner: Owner,
    /// Its state by now, and the steps that are left to it.
    is: OwnerPart,
    /// Calls begun.
    serials: u8,
    /// The newest claim said that the one before has left.
    free: bool,
    current: u64,
    ceiling: u64,
}

impl Owning {
    pub(crate) fn new(owner: Owner, is: OwnerPart) -> Self {
        let (current, ceiling) = if is.serves { (10, is.base.unwrap_or(10)) } else { (0, 0) };
        Self { owner, is, serials: 0, free: false, current, ceiling }
    }

    /// The last number that it handed out.
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    pub(crate) fn serials(&self) -> u8 {
        self.serials
    }

    /// Begins a call, if it has a reason to.
    pub(crate) fn begin(
        &mut self,
        lane: Lane,
        tick: u8,
        sizes: Sizes,
        flaws: Flaws,
    ) -> Option<(OwnerCall, Vec<Ask>)> {
        let (owner, sections) = (self.owner, vec![SECTION..=SECTION]);
        let started = match lane {
            Lane::Read(_) => {
                take(&mut self.is.reads)?;
                let mut round = ReadRound::new(&Revisions::default(), Duration::ZERO, sizes, flaws);
                let asks = round.open();
                (OwnerCall::Read(tick, round), asks)
            }
            Lane::Claim(_) if !self.is.serves && self.is.given.is_some_and(|since| since <= tick) => {
                take(&mut self.is.claims)?;
                let question = Question::Claim { sections, owner, layout: LAYOUT };
                let mut round = ClaimRound::new(question, sizes, flaws);
                let asks = round.open();
                (OwnerCall::Claim(round), asks)
            }
            Lane::Raise(_) if self.is.serves => {
                take(&mut self.is.raises)?;
                let to = self.ceiling + 10;
                let ceilings = vec![Ceiling { section: SECTION, max: to }];
                let mut round = RaiseRound::new(owner, None, ceilings, sizes);
                let asks = round.open();
                if flaws.has(Flaw::AnswerBeforeConfirm) {
                    self.ceiling = to;
                }
                (OwnerCall::Raise(to, round), asks)
            }
            Lane::Release(_) if self.is.left => {
                take(&mut self.is.releases)?;
                let mut round = ReleaseRound::new(Question::Release { owner, sections }, sizes);
                let asks = round.open();
                (OwnerCall::Release(round), asks)
            }
            _ => return None,
        };
        self.serials += 1;
        Some(started)
    }

    /// A call came to its end.
    pub(crate) fn done(&mut self, done: Done, tick: u8, flaws: Flaws) {
        match done {
            Done::Read(asked, Some(table)) => {
                let mine = table.owner(SECTION).is_some_and(|one| one.epoch == self.owner.epoch);
                if mine {
                    self.is.given.get_or_insert(tick);
                } else {
                    self.is.left |= self.is.serves;
                    (self.is.given, self.is.serves) = (None, false);
                }
                let from = if flaws.has(Flaw::LeaseFromAnswer) { tick } else { asked };
                self.is.lease = self.is.lease.max(from + LEASE);
            }
            Done::Claimed(claimed) if !self.is.serves => {
                self.is.base = Some(claimed.ceilings.iter().map(|ceiling| ceiling.max).max().unwrap_or(0));
                self.free = claimed.earlier.iter().all(|earlier| earlier.released);
            }
            Done::Raised(to) => self.ceiling = self.ceiling.max(to),
            Done::Read(_, None) | Done::Claimed(_) | Done::Nothing => {}
        }
    }

    /// Hands out everything that it may, and answers from where to where. Begins to serve when it may.
    pub(crate) fn hand_out(&mut self, tick: u8, flaws: Flaws) -> Option<(u64, u64)> {
        if !self.is.serves
            && let (Some(since), Some(base)) = (self.is.given, self.is.base)
            && (self.free || flaws.has(Flaw::NoTakeoverWait) || tick >= since + self.is.wait)
            && tick >= since
        {
            self.is.serves = true;
            // It can raise at once: what is confirmed to it after that is its own.
            (self.current, self.ceiling) = (base, base + 1);
        }
        let alive = tick < self.is.lease || flaws.has(Flaw::NoDeadlineCheck);
        if !self.is.serves || !alive {
            return None;
        }
        if self.current >= self.ceiling {
            return None;
        }
        take(&mut self.is.answers)?;
        let first = self.current + 1;
        self.current = self.ceiling;
        Some((first, self.current))
    }
}

fn take(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}
