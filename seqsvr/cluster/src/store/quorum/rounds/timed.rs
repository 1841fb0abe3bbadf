//! How long a call of the quorum counts answers. A replica that lost its disk has forgotten what it answered; what it
//! had confirmed is copied from the others, as far as it is there by then. So nobody may go on counting its old answer
//! together with one that another replica gives after it was copied: each call ends, on the clock that leases run on,
//! whatever comes later, and a replica that comes back copies only when all such calls have ended ([`rejoin_wait`]). A
//! timer alone would not do: who wakes from a pause may see an answer first.

use std::time::Duration;

use super::{Ask, Round, Step};
use seqsvr_core::clock::Moment;
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::store::message::Answer;

/// How long a call counts answers when each of its questions may take `patience`: none asks more than three one after the
/// other, and a read waits for news no longer than [`waiting`] says.
pub(crate) fn counted(patience: Duration) -> Duration {
    patience * 4
}

/// How long a read may wait for news.
pub fn waiting(wait: Duration, patience: Duration) -> Duration {
    wait.min(patience * 2)
}

/// How long a replica waits, after it lost its state, until no call counts what it had answered before: clocks differ by at
/// most 5 % in rate, so two by less than a tenth.
pub fn rejoin_wait(patience: Duration) -> Duration {
    counted(patience) * 11 / 10
}

/// A round that counts nothing after its time.
#[derive(Clone, Debug)]
pub struct Timed<R> {
    round: R,
    until: Moment,
    flaws: Flaws,
}

impl<R: Round> Timed<R> {
    /// `now` is before the first question; each may take `patience`.
    pub fn new(round: R, now: Moment, patience: Duration, flaws: Flaws) -> Self {
        Self { round, until: now + counted(patience), flaws }
    }

    /// See [`Round::open`].
    pub fn open(&mut self) -> Vec<Ask> {
        self.round.open()
    }

    /// See [`Round::on`]; `now` was read after the answer had come.
    pub fn on(&mut self, now: Moment, from: usize, answer: Result<Answer, String>) -> Step<R::Outcome> {
        let late = now >= self.until && !self.flaws.has(Flaw::CountLate);
        self.round
            .on(from, if late { Err("its answer came too late to be counted".to_owned()) } else { answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::quorum::rounds::ReleaseRound;
    use seqsvr_core::ids::Epoch;
    use seqsvr_core::store::Sizes;
    use seqsvr_core::store::message::Question;
    use seqsvr_core::store::{Owner, StoreError};

    #[test]
    fn an_answer_after_the_time_of_the_call_is_not_counted() {
        let patience = Duration::from_millis(500);
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let owner = Owner { epoch: Epoch { term: 1, version: 1 }, incarnation: 1 };
        let question = Question::Release { owner, sections: Vec::new() };
        let sizes = Sizes::majority(3).expect("3 replicas have majorities");
        let round = ReleaseRound::new(question, sizes);
        let mut timed = Timed::new(round, at(1_000), patience, Flaws::default());
        assert_eq!(timed.open().len(), 3);
        let mut in_time = timed.clone();
        assert!(matches!(timed.on(at(1_001), 0, Ok(Answer::Released)), Step::Ask(_)));
        assert!(matches!(timed.on(at(3_000), 1, Ok(Answer::Released)), Step::Ask(_)));
        let end = timed.on(at(3_000), 2, Ok(Answer::Released));
        assert!(matches!(end, Step::Done(Err(StoreError::Unavailable(_)))), "{end:?}");
        assert!(matches!(in_time.on(at(1_001), 0, Ok(Answer::Released)), Step::Ask(_)));
        assert!(matches!(in_time.on(at(2_999), 1, Ok(Answer::Released)), Step::Done(Ok(()))));
    }
}
