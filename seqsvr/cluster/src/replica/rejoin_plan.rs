//! The plan of a rejoin, for a replica that lost or restored its disk: when it asks the others for copies, how many it
//! needs, and what state it then votes with. Pure; the shell in `rejoin` carries it out over gRPC, the simulation in
//! virtual time.
//!
//! A lost replica may have confirmed things that its disk does not have any more. Each of them was confirmed by W - 1
//! others too, so that copies from any N - W + 1 others hold all of them. One case remains: a caller may still count an
//! answer of the lost life together with one that another replica gives after it was copied. So the copies are taken
//! only after a pause that is longer than any call of the quorum counts answers, on any clock.
//!
//! A table that too few replicas had counts once the copy is one more. An arbiter of a higher term may have its
//! promises from before that, one of them from the lost life, and know only an older table. So where the newest copied
//! table is older than the highest copied promise, W - 1 others first promise a term above that: whoever had the
//! promises is outranked, and asks anew. Their copies are taken after that, so that none of what the arbiter wrote
//! before is missed.

use std::time::Duration;

use crate::store::merge::{LayoutsDiffer, merge};
use seqsvr_core::clock::Moment;
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::store::Sizes;
use seqsvr_core::store::message::Copy;

/// Between two attempts to copy the same replica.
const PAUSE: Duration = Duration::from_millis(500);

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// It begins, or the moment of [`RejoinPlan::wake_at`] has come.
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
pub enum Step {
    /// Ask these of the others, none if there is only to wait: for the promise of the term, if there is one, and then, whatever
    /// they say to that, for a copy.
    Ask(Vec<usize>, Option<Bid>),
    /// Vote by this, once it is durable.
    Vote(Copy),
}

/// What others promise first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bid {
    /// The number of their configuration.
    pub number: u64,
    /// No arbiter writes tables of this term.
    pub term: u64,
}

/// What a replica does to rejoin its Set.
#[derive(Clone, Debug)]
pub struct RejoinPlan {
    sizes: Sizes,
    flaws: Flaws,
    others: Vec<Other>,
    needed: usize,
    /// What copies count only after.
    bid: Option<Bid>,
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

impl RejoinPlan {
    /// A replica of a Set of `sizes` that lost its state before `now`. It waits for `rejoin_wait`, until no caller counts an answer
    /// from before.
    pub fn new(sizes: Sizes, now: Moment, rejoin_wait: Duration, kept: Option<Copy>, flaws: Flaws) -> Self {
        let rejoin_wait = if flaws.has(Flaw::NoRejoinWait) { Duration::ZERO } else { rejoin_wait };
        let enough = sizes.n() - sizes.w() + 1;
        let needed = if flaws.has(Flaw::RejoinOnTooFew) { enough - 1 } else { enough };
        Self {
            sizes,
            flaws,
            others: vec![Other::Due(now + rejoin_wait); sizes.n() - 1],
            needed,
            bid: None,
            kept,
        }
    }

    /// Takes note of `event` at `now`. A copy that was taken once stays good: what is confirmed since is confirmed without
    /// this replica.
    ///
    /// # Errors
    ///
    /// [`LayoutsDiffer`].
    pub fn on(&mut self, now: Moment, event: Event) -> Result<Step, LayoutsDiffer> {
        if let Event::Answered { from, copy } = event {
            self.others[from] = copy.map_or(Other::Due(now + PAUSE), Other::Copied);
        }
        self.leave_out(now);
        if self.copied() >= self.needed {
            let copied = self.others.iter().filter_map(|other| match other {
                Other::Copied(copy) => Some(copy.clone()),
                Other::Due(_) | Other::Asked => None,
            });
            let merged = merge(copied.chain(self.kept.clone()))?;
            let older = merged.table.as_ref().is_some_and(|table| table.version.term < merged.promised);
            if self.bid.is_some() || !older || self.flaws.has(Flaw::RejoinUnderPromise) {
                return Ok(Step::Vote(merged));
            }
            self.bid = Some(Bid { number: merged.configured.number(), term: merged.promised + 1 });
            self.needed = self.needed.max(self.sizes.w() - 1);
            self.others.fill(Other::Due(now));
        }
        let mut ask = Vec::new();
        for (index, other) in self.others.iter_mut().enumerate() {
            if matches!(other, Other::Due(at) if *at <= now) {
                *other = Other::Asked;
                ask.push(index);
            }
        }
        Ok(Step::Ask(ask, self.bid))
    }

