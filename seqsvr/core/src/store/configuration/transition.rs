//! The changes that take steps: of the lease, and of the uids. A shorter lease takes two configurations, because readers of the one
//! before may hold the longer one a while; uids that are taken in are the Set's own once their ceilings are here
//! (docs/CLUSTER.md, "Another lease" and "Other uids"). Pure; `quorum::operator` and `quorum::moving` carry the steps
//! out.

use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

use super::{Configuration, Move};
use crate::ids::SectionId;

/// The change that a configuration has begun.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Transition {
    /// The lease was longer before, and somebody may still hold that one.
    Shortening {
        /// The longest lease that anybody may hold.
        earlier: Duration,
    },
    /// The ceilings of these uids are being stored, so that they can become its own.
    Taking {
        /// Which, both ends included.
        uids: RangeInclusive<u32>,
        /// By which move.
        by: Move,
    },
}

/// Why a configuration cannot be changed as asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CannotChange {
    /// Another change has to be completed first.
    #[error("configuration {number} of the Set is the first half of a change; complete it first: {command}")]
    Unfinished {
        /// The number of the configuration.
        number: u64,
        /// The command that completes the change.
        command: String,
    },
    /// A section cannot be divided.
    #[error("the uids {first} to {last} do not begin and end on borders of sections of {section_size}")]
    Borders {
        /// The first uid asked for.
        first: u32,
        /// The last one.
        last: u32,
        /// Uids in a section.
        section_size: u32,
    },
    /// Uids given away must leave one range.
    #[error("the Set has the uids {} to {}; move some at one end, and keep some", uids.start(), uids.end())]
    NotAtOneEnd {
        /// The uids of the Set.
        uids: RangeInclusive<u32>,
    },
    /// Each move is taken once.
    #[error(
        "the file was used before: configuration {number} added these uids to the Set, and more of their numbers \
         were handed out since; a file of moved uids can be used once"
    )]
    Taken {
        /// The number of the configuration.
        number: u64,
    },
    /// They are remembered for good.
    #[error("uids were moved to or from the Set 1000 times, which is the limit")]
    Moves,
    /// Uids taken in must make one range with the Set's.
    #[error("the Set has the uids {} to {}; only the uids directly before or after them can be added", uids.start(), uids.end())]
    NotAdjacent {
        /// The uids of the Set.
        uids: RangeInclusive<u32>,
    },
}

impl Transition {
    /// The command that completes the change.
    pub fn command(&self, lease: Duration) -> String {
        match self {
            Self::Shortening { .. } => format!("seqsvr store lease {}", lease.as_millis()),
            Self::Taking { uids, by } => format!(
                "seqsvr restore FILE, with the file of the uids {} to {} that Set {} gave",
                uids.start(),
                uids.end(),
                by.from
            ),
        }
    }
}

/// The bounds of a read of the table: as the configuration says in which it was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// How long the read lets an AllocSvr serve.
    pub lease: Duration,
    /// The longest lease that anybody may hold: a new owner waits 1.1 times as long.
    pub awaited: Duration,
    /// The uids of the Set.
    pub uids: RangeInclusive<u32>,
}

impl Configuration {
    /// The bounds of the reads that it answers.
    pub fn bounds(&self) -> Bounds {
        Bounds { lease: self.lease, awaited: self.awaited(), uids: self.uids.clone() }
    }

    /// The longest lease that anybody may hold.
    pub fn awaited(&self) -> Duration {
        match &self.transition {
            Some(Transition::Shortening { earlier }) => self.lease.max(*earlier),
            _ => self.lease,
        }
    }

    /// The sections that may be claimed and raised: of its uids, and of the ones that are being taken in.
    pub fn sections(&self) -> RangeInclusive<SectionId> {
        let section = |uid: u32| SectionId::new(uid / self.layout.section_size);
        let all = match &self.transition {
            Some(Transition::Taking { uids, .. }) => joined(&self.uids, uids),
            _ => self.uids.clone(),
        };
        section(*all.start())..=section(*all.end())
    }

    /// The next one, which is the same: it ends a change that nobody completes.
    pub fn renewed(&self) -> Self {
        self.next()
    }

    pub(super) fn unfinished(&self) -> Option<CannotChange> {
        let command = self.transition.as_ref()?.command(self.lease);
        Some(CannotChange::Unfinished { number: self.number, command })
    }

    pub(super) fn next(&self) -> Self {
        Self { number: self.number + 1, ..self.clone() }
    }

    /// `uids` are whole sections.
    pub(super) fn whole(&self, uids: &RangeInclusive<u32>) -> Result<(), CannotChange> {
        let (first, last, section_size) = (*uids.start(), *uids.end(), self.layout.section_size);
        let whole = last == u32::MAX || (last + 1).is_multiple_of(section_size);
        match first <= last && first.is_multiple_of(section_size) && whole {
            true => Ok(()),
            false => Err(CannotChange::Borders { first, last, section_size }),
        }
    }

    /// The next configuration on the way to this lease; `None`: it is the lease. Readers hold it from then on, and takers wait for
    /// the longest that anybody may hold, until [`settled`](Self::settled) follows.
    pub fn toward_lease(&self, lease: Duration) -> Result<Option<Self>, CannotChange> {
        if let None | Some(Transition::Shortening { .. }) = self.transition {
            let earlier = self.awaited();
            let transition = (earlier > lease).then_some(Transition::Shortening { earlier });
            return Ok((lease != self.lease).then(|| Self { lease, transition, ..self.next() }));
        }
        self.unfinished().map_or(Ok(None), Err)
    }

