//! Uids that move between Sets, each time by a file (docs/CLUSTER.md, "Other uids"). The Set that gives them names the
//! receiver and numbers the move by the configuration in which it has them no more; the Set that takes them remembers
//! that, so that no file is taken a second time. Pure; `quorum::moving` carries it out.

use std::ops::RangeInclusive;

use thiserror::Error;

use super::Configuration;
use crate::flaws::{Flaw, Flaws};
use crate::ids::SectionId;

/// The most moves that a Set remembers in each direction.
const MOST: usize = 1_000;

/// Uids that went to another Set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Given {
    /// Which, both ends included.
    pub uids: RangeInclusive<u32>,
    /// The number of the Set that may take them.
    pub to: u32,
    /// The configuration in which they are the Set's own no more.
    pub number: u64,
}

/// A move, as the Set knows it that takes the uids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// The Set that gave them.
    pub from: u32,
    /// The configuration in which that Set has them no more.
    pub number: u64,
}

/// Every move of a Set's uids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Moves {
    /// To others.
    pub given: Vec<Given>,
    /// From others.
    pub taken: Vec<Move>,
}

/// Uids that become the Set's own once their ceilings are stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Taking {
    /// Which, both ends included.
    pub uids: RangeInclusive<u32>,
    /// By which move.
    pub by: Move,
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
    #[error("the Set has the uids {} to {}; it can give some at one end, and must keep some", uids.start(), uids.end())]
    NotAtOneEnd {
        /// The uids of the Set.
        uids: RangeInclusive<u32>,
    },
    /// Each move is taken once.
    #[error(
        "the file was used before: by configuration {number} the Set has taken these uids in, and their numbers have gone on since; \
         a file of a move is used once"
    )]
    Taken {
        /// The number of the configuration.
        number: u64,
    },
    /// They are remembered for good.
    #[error("the Set has given or taken uids 1000 times, which is as often as it can")]
    Moves,
    /// Uids taken in must make one range with the Set's.
    #[error("the Set has the uids {} to {}; it can take those before or behind them", uids.start(), uids.end())]
    NotAdjacent {
        /// The uids of the Set.
        uids: RangeInclusive<u32>,
    },
}

impl Taking {
    /// The command that completes it.
    pub fn command(&self) -> String {
        let Self { uids, by } = self;
        let (first, last) = (uids.start(), uids.end());
        format!("seqsvr restore FILE, with the file of the uids {first} to {last} that Set {} gave", by.from)
    }
}

impl Given {
    /// Whether the Set of this number may take them.
    pub fn is_for(&self, set: u32, flaws: Flaws) -> bool {
        self.to == set || flaws.has(Flaw::TakeElsewhere)
    }
}

impl Moves {
    /// Whether there are not too many.
    pub fn fit(&self) -> bool {
        self.given.len() <= MOST && self.taken.len() <= MOST
    }
}

impl Configuration {
    /// The sections that may be claimed and raised: of its uids, and of the ones that are being taken in.
    pub fn sections(&self) -> RangeInclusive<SectionId> {
        let section = |uid: u32| SectionId::new(uid / self.layout.section_size);
        let all =
            self.taking.as_ref().map_or_else(|| self.uids.clone(), |taking| joined(&self.uids, &taking.uids));
        section(*all.start())..=section(*all.end())
    }

    /// The move by which these uids went to that Set, if they did.
    pub fn given(&self, uids: &RangeInclusive<u32>, to: u32) -> Option<&Given> {
        self.moves.given.iter().rfind(|given| given.uids == *uids && given.to == to)
    }

    /// The next configuration, without `uids`, which the Set `to` may take.
    ///
    /// # Errors
    ///
    /// [`CannotChange`].
    pub fn giving(&self, uids: &RangeInclusive<u32>, to: u32) -> Result<Self, CannotChange> {
        self.unfinished().map_or(Ok(()), Err)?;
        self.whole(uids)?;
        let (first, last) = (*self.uids.start(), *self.uids.end());
        let kept = match (*uids.start() == first, *uids.end() == last) {
            (true, false) if *uids.end() < last => uids.end() + 1..=last,
            (false, true) if *uids.start() > first => first..=uids.start() - 1,
            _ => return Err(CannotChange::NotAtOneEnd { uids: self.uids.clone() }),
        };
        let mut next = Self { uids: kept, ..self.next() };
        next.moves.given.push(Given { uids: uids.clone(), to, number: next.number });
        if next.moves.fit() { Ok(next) } else { Err(CannotChange::Moves) }
    }

