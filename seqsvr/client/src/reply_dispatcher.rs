//! Hands a reply to the callers that wait for it: takes over the table that came with it, checks that no number went
//! back, remembers the new numbers, and wakes the callers. A reply that does not fit its question counts as lost.

use std::sync::{Arc, Mutex};

use super::error::AttemptError;
use super::locked;
use super::metrics::{Counters, add};
use super::outbox::{Answered, CallRequest, Pending, Single, WaitingCalls};
use super::route_cache::RouteCache;
use super::seen::SeenNumbers;
use seqsvr_core::ids::{Epoch, Granted, Uid};
use seqsvr_rpc::v1;
use seqsvr_rpc::v1::stream_reply::Answer;

/// The good outcomes of all kinds of replies.
enum ReplyOutcome {
    Granted(v1::Granted),
    Each(v1::GrantedEach),
    Bounds(v1::UpperBounds),
    Advanced,
}

/// Hands replies to the callers that wait for them.
pub struct ReplyDispatcher {
    pub addr: Arc<str>,
    pub routes: Arc<RouteCache>,
    pub seen: Arc<Mutex<SeenNumbers>>,
    pub counters: Arc<Counters>,
}

impl ReplyDispatcher {
    /// Gives `pending` the answer of the process.
    pub fn dispatch(&self, pending: Pending, answer: Option<Answer>) {
        let Some((outcome, table)) = answer.map(split) else {
            return pending.waiting.fail(&self.nonsense());
        };
        // First: a caller that is woken to ask again must find the owner that the table names.
        if let Some(table) = table {
            self.routes.adopt(table);
        }
        match outcome {
            Ok(outcome) => self.good(pending, outcome),
            Err(fault) => {
                match &fault {
                    AttemptError::NotOwner => add(&self.counters.not_owner, 1),
                    AttemptError::Unavailable { .. } => add(&self.counters.unavailable, 1),
                    _ => {}
                }
                pending.waiting.fail(&fault);
            }
        }
    }

    fn good(&self, pending: Pending, outcome: ReplyOutcome) {
        let known = pending.known;
        match (pending.waiting, outcome) {
            (WaitingCalls::Singles(singles), ReplyOutcome::Each(each))
                if each.numbers.len() == singles.len() =>
            {
                self.singles(singles, &known, each);
            }
            (WaitingCalls::Call(call), outcome) => {
                let answered = match (&call.ask, outcome) {
                    (&CallRequest::Next { uid, count }, ReplyOutcome::Granted(granted)) => {
                        self.range(uid, count, known[0], granted)
                    }
                    (CallRequest::Each(uids), ReplyOutcome::Each(each)) => {
                        self.numbers(uids, &known, each.numbers)
                    }
                    (CallRequest::Current(uids), ReplyOutcome::Bounds(bounds)) => {
                        self.bounds(uids, &known, bounds.numbers)
                    }
                    (&CallRequest::Advance { uid, at_least }, ReplyOutcome::Advanced) => {
                        locked(&self.seen).note(uid, at_least);
                        Ok(Answered::Advanced)
                    }
                    _ => Err(self.nonsense()),
                };
                // A caller who has left needs no answer.
                let _ = call.answer.send(answered);
            }
            (waiting, _) => waiting.fail(&self.nonsense()),
        }
    }

    fn singles(&self, singles: Vec<Single>, known: &[u64], each: v1::GrantedEach) {
        {
            let mut seen = locked(&self.seen);
            for (single, &number) in singles.iter().zip(&each.numbers) {
                seen.note(single.uid, number);
            }
        }
        add(&self.counters.numbers, singles.len());
        let mut runs = each.epochs.into_iter();
        let mut run = runs.next();
        for ((single, known), number) in singles.into_iter().zip(known).zip(each.numbers) {
            while run.as_ref().is_some_and(|run| run.count == 0) {
                run = runs.next();
            }
            let epoch = run.as_mut().map_or_else(Epoch::default, |run| {
                run.count -= 1;
                run.epoch.map(Epoch::from).unwrap_or_default()
            });
            let answered = match self.larger(single.uid, *known, number) {
                Ok(()) => Ok(Granted { first: number, last: number, epoch }),
                Err(fault) => Err(fault),
            };
            let _ = single.answer.send(answered);
        }
    }

