//! THE loop: takes a batch, then 1 numbers, 2 rows, 3 notice, and only then the answers (S16, I1, I3).
//!
//! One writer lives per queue; it alone takes numbers for and writes rows to the queue's receivers, and it moves on only when
//! the outcome of its commit is known. It owns nothing that must outlive it: that lies in [`Shard`].

use std::collections::HashMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::numbering::Numbered;
use super::outage::Outages;
use super::overtaken;
use super::pipeline::Place;
use super::plan::{Decision, Limits, Planner};
use super::shard::{Delivery, Shard};
use super::{Accepted, Ask, Options, Parts, SendError, queue_of};
use crate::domain::Uid;
use crate::store::{Accept, CommitError, Copied, Deliver, Done, Recipient, Row, Write};

/// One writer at work on its queue.
pub(super) struct Writer<'a> {
    pub(super) parts: &'a Arc<Parts>,
    pub(super) outages: &'a Outages,
    pub(super) options: Options,
    pub(super) closing: &'a CancellationToken,
    pub(super) shard: &'a mut Shard,
}

/// An order that goes into the commit, with everything its answer needs.
struct Entrant {
    /// Its place in the batch.
    at: usize,
    accept: Accept,
}

impl Writer<'_> {
    /// Works until the queue is closed and empty. `takeover`: an earlier writer of this process died.
    pub(super) async fn run(mut self, takeover: bool) {
        self.recover(takeover).await;
        let (mut deliveries, mut asks) = (Vec::new(), Vec::new());
        while self.take(&mut deliveries, &mut asks).await {
            if !(deliveries.is_empty() && asks.is_empty()) {
                self.work(std::mem::take(&mut deliveries), std::mem::take(&mut asks)).await;
            }
            if self.may_catch_up() {
                self.catch_up().await;
            }
        }
    }

    /// Waits for work. Copies for others go out before new orders come in, so that one sender's messages reach every
    /// receiver in their order (I12), and copies from others are always taken, so that two full queues cannot wait
    /// for each other. `false`: closed and empty.
    async fn take(&mut self, deliveries: &mut Vec<Delivery>, asks: &mut Vec<Ask>) -> bool {
        let may_catch_up = self.may_catch_up();
        let Shard { asks: lane, deliveries: owed, peers, outbox, waiting, behind, ended, .. } =
            &mut *self.shard;
        let batch = self.options.batch.max(1);
        if peers.is_empty() {
            // Only a recovery puts anything here after the last order was handed on: copies that the other queues
            // have already, or find in the store.
            outbox.clear();
        }
        while let Some((queue, delivery)) = outbox.pop_front() {
            if let Err(full) = peers[queue].try_send(delivery) {
                outbox.push_front((queue, full.into_inner()));
                break;
            }
        }
        let front = outbox.front().map(|(queue, _)| peers[*queue].clone());
        let may_take_orders = outbox.is_empty() && !peers.is_empty();
        if may_take_orders {
            asks.extend(waiting.drain(..));
        }
        if asks.is_empty() {
            tokio::select! {
                biased;
                () = self.closing.cancelled(), if !lane.is_closed() => lane.close(),
                Ok(room) = async { front.as_ref().expect("guarded").reserve().await }, if front.is_some() => {
                    if let Some((_, delivery)) = outbox.pop_front() {
                        room.send(delivery);
                    }
                }
                count = owed.recv_many(deliveries, batch) => if count == 0 { return false },
                count = lane.recv_many(asks, batch), if may_take_orders => if count == 0 {
                    // The last order is taken and handed on: when all queues have come so far, the lanes end.
                    peers.clear();
                },
                () = async {}, if may_catch_up => {}
                Ok(()) = ended.changed(), if !behind.is_empty() => ended.mark_changed(),
            }
        }
        while deliveries.len() < batch {
            let Ok(delivery) = owed.try_recv() else { break };
            deliveries.push(delivery);
        }
        while may_take_orders && asks.len() < batch {
            let Ok(ask) = lane.try_recv() else { break };
            asks.push(ask);
        }
        true
    }

    /// One batch, from the orders to the answers.
    async fn work(&mut self, deliveries: Vec<Delivery>, asks: Vec<Ask>) {
        let (mut asks, late): (Vec<Ask>, _) = asks.into_iter().partition(Ask::is_in_order);
        refuse(late, &SendError::OutOfOrder);
        let (facts, unread) = self.facts(&asks).await;
        let mut answers: Vec<Option<Result<Accepted, SendError>>> = vec![None; asks.len()];
        let mut same: Vec<(usize, usize)> = Vec::new();
        let (mut places, mut writes) = (Vec::new(), Vec::new());

        let limits = Limits { text: self.options.text, members: self.options.members };
        let mut planner = Planner::new(facts, limits, self.parts.clock.now());
        let mut rows = 0;
        let mut decided = 0;
        for (at, ask) in asks.iter().enumerate() {
            if rows >= self.options.batch_rows {
                break;
            }
            decided = at + 1;
            if let Some(refusal) = unread.refusal(ask) {
                answers[at] = Some(Err(refusal));
                continue;
            }
            match planner.decide(at, ask.who, &ask.order) {
                Decision::Answer(answer) => answers[at] = Some(answer),
                Decision::SameAs(first) => same.push((at, first)),
                Decision::Write(planned) => {
                    rows += planned.recipients.len();
                    places.push(at);
                    writes.push(planned);
                }
            }
        }
        self.shard.waiting.extend(asks.drain(decided..));

        let Numbered { copies, accepts, behind, owed } =
            self.number(&self.shard.behind, deliveries, writes).await;
        let has_copies = !copies.is_empty();
        let mut entrants = in_order(&asks, places.into_iter().zip(accepts), &mut answers);

        match self.commit(copies, &mut entrants).await {
            Ok(outcomes) => {
                self.leave_behind(behind, owed);
                for (entrant, outcome) in entrants.into_iter().zip(outcomes) {
                    answers[entrant.at] = Some(self.settle(entrant.accept, outcome));
                }
                answer(asks, answers, &same);
            }
            Err(error @ (CommitError::Refused(_) | CommitError::Behind(_))) => {
                if let Some(left_out) = self.shard.log.pass() {
                    warn!(%error, left_out, "a commit was refused");
                }
                for entrant in &entrants {
                    answers[entrant.at] = Some(Err(SendError::Unavailable));
                }
                answer(asks, answers, &same);
                if has_copies {
                    self.recover(true).await;
                }
            }
            Err(CommitError::Unknown(error)) => {
                error!(%error, "the outcome of a commit is unknown; looking what is there");
                self.recover(true).await;
                for entrant in &entrants {
                    answers[entrant.at] = Some(self.found(&entrant.accept).await);
                }
                answer(asks, answers, &same);
            }
        }
    }

    /// Steps 2 and 3: makes copies and acceptances durable in one transaction, then tells the receivers. Returns the outcomes of
    /// the acceptances.
    async fn commit(
        &mut self,
        copies: Vec<Deliver>,
        entrants: &mut [Entrant],
    ) -> Result<Vec<Done>, CommitError> {
        if copies.is_empty() && entrants.is_empty() {
            return Ok(Vec::new());
        }
        let count = copies.len();
        let mut writes: Vec<Write> = copies.into_iter().map(Write::Deliver).collect();
        writes.extend(entrants.iter().map(|entrant| Write::Accept(entrant.accept.clone())));
        let mut rows: Vec<Vec<Row>> = writes.iter().map(|write| rows_of(write).to_vec()).collect();
        self.shard.unsettled.extend(rows.iter().flatten().map(|row| row.receiver));

        let mut tries = 0..overtaken::TIMES;
        let mut outcomes = loop {
            match self.parts.store.commit(writes).await {
                Err(CommitError::Behind(behind)) if tries.next().is_some() => {
                    writes = self.renumbered(*behind).await?;
                    rows = writes.iter().map(|write| rows_of(write).to_vec()).collect();
                    // The answers name the ids under which the rows are stored.
                    for (entrant, rows) in entrants.iter_mut().zip(&rows[count..]) {
                        entrant.accept.rows.clone_from(rows);
                    }
                }
                done => break done?,
            }
        };

        let mut woken = Vec::new();
        for (rows, outcome) in rows.iter().zip(&outcomes) {
            if let Done::Accepted(_, copied) | Done::Delivered(copied) = outcome {
                for (row, _) in rows.iter().zip(copied).filter(|(_, copied)| **copied == Copied::Stored) {
                    self.parts.watermarks.publish(row.receiver, row.message_id);
                    woken.push(row.receiver);
                }
            } else if let Done::Rejected(why) = outcome {
                error!(why, "the database refuses a write for good");
            }
        }
        self.shard.unsettled.clear();
        self.parts.notifier.notify(&woken);
        outcomes.drain(..count);
        Ok(outcomes)
    }

    /// Copies alone, as recovery writes them.
    pub(super) async fn deliver(&mut self, copies: Vec<Deliver>) -> Result<(), CommitError> {
        self.commit(copies, &mut []).await.map(drop)
    }

    /// What an acceptance's outcome comes to; what others are owed goes to the outbox.
    fn settle(&mut self, accept: Accept, outcome: Done) -> Result<Accepted, SendError> {
        match outcome {
            Done::Accepted(acceptance, _) => {
                let mut by_queue: HashMap<usize, Vec<Recipient>> = HashMap::new();
                for recipient in accept.rest {
                    // The store keeps what is owed where there is no number to write it under.
                    if !self.is_mine(recipient.uid) {
                        by_queue.entry(self.queue_of(recipient.uid)).or_default().push(recipient);
                    }
                }
                for (queue, to) in by_queue {
                    let content = Arc::clone(&accept.content);
                    self.shard.outbox.push_back((queue, Delivery { acceptance, content, to }));
                }
                let message_id = accept.rows[0].message_id;
                Ok(Accepted { message_id, sent_at: accept.content.sent_at, repeated: false })
            }
            Done::GroupChanged => Err(SendError::GroupChanged),
            Done::Rejected(_) | Done::Delivered(_) => Err(SendError::Rejected),
        }
    }

    /// After an unknown outcome: whether the acceptance is there.
    async fn found(&self, accept: &Accept) -> Result<Accepted, SendError> {
        let content = &accept.content;
        let store = &self.parts.store;
        let found = match (content.client_id, content.body.read_to()) {
            (Some(client_id), _) => {
                let records = store.sent(&[(content.sender, client_id)]).await;
                records.ok().and_then(|mut records| records.pop().flatten()).map(|sent| sent.message_id)
            }
            (None, Some(marker)) => {
                let stands = store.read_to(content.sender, content.target).await;
                stands.ok().filter(|stands| *stands >= marker)
            }
            (None, None) => None,
        };
        let accepted = |message_id| Accepted { message_id, sent_at: content.sent_at, repeated: false };
        found.map(accepted).ok_or(SendError::Unavailable)
    }

    pub(super) fn queue_of(&self, uid: Uid) -> usize {
        queue_of(uid, self.options.queues.max(1))
    }

    pub(super) fn is_mine(&self, uid: Uid) -> bool {
        self.queue_of(uid) == self.shard.index
    }
}