    /// The next configuration, in which the ceilings of `uids` may be stored; `None`: it is on its way there.
    ///
    /// # Errors
    ///
    /// [`CannotChange`]; [`CannotChange::Taken`] when this very move was taken before.
    pub fn taking(
        &self,
        uids: &RangeInclusive<u32>,
        by: Move,
        flaws: Flaws,
    ) -> Result<Option<Self>, CannotChange> {
        if self.moves.taken.contains(&by) && !flaws.has(Flaw::TakeTwice) {
            return Err(CannotChange::Taken { number: self.number });
        }
        let taking = Some(Taking { uids: uids.clone(), by });
        if self.taking == taking {
            return Ok(None);
        }
        self.unfinished().map_or(Ok(()), Err)?;
        self.whole(uids)?;
        if self.moves.taken.len() >= MOST {
            return Err(CannotChange::Moves);
        }
        let adjacent = uids.end().checked_add(1) == Some(*self.uids.start())
            || self.uids.end().checked_add(1) == Some(*uids.start());
        match adjacent {
            true => Ok(Some(Self { taking, ..self.next() })),
            false => Err(CannotChange::NotAdjacent { uids: self.uids.clone() }),
        }
    }

    /// The first configuration of a new Set that begins with uids of another one, before their ceilings are stored.
    pub fn beginning_with(self, by: Move) -> Self {
        let taking = Some(Taking { uids: self.uids.clone(), by });
        Self { taking, ..self }
    }

    /// The next one, which has the uids that it takes. `None`: it takes none. Right once their ceilings are stored.
    pub fn settled(&self) -> Option<Self> {
        let Taking { uids, by } = self.taking.as_ref()?;
        let mut next = Self { uids: joined(&self.uids, uids), taking: None, ..self.next() };
        next.moves.taken.push(*by);
        Some(next)
    }

    fn unfinished(&self) -> Option<CannotChange> {
        let command = self.taking.as_ref()?.command();
        Some(CannotChange::Unfinished { number: self.number, command })
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
}

/// Two adjacent ranges as one.
fn joined(one: &RangeInclusive<u32>, other: &RangeInclusive<u32>) -> RangeInclusive<u32> {
    *one.start().min(other.start())..=*one.end().max(other.end())
}

#[cfg(test)]
mod tests {
    use super::super::tests::configuration;
    use super::*;

    #[test]
    fn uids_are_given_at_one_end_and_taken_beside_what_is_there_and_each_move_once() {
        let now = Configuration { uids: 0..=999_999, ..configuration() };
        let sections = |one: &Configuration| one.sections().start().get()..=one.sections().end().get();
        for wrong in [5..=999_999, 0..=999_999, 100_000..=899_999, 0..=1_099_999, 1_000_000..=1_099_999] {
            assert!(now.giving(&wrong, 1).is_err(), "{wrong:?}");
        }
        let (kept, moved) = (0..=499_999, 500_000..=999_999);
        let given = now.giving(&moved, 1).unwrap();
        assert_eq!((given.uids.clone(), sections(&given), given.problem()), (kept, 0..=4, None));
        let entry = Given { uids: moved.clone(), to: 1, number: 2 };
        assert_eq!((given.given(&moved, 1), given.given(&moved, 2)), (Some(&entry), None));
        let by = Move { from: 0, number: entry.number };
        for wrong in [600_000..=999_999, 400_000..=999_999, 500_000..=999_998] {
            assert!(given.taking(&wrong, by, Flaws::default()).is_err(), "{wrong:?}");
        }
        // The same uids back, by another Set's file.
        let back = Move { from: 1, number: 5 };
        let taking = given.taking(&moved, back, Flaws::default()).unwrap().unwrap();
        assert_eq!((taking.uids.clone(), sections(&taking), taking.problem()), (0..=499_999, 0..=9, None));
        assert_eq!(taking.taking(&moved, back, Flaws::default()), Ok(None));
        // One change at a time.
        let others =
            [taking.giving(&(400_000..=499_999), 1).map(Some), taking.taking(&moved, by, Flaws::default())];
        for other in others {
            let line = other.unwrap_err().to_string();
            assert!(line.contains("complete it first: seqsvr restore FILE"), "{line}");
        }
        let taken = taking.settled().unwrap();
        assert_eq!((taken.uids.clone(), taken.number, &taken.moves.taken), (0..=999_999, 4, &vec![back]));
        let again = taken.giving(&moved, 1).unwrap().taking(&moved, back, Flaws::default());
        assert_eq!(again, Err(CannotChange::Taken { number: 5 }));
        let top = Configuration { uids: 0..=u32::MAX, ..configuration() };
        assert_eq!(top.giving(&(4_294_900_000..=u32::MAX), 1).unwrap().uids, 0..=4_294_899_999);
    }

    #[test]
    fn a_new_set_begins_with_uids_of_another_once_their_ceilings_are_there() {
        let by = Move { from: 3, number: 7 };
        let first = Configuration { uids: 500_000..=999_999, ..configuration() }.beginning_with(by);
        let settled = first.settled().unwrap();
        assert_eq!((settled.uids.clone(), settled.moves.taken), (500_000..=999_999, vec![by]));
    }
}