    fn range(
        &self,
        uid: u32,
        count: u32,
        known: u64,
        granted: v1::Granted,
    ) -> Result<Answered, AttemptError> {
        let v1::Granted { first, last, epoch } = granted;
        if last.checked_sub(first) != Some(u64::from(count) - 1) {
            return Err(self.nonsense());
        }
        self.larger(uid, known, first)?;
        locked(&self.seen).note(uid, last);
        add(&self.counters.numbers, count as usize);
        let epoch = epoch.map(Epoch::from).unwrap_or_default();
        Ok(Answered::Granted(Granted { first, last, epoch }))
    }

    fn numbers(&self, uids: &[u32], known: &[u64], numbers: Vec<u64>) -> Result<Answered, AttemptError> {
        if numbers.len() != uids.len() {
            return Err(self.nonsense());
        }
        {
            let mut seen = locked(&self.seen);
            for (&uid, &number) in uids.iter().zip(&numbers) {
                seen.note(uid, number);
            }
        }
        for ((&uid, &known), &number) in uids.iter().zip(known).zip(&numbers) {
            self.larger(uid, known, number)?;
        }
        add(&self.counters.numbers, numbers.len());
        Ok(Answered::Numbers(numbers))
    }

    fn bounds(&self, uids: &[u32], known: &[u64], bounds: Vec<u64>) -> Result<Answered, AttemptError> {
        if bounds.len() != uids.len() {
            return Err(self.nonsense());
        }
        for ((&uid, &known), &bound) in uids.iter().zip(known).zip(&bounds) {
            if bound < known {
                return Err(self.regression(uid, known, bound));
            }
        }
        Ok(Answered::Numbers(bounds))
    }

    /// Refuses an answer that is not larger than what had arrived before its question left (I6).
    #[inline]
    fn larger(&self, uid: u32, known: u64, got: u64) -> Result<(), AttemptError> {
        if got > known { Ok(()) } else { Err(self.regression(uid, known, got)) }
    }

    #[cold]
    fn regression(&self, uid: u32, known: u64, got: u64) -> AttemptError {
        add(&self.counters.regressions, 1);
        tracing::error!(
            uid, got, known, addr = %self.addr,
            "REGRESSION: the cluster answered a number that is not larger than an earlier one; it was not used. \
             Stop the cluster and look for a store that was restored or two processes under one name"
        );
        AttemptError::Regression { uid: Uid::new(uid), got, known }
    }

    fn nonsense(&self) -> AttemptError {
        AttemptError::Lost {
            addr: Arc::clone(&self.addr),
            why: "the answer does not match the request".into(),
        }
    }
}

/// The outcome, and the table that came along.
fn split(answer: Answer) -> (Result<ReplyOutcome, AttemptError>, Option<v1::Table>) {
    /// The replies differ in the name of the good outcome alone.
    macro_rules! outcome {
        ($reply:expr, $replies:ident, $good:pat => $made:expr) => {{
            use v1::$replies::Outcome as Said;
            let outcome = match $reply.outcome {
                Some($good) => Ok($made),
                Some(Said::NotOwner(v1::NotOwner {})) | None => Err(AttemptError::NotOwner),
                Some(Said::Unavailable(later)) => Err(later.into()),
                Some(Said::Refused(refused)) => Err(refused.into()),
            };
            (outcome, $reply.table)
        }};
    }
    match answer {
        Answer::Next(reply) => outcome!(reply, next_reply, Said::Granted(it) => ReplyOutcome::Granted(it)),
        Answer::NextEach(reply) => {
            outcome!(reply, next_each_reply, Said::Granted(it) => ReplyOutcome::Each(it))
        }
        Answer::Current(reply) => {
            outcome!(reply, current_reply, Said::UpperBounds(it) => ReplyOutcome::Bounds(it))
        }
        Answer::Advance(reply) => {
            outcome!(reply, advance_reply, Said::Advanced(v1::Advanced {}) => ReplyOutcome::Advanced)
        }
    }
}

impl From<v1::Unavailable> for AttemptError {
    fn from(later: v1::Unavailable) -> Self {
        let after = std::time::Duration::from_millis(u64::from(later.retry_after_ms));
        Self::Unavailable { reason: later.reason, after }
    }
}

impl From<v1::Refused> for AttemptError {
    fn from(refused: v1::Refused) -> Self {
        match refused.limit {
            0 => Self::Refused(refused.reason),
            limit => Self::Exhausted(limit),
        }
    }
}