fn rows_of(write: &Write) -> &[Row] {
    match write {
        Write::Accept(accept) => &accept.rows,
        Write::Deliver(deliver) => &deliver.rows,
    }
}

/// What is written of a batch: nothing that would overtake an order of its pipeline that is refused for the moment.
fn in_order(
    asks: &[Ask],
    accepts: impl Iterator<Item = (usize, Result<Accept, SendError>)>,
    answers: &mut [Option<Result<Accepted, SendError>>],
) -> Vec<Entrant> {
    let (mut entrants, mut refused) = (Vec::new(), Vec::new());
    let mut accepts = accepts.peekable();
    for (at, ask) in asks.iter().enumerate() {
        if let Some((_, accept)) = accepts.next_if(|(next, _)| *next == at) {
            let overtakes = |place: &Place| refused.iter().any(|earlier: &&Place| earlier.is_beside(place));
            match accept {
                Ok(_) if ask.place.as_ref().is_some_and(overtakes) => {
                    answers[at] = Some(Err(SendError::OutOfOrder));
                }
                Ok(accept) => entrants.push(Entrant { at, accept }),
                Err(refusal) => answers[at] = Some(Err(refusal)),
            }
        }
        if let Some(Err(refusal)) = &answers[at]
            && refusal.is_retryable()
        {
            refused.extend(&ask.place);
        }
    }
    entrants
}

/// Tells everyone the same refusal.
pub(super) fn refuse(asks: Vec<Ask>, refusal: &SendError) {
    for ask in asks {
        ask.answer(Err(refusal.clone()));
    }
}

/// Tells everyone the answer, and to repetitions the answer of the first.
fn answer(asks: Vec<Ask>, mut answers: Vec<Option<Result<Accepted, SendError>>>, same: &[(usize, usize)]) {
    for &(at, first) in same {
        answers[at] = answers[first].clone().map(|answer| answer.map(|a| Accepted { repeated: true, ..a }));
    }
    for (ask, answer) in asks.into_iter().zip(answers) {
        ask.answer(answer.unwrap_or(Err(SendError::Unavailable)));
    }
}
