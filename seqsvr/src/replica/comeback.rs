//! How a replica that lost or restored its disk comes back: when it asks the others for copies, how many it needs, and what it
//! votes by then. Pure; the shell in `rejoin` carries it out over gRPC, the simulation in virtual time.
//!
//! A lost replica may have confirmed things that its disk does not have any more. Each of them was confirmed by W - 1 others
//! too, so that copies from any N - W + 1 others hold all of them. One case remains: a caller may still count an answer of the
//! lost life together with one that another replica gives after it was copied. So the copies are taken only after a pause
//! that is longer than any call of the quorum counts answers, on any clock.

use std::time::Duration;

use super::merge::{LayoutsDiffer, merge};
use super::message::Copy;
use crate::clock::Moment;
use crate::flaws::{Flaw, Flaws};
use crate::store::quorum::Sizes;

/// Between two attempts to copy the same replica.
const PAUSE: Duration = Duration::from_millis(500);

/// What happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// It begins, or the moment of [`Comeback::wake_at`] has come.
    Wake,
    /// One of the others answered with its copy, or did not.
    Answered {
        /// Which of the others: 0 and up.
        from: usize,
        /// Everything that it votes by.
        copy: Option<Copy>,
    },
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask these of the others, none if there is only to wait.
    Ask(Vec<usize>),
    /// Vote by this, once it is durable.
    Vote(Copy),
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Comeback {
    others: Vec<Other>,
    needed: usize,
    /// What could still be read of its own state, which adds to what the others have.
    kept: Option<Copy>,
}

#[derive(Clone, Debug)]
enum Other {
    /// To be asked then.
    Due(Moment),
    Asked,
    Copied(Copy),
}

impl Comeback {
    /// A replica of a Set of `sizes` that lost its state before `now`. It waits for `settle`.
    pub(crate) fn new(sizes: Sizes, now: Moment, settle: Duration, kept: Option<Copy>, flaws: Flaws) -> Self {
        let settle = if flaws.has(Flaw::NoSettle) { Duration::ZERO } else { settle };
        let enough = sizes.n() - sizes.w() + 1;
        let needed = if flaws.has(Flaw::RejoinOnTooFew) { enough - 1 } else { enough };
        Self { others: vec![Other::Due(now + settle); sizes.n() - 1], needed, kept }
    }

    /// Takes note of `event` at `now`. A copy that was taken once stays good: what is confirmed since is confirmed without
    /// this replica.
    ///
    /// # Errors
    ///
    /// [`LayoutsDiffer`].
    pub(crate) fn on(&mut self, now: Moment, event: Event) -> Result<Step, LayoutsDiffer> {
        if let Event::Answered { from, copy } = event {
            self.others[from] = copy.map_or(Other::Due(now + PAUSE), Other::Copied);
        }
        self.leave_out(now);
        if self.copied() >= self.needed {
            let copied = self.others.iter().filter_map(|other| match other {
                Other::Copied(copy) => Some(copy.clone()),
                Other::Due(_) | Other::Asked => None,
            });
            return merge(copied.chain(self.kept.clone())).map(Step::Vote);
        }
        let mut ask = Vec::new();
        for (index, other) in self.others.iter_mut().enumerate() {
            if matches!(other, Other::Due(at) if *at <= now) {
                *other = Other::Asked;
                ask.push(index);
            }
        }
        Ok(Step::Ask(ask))
    }

    /// Copies of an earlier configuration than another's may come from a replica that was replaced: they do not count. Nor does a
    /// copy while its configuration is being changed: where that leads is known by others, which may not be among these. They
    /// are copied again.
    fn leave_out(&mut self, now: Moment) {
        let configured = |other: &Other| match other {
            Other::Copied(copy) => Some((copy.configured.number(), copy.configured.ballot)),
            Other::Due(_) | Other::Asked => None,
        };
        let newest = self.others.iter().filter_map(configured).map(|(number, _)| number).max();
        for other in &mut self.others {
            if configured(other).is_some_and(|(number, ballot)| Some(number) < newest || ballot > 0) {
                *other = Other::Due(now + PAUSE);
            }
        }
    }

    /// When to send [`Event::Wake`].
    pub(crate) fn wake_at(&self) -> Option<Moment> {
        let due = |other: &Other| match other {
            Other::Due(at) => Some(*at),
            Other::Asked | Other::Copied(_) => None,
        };
        self.others.iter().filter_map(due).min()
    }

    /// How many of the others were copied, and of how many copies it has need.
    pub(crate) fn progress(&self) -> (usize, usize) {
        (self.copied(), self.needed)
    }

    fn copied(&self) -> usize {
        self.others.iter().filter(|other| matches!(other, Other::Copied(_))).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_secs(10);

    fn five() -> Comeback {
        let sizes = Sizes::new(5, 3).expect("these quorums meet");
        let kept = Copy { promised: 3, ..Copy::default() };
        Comeback::new(sizes, Moment::default(), SETTLE, Some(kept), Flaws::default())
    }

    fn copied(from: usize, promised: u64) -> Event {
        Event::Answered { from, copy: Some(Copy { promised, ..Copy::default() }) }
    }

    #[test]
    fn nobody_is_asked_before_the_pause_is_over() {
        let mut back = five();
        let end = Moment::default() + SETTLE;
        let early = Moment::from_nanos(end.as_nanos() - 1);
        assert_eq!(back.on(early, Event::Wake), Ok(Step::Ask(Vec::new())));
        assert_eq!(back.wake_at(), Some(end));
        assert_eq!(back.on(end, Event::Wake), Ok(Step::Ask(vec![0, 1, 2, 3])));
    }

    #[test]
    fn it_votes_once_enough_others_were_copied_and_not_before() {
        let mut back = five();
        let now = Moment::default() + SETTLE;
        back.on(now, Event::Wake).unwrap();
        assert_eq!(back.on(now, copied(0, 1)), Ok(Step::Ask(Vec::new())));
        assert_eq!(back.on(now, Event::Answered { from: 1, copy: None }), Ok(Step::Ask(Vec::new())));
        assert_eq!(back.on(now, copied(2, 2)), Ok(Step::Ask(Vec::new())));
        assert_eq!(back.progress(), (2, 3));
        let later = back.wake_at().expect("one has to be asked again");
        assert_eq!(back.on(later, Event::Wake), Ok(Step::Ask(vec![1])));
        let all = Copy { promised: 3, ..Copy::default() };
        assert_eq!(back.on(later, copied(3, 1)), Ok(Step::Vote(all)), "with what was kept");
    }
}
