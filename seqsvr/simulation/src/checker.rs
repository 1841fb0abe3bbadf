//! Checks the answers to callers as they happen: for each uid no number twice, and each number asked for after an answer is larger,
//! its epoch never smaller (I6). Asked and answered in the one true time.

use std::collections::BTreeMap;
use std::fmt;

use super::At;
use seqsvr_core::ids::{Epoch, Granted};

/// The largest number and epoch that had been answered for a uid when a question was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Floor {
    number: u64,
    epoch: Epoch,
}

impl Floor {
    /// The largest number that had been answered.
    pub(crate) fn number(self) -> u64 {
        self.number
    }
}

/// A promise that was broken; the first one ends the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A number was handed out twice.
    Twice { at: At, uid: u32, granted: Granted, before: Granted },
    /// A number is not larger than one that had been answered before it was asked for.
    Back { at: At, uid: u32, granted: Granted, floor: u64 },
    /// The epoch went back in the same sense.
    Epoch { at: At, uid: u32, granted: Granted, floor: Epoch },
    /// An upper bound was smaller than what had been handed out before it was asked for.
    Bound { at: At, uid: u32, bound: u64, floor: u64 },
    /// The client itself refused a number, for one that had arrived before its question left.
    Refused { at: At, uid: u32, got: u64, known: u64 },
    /// The faults were over, and this uid was still not served.
    Silent { at: At, uid: u32 },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |at: &At| *at as f64 / 1e9;
        match self {
            Self::Twice { at, uid, granted, before } => write!(
                f,
                "{:.3} s: uid {uid} was given {}..={} under {}, of which {}..={} was given before under {}",
                seconds(at),
                granted.first,
                granted.last,
                granted.epoch,
                before.first,
                before.last,
                before.epoch
            ),
            Self::Back { at, uid, granted, floor } => write!(
                f,
                "{:.3} s: uid {uid} was given {} under {}, asked for after {floor} had been answered",
                seconds(at),
                granted.first,
                granted.epoch
            ),
            Self::Epoch { at, uid, granted, floor } => write!(
                f,
                "{:.3} s: uid {uid} was served under epoch {}, asked after an answer under {floor}",
                seconds(at),
                granted.epoch
            ),
            Self::Bound { at, uid, bound, floor } => write!(
                f,
                "{:.3} s: uid {uid} was said to be at most at {bound}, asked after {floor} had been answered",
                seconds(at)
            ),
            Self::Refused { at, uid, got, known } => {
                write!(f, "{:.3} s: uid {uid}: the client was told {got} after {known}", seconds(at))
            }
            Self::Silent { at, uid } => {
                write!(f, "{:.3} s: uid {uid} is not served although all faults are over", seconds(at))
            }
        }
    }
}

/// The sequences as callers have seen them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checker {
    sequences: BTreeMap<u32, Sequence>,
    broken: Option<Broken>,
    answers: u64,
}

#[derive(Clone, Debug, Default)]
struct Sequence {
    floor: Floor,
    /// Everything answered, by its first number.
    given: BTreeMap<u64, Granted>,
}

impl Checker {
    /// A caller asks for `uid` now.
    pub(crate) fn asks(&self, uid: u32) -> Floor {
        self.sequences.get(&uid).map(|sequence| sequence.floor).unwrap_or_default()
    }

    /// A caller that asked at `floor` got its answer.
    pub(crate) fn granted(&mut self, at: At, uid: u32, floor: Floor, granted: Granted) {
        self.answers += 1;
        let sequence = self.sequences.entry(uid).or_default();
        let before = sequence.given.range(..=granted.last).next_back().map(|(_, before)| *before);
        let broken = match before {
            Some(before) if before.last >= granted.first => Some(Broken::Twice { at, uid, granted, before }),
            _ if granted.first <= floor.number => {
                Some(Broken::Back { at, uid, granted, floor: floor.number })
            }
            _ if granted.epoch < floor.epoch => Some(Broken::Epoch { at, uid, granted, floor: floor.epoch }),
            _ => None,
        };
        self.broken = self.broken.take().or(broken);
        sequence.given.insert(granted.first, granted);
        sequence.floor.number = sequence.floor.number.max(granted.last);
        sequence.floor.epoch = sequence.floor.epoch.max(granted.epoch);
    }

    /// The same, where no epoch reaches the caller.
    pub(crate) fn numbered(&mut self, at: At, uid: u32, floor: Floor, number: u64) {
        self.granted(at, uid, floor, Granted { first: number, last: number, epoch: floor.epoch });
    }

    /// The client refused what a caller would have been told.
    pub(crate) fn refused(&mut self, at: At, uid: u32, got: u64, known: u64) {
        self.broken.get_or_insert(Broken::Refused { at, uid, got, known });
    }

    /// Numbers asked for `uid` from now on are above this.
    pub(crate) fn advanced(&mut self, uid: u32, at_least: u64) {
        let floor = &mut self.sequences.entry(uid).or_default().floor;
        floor.number = floor.number.max(at_least);
    }

    /// A caller that asked at `floor` was told an upper bound.
    pub(crate) fn bounded(&mut self, at: At, uid: u32, floor: Floor, bound: u64) {
        if bound < floor.number && self.broken.is_none() {
            self.broken = Some(Broken::Bound { at, uid, bound, floor: floor.number });
        }
    }

    /// Service did not come back.
    pub(crate) fn silent(&mut self, at: At, uid: u32) {
        self.broken.get_or_insert(Broken::Silent { at, uid });
    }

    /// The first promise that broke.
    pub(crate) fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    /// How many numbers or ranges were answered.
    pub(crate) fn answers(&self) -> u64 {
        self.answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(first: u64, last: u64) -> Granted {
        Granted { first, last, epoch: Epoch { term: 1, version: 1 } }
    }

    #[test]
    fn what_was_asked_before_may_be_answered_in_any_order() {
        let mut checker = Checker::default();
        let floor = checker.asks(1);
        checker.granted(1, 1, floor, granted(5, 6));
        checker.granted(2, 1, floor, granted(1, 4));
        assert_eq!(checker.broken(), None);
    }

    #[test]
    fn a_number_given_twice_is_noticed() {
        let mut checker = Checker::default();
        let floor = checker.asks(1);
        checker.granted(1, 1, floor, granted(5, 8));
        checker.granted(2, 1, floor, granted(2, 5));
        assert!(matches!(checker.broken(), Some(Broken::Twice { .. })));
    }

    #[test]
    fn going_back_is_noticed() {
        let mut checker = Checker::default();
        checker.granted(1, 1, Floor::default(), granted(5, 8));
        let floor = checker.asks(1);
        checker.granted(2, 1, floor, granted(1, 2));
        assert!(matches!(checker.broken(), Some(Broken::Back { floor: 8, .. })));
    }
}