    /// Copies of an earlier configuration than another's may come from a replica that was replaced: they do not count. Nor does a
    /// copy while its configuration is being changed: where that leads is known by others, which may not be among these. They
    /// are copied again, as are those that have not promised what they were to promise; in a newer configuration that is asked anew.
    fn leave_out(&mut self, now: Moment) {
        let configured = |other: &Other| match other {
            Other::Copied(copy) => Some((copy.configured.number(), copy.configured.ballot)),
            Other::Due(_) | Other::Asked => None,
        };
        let newest = self.others.iter().filter_map(configured).map(|(number, _)| number).max();
        if let (Some(bid), Some(newest)) = (&mut self.bid, newest) {
            bid.number = bid.number.max(newest);
        }
        let bid = self.bid.map_or(0, |bid| bid.term);
        for other in &mut self.others {
            let early = matches!(other, Other::Copied(copy) if copy.promised < bid);
            if early || configured(other).is_some_and(|(number, ballot)| Some(number) < newest || ballot > 0)
            {
                *other = Other::Due(now + PAUSE);
            }
        }
    }

    /// When to send [`Event::Wake`].
    pub fn wake_at(&self) -> Option<Moment> {
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
    use std::collections::VecDeque;
    use std::sync::Arc;

    use super::Step as Next;
    use super::*;
    use crate::replica::state::State;
    use crate::store::quorum::rounds::{PromiseRound, ReadRound, Round, Step, WriteRound};
    use seqsvr_core::ids::Epoch;
    use seqsvr_core::routing::Table;
    use seqsvr_core::store::message::Question;
    use seqsvr_core::store::tables::Revisions;

    const REJOIN_WAIT: Duration = Duration::from_secs(10);

    fn five() -> RejoinPlan {
        let sizes = Sizes::new(5, 3).expect("these quorums meet");
        let kept = Copy { promised: 3, ..Copy::default() };
        RejoinPlan::new(sizes, Moment::default(), REJOIN_WAIT, Some(kept), Flaws::default())
    }

    fn copied(from: usize, promised: u64) -> Event {
        Event::Answered { from, copy: Some(Copy { promised, ..Copy::default() }) }
    }

    fn table(term: u64) -> Arc<Table> {
        let (version, nodes, assignments) = (Epoch { term, version: 1 }, Vec::new(), Vec::new());
        Arc::new(Table { set: 0, version, section_size: 8, uids: 0..=7, nodes, assignments })
    }

    /// A whole round over these replicas; the others do not answer.
    fn carry<R: Round>(mut round: R, replicas: &mut [State], reached: &[usize]) -> R::Outcome {
        let mut asks: VecDeque<_> = round.open().into();
        let mut outcome = None;
        while let Some((to, question)) = asks.pop_front() {
            let there = reached.contains(&to);
            let answer = there.then(|| replicas[to].ask(Moment::default(), &question).answer).flatten();
            // Its questions arrive whether it has ended or not.
            if outcome.is_none() {
                match round.on(to, answer.ok_or_else(String::new)) {
                    Step::Ask(more) => asks.extend(more),
                    Step::Done(done) => outcome = Some(done),
                }
            }
        }
        outcome.expect("a round ends with its last answer")
    }

    /// What it votes by once it has asked the others, which all answer.
    fn back(sizes: Sizes, replicas: &mut [State]) -> State {
        let end = Moment::default() + REJOIN_WAIT;
        let mut back = RejoinPlan::new(sizes, Moment::default(), REJOIN_WAIT, None, Flaws::default());
        let mut step = back.on(end, Event::Wake);
        let mut out = VecDeque::new();
        loop {
            match step.expect("one layout") {
                Next::Vote(copy) => return State::restored(copy, 1, Flaws::default()),
                Next::Ask(others, bid) => out.extend(others.into_iter().map(|from| (from, bid))),
            }
            let (from, bid) = out.pop_front().expect("it waits for answers");
            if let Some(Bid { term, .. }) = bid {
                replicas[from + 1].ask(end, &Question::Promise { term });
            }
            let copy = replicas[from + 1].copy();
            step = back.on(end, Event::Answered { from, copy: Some(copy) });
        }
    }

    /// An arbiter ended when its table had reached fewer than W; the next has its promises, of which one is lost with a disk. The
    /// copies make the table one that counts, so the promises must not be worth anything any more.
    #[test]
    fn a_table_that_counts_by_a_copy_is_not_followed_by_one_that_comes_of_an_older() {
        for (n, w) in [(3, 2), (5, 3)] {
            let sizes = Sizes::new(n, w).expect("these quorums meet");
            let mut replicas = vec![State::new(Flaws::default()); n];
            let all: Vec<usize> = (0..n).collect();
            carry(WriteRound::new(table(1), sizes), &mut replicas, &all).expect("all are there");
            carry(PromiseRound::new(10, sizes), &mut replicas, &all).expect("all are there");
            carry(WriteRound::new(table(10), sizes), &mut replicas, &all[w..]).expect_err("it ends");
            let known = carry(PromiseRound::new(20, sizes), &mut replicas, &all[..w]).expect("W are there");
            assert_eq!(known, Some(table(1)));

            replicas[0] = back(sizes, &mut replicas);
            let others = [&[0], &all[w..]].concat();
            let read = ReadRound::new(&Revisions::default(), Duration::ZERO, sizes, Flaws::default());
            let counts = carry(read, &mut replicas, &others).is_ok_and(|one| one.table == Some(table(10)));
            let written = carry(WriteRound::new(table(20), sizes), &mut replicas, &all[1..]);
            assert!(!counts || written.is_err(), "{n}/{w}: it knows the first table alone");
        }
    }

    #[test]
    fn nobody_is_asked_before_the_pause_is_over() {
        let mut back = five();
        let end = Moment::default() + REJOIN_WAIT;
        let early = Moment::from_nanos(end.as_nanos() - 1);
        assert_eq!(back.on(early, Event::Wake), Ok(Next::Ask(Vec::new(), None)));
        assert_eq!(back.wake_at(), Some(end));
        assert_eq!(back.on(end, Event::Wake), Ok(Next::Ask(vec![0, 1, 2, 3], None)));
    }

    #[test]
    fn it_votes_once_enough_others_were_copied_and_not_before() {
        let mut back = five();
        let now = Moment::default() + REJOIN_WAIT;
        back.on(now, Event::Wake).unwrap();
        assert_eq!(back.on(now, copied(0, 1)), Ok(Next::Ask(Vec::new(), None)));
        assert_eq!(back.on(now, Event::Answered { from: 1, copy: None }), Ok(Next::Ask(Vec::new(), None)));
        assert_eq!(back.on(now, copied(2, 2)), Ok(Next::Ask(Vec::new(), None)));
        assert_eq!(back.progress(), (2, 3));
        let later = back.wake_at().expect("one has to be asked again");
        assert_eq!(back.on(later, Event::Wake), Ok(Next::Ask(vec![1], None)));
        let all = Copy { promised: 3, ..Copy::default() };
        assert_eq!(back.on(later, copied(3, 1)), Ok(Next::Vote(all)), "with what was kept");
    }
}