    /// The next one, which stays. `None`: nothing is under way. Right once 1.1 times [`awaited`](Self::awaited) have passed in a
    /// configuration that shortens the lease, or once the ceilings of the uids that it takes are stored.
    pub fn settled(&self) -> Option<Self> {
        let mut next = Self { transition: None, ..self.next() };
        if let Transition::Taking { uids, by } = self.transition.as_ref()? {
            next.uids = joined(&self.uids, uids);
            next.moves.taken.push(*by);
        }
        Some(next)
    }
}

/// Two adjacent ranges as one.
fn joined(one: &RangeInclusive<u32>, other: &RangeInclusive<u32>) -> RangeInclusive<u32> {
    *one.start().min(other.start())..=*one.end().max(other.end())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::tests::configuration;
    use super::*;
    use crate::alloc::lease::Lease;
    use crate::clock::Moment;
    use crate::flaws::Flaws;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_longer_lease_takes_one_step_and_a_shorter_one_two() {
        let now = configuration();
        let toward = |now: &Configuration, count| now.toward_lease(seconds(count)).unwrap();
        assert_eq!((now.lease, toward(&now, 2)), (seconds(2), None));
        let longer = toward(&now, 5).unwrap();
        assert_eq!((longer.number, longer.awaited(), longer.settled()), (2, seconds(5), None));
        let shorter = toward(&longer, 1).unwrap();
        assert_eq!((shorter.lease, shorter.awaited()), (seconds(1), seconds(5)));
        // Nobody waited yet, so the longest one stays what takers wait for.
        let again = toward(&shorter, 3).unwrap();
        assert_eq!((again.lease, again.awaited()), (seconds(3), seconds(5)));
        let beyond = toward(&shorter, 7).unwrap();
        assert_eq!((beyond.awaited(), beyond.transition), (seconds(7), None));
        let settled = shorter.settled().unwrap();
        assert_eq!((settled.number, settled.awaited(), settled.problem()), (4, seconds(1), None));
    }

    /// A configuration and from when on it is in force, in true nanoseconds.
    type LeaseHistory = Vec<(u64, Configuration)>;

    /// Acts as an operator: asks for leases, one after the other, and waits in between as the command does; with `skip`, does not wait.
    fn history(leases: &[u64], rate: f64, skip: bool) -> LeaseHistory {
        let mut all = vec![(0, configuration())];
        for &lease in leases {
            let (mut at, mut now) = all.last().cloned().expect("the first");
            at += 1_000_000_000;
            if let Some(next) = now.toward_lease(Duration::from_millis(lease)).unwrap() {
                now = if skip { Configuration { transition: None, ..next } } else { next };
                all.push((at, now.clone()));
            }
            while let Some(next) = now.settled() {
                at += ((now.awaited() * 11 / 10).as_nanos() as f64 / rate) as u64;
                now = next;
                all.push((at, now.clone()));
            }
        }
        all
    }

    fn in_force(history: &LeaseHistory, at: u64) -> &Configuration {
        &history.iter().rfind(|(from, _)| *from <= at).expect("the first is in force at 0").1
    }

    /// Whether an owner that read the old table at `read` may still answer when the taker begins to serve, for which the new table
    /// counts at `counted`. A call is answered by one configuration, in force when it was asked or later, and an old table only
    /// before the new one counts.
    fn overlap(history: &LeaseHistory, read: u64, counted: u64, rates: (f64, f64)) -> bool {
        let mut owner = Lease::new(seconds(2), Flaws::default());
        owner.follow(&in_force(history, read).bounds());
        owner.renew(Moment::from_nanos(read), Moment::from_nanos(read));
        let held = owner.until().expect("renewed").as_nanos() - read;
        let mut taker = Lease::new(seconds(2), Flaws::default());
        taker.follow(&in_force(history, counted).bounds());
        let waited = taker.takeover(Moment::from_nanos(counted)).as_nanos() - counted;
        // Their clocks run at these rates.
        read as f64 + held as f64 / rates.0 > counted as f64 + waited as f64 / rates.1
    }

    fn rate() -> impl Strategy<Value = f64> {
        1.0..1.05_f64
    }

    proptest! {
        #[test]
        fn no_taker_serves_while_anybody_holds_a_lease_of_an_earlier_configuration(
            leases in prop::collection::vec(100..10_000_u64, 1..5),
            read in 0..60_000_000_000_u64, later in 0..20_000_000_000_u64,
            coordinator in rate(), owner in rate(), taker in rate(),
        ) {
            let history = history(&leases, coordinator, false);
            prop_assert!(!overlap(&history, read, read + later, (owner, taker)));
        }
    }

    #[test]
    fn a_shorter_lease_at_once_would_let_two_serve() {
        let at = 1_000_000_000;
        let skipped = history(&[500], 1.0, true);
        assert!(overlap(&skipped, at - 1, at, (1.0, 1.0)), "held for 2 s, waited for 0.55 s");
        assert!(!overlap(&history(&[500], 1.0, false), at - 1, at, (1.0, 1.0)));
    }
}
