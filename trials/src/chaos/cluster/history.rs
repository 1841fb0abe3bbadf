//! The answers to callers, and the promises over them: plain functions over plain values.
//!
//! - A number of a uid is handed out once (I6).
//! - A number that was asked for after an answer had come is larger than that answer, for any caller (S1, I7).
//! - An upper bound is not smaller than any number that had been answered before it was asked for.

use std::collections::BTreeMap;
use std::time::Duration;

/// When something was asked and answered, since the fault run began; on one clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) asked: Duration,
    pub(super) answered: Duration,
}

/// The numbers `first..=last` of a uid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) span: Span,
    pub(super) first: u64,
    pub(super) last: u64,
}

/// An upper bound of a uid's numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) span: Span,
    pub(super) number: u64,
}

/// Everything that was answered for one uid.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    pub(super) granted: Vec<Granted>,
    pub(super) bounds: Vec<Bound>,
}

/// The answers to callers, by uid.
#[derive(Clone, Debug, Default)]
pub struct AnswerHistory(pub(super) BTreeMap<u32, Sequence>);

impl AnswerHistory {
    /// Adds the answers to another caller.
    pub(super) fn join(&mut self, other: AnswerHistory) {
        for (uid, sequence) in other.0 {
            let own = self.0.entry(uid).or_default();
            own.granted.extend(sequence.granted);
            own.bounds.extend(sequence.bounds);
        }
    }

    /// How many answers there are.
    pub fn answers(&self) -> usize {
        self.0.values().map(|sequence| sequence.granted.len() + sequence.bounds.len()).sum()
    }

    /// Every broken promise, in words.
    pub fn broken_promises(&self) -> Vec<String> {
        self.0.iter().flat_map(|(uid, sequence)| sequence.broken(*uid)).collect()
    }
}

impl Sequence {
    fn broken(&self, uid: u32) -> Vec<String> {
        let mut broken = Vec::new();
        let mut by_number = self.granted.clone();
        by_number.sort_by_key(|granted| granted.first);
        for pair in by_number.windows(2) {
            if pair[1].first <= pair[0].last {
                broken.push(format!("uid {uid}: handed out twice: {:?} and {:?}", pair[0], pair[1]));
            }
        }
        let answered = Answered::of(&self.granted);
        for granted in &self.granted {
            let known = answered.before(granted.span.asked);
            if known.is_some_and(|known| granted.first <= known) {
                broken.push(format!("uid {uid}: {granted:?} was asked for after {known:?} was known"));
            }
        }
        for bound in &self.bounds {
            let known = answered.before(bound.span.asked);
            if known.is_some_and(|known| bound.number < known) {
                broken
                    .push(format!("uid {uid}: the bound {bound:?} was asked for after {known:?} was known"));
            }
        }
        broken
    }
}

/// The largest number known at each moment.
struct Answered(Vec<(Duration, u64)>);

impl Answered {
    fn of(granted: &[Granted]) -> Self {
        let mut known: Vec<_> = granted.iter().map(|one| (one.span.answered, one.last)).collect();
        known.sort_unstable();
        let mut largest = 0;
        for (_, last) in &mut known {
            largest = largest.max(*last);
            *last = largest;
        }
        Self(known)
    }

    fn before(&self, moment: Duration) -> Option<u64> {
        let after = self.0.partition_point(|(answered, _)| *answered <= moment);
        after.checked_sub(1).map(|index| self.0[index].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(asked: u64, answered: u64) -> Span {
        Span { asked: Duration::from_millis(asked), answered: Duration::from_millis(answered) }
    }

    fn granted(asked: u64, answered: u64, first: u64, last: u64) -> Granted {
        Granted { span: span(asked, answered), first, last }
    }

    fn broken(granted: Vec<Granted>, bounds: Vec<Bound>) -> Vec<String> {
        AnswerHistory([(7, Sequence { granted, bounds })].into()).broken_promises()
    }

    #[test]
    fn numbers_asked_for_at_the_same_time_come_in_any_order() {
        let good = vec![granted(0, 10, 5, 5), granted(5, 8, 1, 4), granted(11, 12, 6, 9)];
        assert_eq!(broken(good, vec![Bound { span: span(13, 14), number: 9 }]), [""; 0]);
    }

    #[test]
    fn a_number_handed_out_twice_is_found() {
        assert_eq!(broken(vec![granted(0, 10, 1, 5), granted(0, 10, 5, 9)], Vec::new()).len(), 1);
    }

    #[test]
    fn a_number_that_goes_back_is_found() {
        assert_eq!(broken(vec![granted(0, 10, 7, 7), granted(10, 20, 6, 6)], Vec::new()).len(), 1);
    }

    #[test]
    fn a_bound_below_what_was_known_is_found() {
        let low = Bound { span: span(10, 11), number: 6 };
        assert_eq!(broken(vec![granted(0, 10, 7, 7)], vec![low]).len(), 1);
    }
}
