//! Uids that move between Sets, each time by a file (docs/CLUSTER.md, "Other uids"). The Set that gives them names the
//! receiver and numbers the move by the configuration in which it has them no more; the Set that takes them remembers
//! that, so that no file is taken a second time. Pure; `quorum::moving` carries it out.

use std::ops::RangeInclusive;

use super::{CannotChange, Configuration, Transition};
use crate::flaws::{Flaw, Flaws};

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
        let transition = Some(Transition::Taking { uids: uids.clone(), by });
        if self.transition == transition {
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
            true => Ok(Some(Self { transition, ..self.next() })),
            false => Err(CannotChange::NotAdjacent { uids: self.uids.clone() }),
        }
    }

    /// The first configuration of a new Set that begins with uids of another one, before their ceilings are stored.
    pub fn beginning_with(self, by: Move) -> Self {
        let transition = Some(Transition::Taking { uids: self.uids.clone(), by });
        Self { transition, ..self }
    }
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
        let seconds = std::time::Duration::from_secs;
        let others = [
            taking.giving(&(400_000..=499_999), 1).map(Some),
            taking.taking(&moved, by, Flaws::default()),
            taking.toward_lease(seconds(1)),
        ];
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
