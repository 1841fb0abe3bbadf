//! The requests of one batch and their answers, as far as they are known.
//!
//! Owned by the writer from the first step to the last. A request that has no answer in the end gets [`SendError::Unavailable`].

use std::collections::HashMap;
use std::sync::Arc;

use super::SendError;
use super::pipeline::PipelinePlace;
use super::plan::joiner;
use super::request::{Queued, Request, RequestAnswer, SendAck};
use crate::domain::{Content, Digest, Uid};
use crate::store::{Accept, Recipient, Write};

/// See the module.
pub(super) struct Batch {
    requests: Vec<Queued>,
    /// One for each request.
    answers: Vec<Option<RequestAnswer>>,
    /// Requests that repeat an earlier one, with the place of that one.
    repeated: Vec<(usize, usize)>,
    /// The acceptances that are planned, then those that are being written, in their order.
    accepts: Vec<Accepting>,
}

/// An acceptance that is being written, with what its answer needs.
pub(super) struct Accepting {
    /// The place of its request in the batch.
    pub(super) at: usize,
    pub(super) content: Arc<Content>,
    pub(super) digest: Digest,
    /// The joiner that gets earlier messages first, if this queue writes its copy.
    pub(super) joiner: Option<Recipient>,
    /// Receivers of other queues, by queue.
    pub(super) elsewhere: HashMap<usize, Vec<Recipient>>,
    /// Receivers of this queue whose copies are written later.
    pub(super) later: Vec<Recipient>,
}

impl Batch {
    pub(super) fn new(requests: Vec<Queued>) -> Batch {
        let answers = requests.iter().map(|_| None).collect();
        Batch { requests, answers, repeated: Vec::new(), accepts: Vec::new() }
    }

    pub(super) fn requests(&self) -> &[Queued] {
        &self.requests
    }

    /// Gives back the requests from place `at` on.
    pub(super) fn split_off(&mut self, at: usize) -> Vec<Queued> {
        self.answers.truncate(at);
        self.requests.split_off(at)
    }

    /// The answer to the request at place `at`.
    pub(super) fn answer(&mut self, at: usize, answer: RequestAnswer) {
        self.answers[at] = Some(answer);
    }

    /// The request at place `at` gets the answer of the one at `first`.
    pub(super) fn answer_like(&mut self, at: usize, first: usize) {
        self.repeated.push((at, first));
    }

    /// The request at place `at` leads to an acceptance, of whose copies some are written `later`.
    pub(super) fn plan(&mut self, at: usize, accept: &Accept, later: Vec<Recipient>) {
        let (content, digest) = (Arc::clone(&accept.content), accept.digest);
        let (joiner, elsewhere) = (None, HashMap::new());
        self.accepts.push(Accepting { at, content, digest, joiner, elsewhere, later });
    }

    /// The writes of the batch: the acceptances that were planned, except those that would overtake a request of their
    /// pipeline with a retryable refusal. `elsewhere`: the other queue to which a receiver belongs.
    pub(super) fn admit(
        &mut self,
        accepts: Vec<Result<Accept, SendError>>,
        elsewhere: impl Fn(Uid) -> Option<usize>,
    ) -> Vec<Write> {
        let (mut writes, mut refused) = (Vec::with_capacity(accepts.len()), Vec::new());
        let mut accepts = std::mem::take(&mut self.accepts).into_iter().zip(accepts).peekable();
        for (at, request) in self.requests.iter().enumerate() {
            if let Some((mut accepting, accept)) = accepts.next_if(|(next, _)| next.at == at) {
                let overtakes = |place: &PipelinePlace| {
                    refused.iter().any(|earlier: &&PipelinePlace| earlier.is_beside(place))
                };
                match accept {
                    Ok(_) if request.place.as_ref().is_some_and(overtakes) => {
                        self.answers[at] = Some(Err(SendError::OutOfOrder));
                    }
                    Ok(accept) => {
                        accepting.hand_on(&accept, &elsewhere);
                        self.accepts.push(accepting);
                        writes.push(Write::Accept(accept));
                    }
                    Err(refusal) => self.answers[at] = Some(Err(refusal)),
                }
            }
            if let Some(Err(refusal)) = &self.answers[at]
                && refusal.is_retryable()
            {
                refused.extend(&request.place);
            }
        }
        writes
    }

    /// Gives the requests back, to be decided again. Where `enough` tries were made, those of the `stale` acceptances are refused for the
    /// moment.
    pub(super) fn again(self, stale: impl Iterator<Item = usize>, enough: bool) -> Vec<Queued> {
        let mut requests: Vec<_> = self.requests.into_iter().map(Some).collect();
        if enough {
            stale.filter_map(|at| requests[self.accepts[at].at].take()).for_each(refuse_stale);
        }
        requests.into_iter().flatten().collect()
    }

    /// The acceptances that were written or not, to be answered.
    pub(super) fn take_accepts(&mut self) -> Vec<Accepting> {
        std::mem::take(&mut self.accepts)
    }

    /// Sends all answers.
    pub(super) fn send(mut self) {
        for (at, first) in self.repeated {
            let answer = self.answers[first].clone();
            self.answers[at] = answer.map(|answer| answer.map(|ack| SendAck { repeated: true, ..ack }));
        }
        for (request, answer) in self.requests.into_iter().zip(self.answers) {
            request.answer(answer.unwrap_or(Err(SendError::Unavailable)));
        }
    }
}

/// Refuses a request whose grounds keep changing.
fn refuse_stale(request: Queued) {
    let refusal = match request.request {
        Request::Group { .. } => SendError::GroupChanged,
        _ => SendError::Unavailable,
    };
    request.answer(Err(refusal));
}

impl Accepting {
    /// Notes which copies other queues write, and whether the joiner's is one of this queue.
    fn hand_on(&mut self, accept: &Accept, elsewhere: impl Fn(Uid) -> Option<usize>) {
        let joiner = joiner(&accept.content);
        for recipient in &accept.rest {
            // A copy without an id in this queue is written later, or resumed from the store.
            match elsewhere(recipient.uid) {
                Some(queue) => self.elsewhere.entry(queue).or_default().push(*recipient),
                None if Some(recipient.uid) == joiner => self.joiner = Some(*recipient),
                None => {}
            }
        }
    }
}
