//! THE loop: takes a batch and goes through four steps with it: decide, number, commit, answer (S16, I1, I3).
//!
//! One writer lives per queue; it alone takes ids for and writes rows to the queue's receivers. Where the store assigns
//! the ids (PostgreSQL, and SQLite with `ids = "store"`) it takes none, and writes to everybody. It moves on only when
//! the outcome of its commit is known. It owns nothing that must outlive it: that lies in [`Shard`]. Step 2 is in
//! `numbering`, step 3 in `commit`.

use std::collections::HashSet;
use std::iter;
use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::time::{Instant, sleep_until};
use tracing::{error, warn};

use super::batch::{Accepting, Batch};
use super::facts::Unread;
use super::numbering::{LeftBehind, Numbered};
use super::plan::{Facts, NoWrite, PlanLimits, Planner, joiner};
use super::request::{Queued, RequestAnswer, SendAck, refuse};
use super::shard::{Pass, QueueWriter, Shard};
use super::slices::Delivery;
use super::{Options, SendError};
use crate::domain::Uid;
use crate::store::{Accept, CommitError, KeyState, MessageStore, Outcome};

/// How often a batch is decided before those of its requests are refused whose grounds keep changing.
const MOST_TRIES: usize = 4;

/// Acceptances that are looked for at once after an unknown outcome: one whose part of the store is away holds up few others.
const LOOKS_AT_ONCE: usize = 8;

impl QueueWriter<'_> {
    /// Works until the queue is closed and empty. `replaces`: it replaces a writer of this process that panicked.
    pub(super) async fn run(mut self, replaces: bool) {
        self.recover(replaces).await;
        let (mut deliveries, mut requests) = (Vec::new(), Vec::new());
        while self.take(&mut deliveries, &mut requests).await {
            let began = Instant::now();
            let slice = self.take_slice(&mut deliveries, began);
            self.hold(&mut requests, began);
            if !(deliveries.is_empty() && requests.is_empty()) {
                self.work(std::mem::take(&mut deliveries), std::mem::take(&mut requests)).await;
            }
            if slice {
                let now = Instant::now();
                self.shard.slices.written(now - began, now);
            }
            self.begin_look();
            if self.may_catch_up() {
                self.catch_up().await;
            }
        }
    }

    /// Waits for work. Copies for others go out before new requests come in, so that one sender's messages reach every
    /// receiver in their order (I12), and copies from others are always taken, so that two full queues cannot wait
    /// for each other. `false`: closed and empty.
    async fn take(&mut self, deliveries: &mut Vec<Delivery>, requests: &mut Vec<Queued>) -> bool {
        let may_catch_up = self.may_catch_up();
        let may_be_owed = self.parts.store.leaves_copies_owed();
        let Shard {
            requests: lane,
            deliveries: owed,
            peers,
            outbox,
            waiting,
            behind,
            ended,
            pass,
            looks,
            slices,
            ..
        } = &mut *self.shard;
        let batch = self.options.batch.max(1);
        if lane.is_closed() {
            slices.hurry(Instant::now());
        }
        if peers.is_empty() {
            // Only a recovery puts anything here after the last request was handed on: copies that the other queues
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
        let may_take_requests = outbox.is_empty() && !peers.is_empty();
        if may_take_requests {
            let (held, free): (Vec<_>, Vec<_>) =
                waiting.drain(..).partition(|queued| slices.holds(queued.who));
            waiting.extend(held);
            requests.extend(free);
        }
        // Requests that wait for slices have left the lane; they must not become more than it would hold.
        let may_take_requests = may_take_requests && waiting.len() < self.options.length.max(1);
        let slice = slices.due();
        if requests.is_empty() {
            tokio::select! {
                biased;
                () = self.closing.cancelled(), if !lane.is_closed() => lane.close(),
                Ok(room) = async { front.as_ref().expect("guarded").reserve().await }, if front.is_some() => {
                    if let Some((_, delivery)) = outbox.pop_front() {
                        room.send(delivery);
                    }
                }
                count = owed.recv_many(deliveries, batch) => if count == 0 && slice.is_none() { return false },
                () = sleep_until(slice.unwrap_or_else(Instant::now)), if slice.is_some() => {}
                count = lane.recv_many(requests, batch), if may_take_requests => if count == 0 && waiting.is_empty() {
                    // The last request is taken and handed on: when all queues have come so far, the lanes end.
                    peers.clear();
                },
                () = async {}, if may_catch_up => {}
                Ok(()) = ended.changed(), if !behind.is_empty() => ended.mark_changed(),
                _ = looks.tick(), if may_be_owed && !may_catch_up => *pass = Some(Pass::default()),
            }
        }
        while deliveries.len() < batch {
            let Ok(delivery) = owed.try_recv() else { break };
            deliveries.push(delivery);
        }
        while may_take_requests && requests.len() < batch {
            let Ok(request) = lane.try_recv() else { break };
            requests.push(request);
        }
        true
    }

    /// Looks for what is owed when it is time, also while there is always work.
    fn begin_look(&mut self) {
        let may_be_owed = self.parts.store.leaves_copies_owed() && !self.may_catch_up();
        if may_be_owed && self.shard.looks.tick().now_or_never().is_some() {
            self.shard.pass = Some(Pass::default());
        }
    }

    /// Adds the slice that is due, if one is; says whether.
    fn take_slice(&mut self, deliveries: &mut Vec<Delivery>, now: Instant) -> bool {
        let slice = self.shard.slices.take(now);
        let is_one = slice.is_some();
        deliveries.extend(slice);
        is_one
    }

    /// Puts requests back whose senders have slices to come, or earlier requests that were put back.
    fn hold(&mut self, requests: &mut Vec<Queued>, now: Instant) {
        let Shard { slices, waiting, .. } = &mut *self.shard;
        let before: HashSet<Uid> = waiting.iter().map(|queued| queued.who).collect();
        let is_held = |queued: &mut Queued| before.contains(&queued.who) || slices.holds(queued.who);
        waiting.extend(requests.extract_if(.., is_held));
        slices.hear(requests, now);
    }

    /// One batch, from the requests to the answers; decided again where another process has changed what it was decided on.
    async fn work(&mut self, mut deliveries: Vec<Delivery>, mut requests: Vec<Queued>) {
        if deliveries.iter().any(Delivery::is_joining) {
            self.write_or_recover(std::mem::take(&mut deliveries)).await;
        }
        for tries in 1.. {
            let (mut batch, plans) = self.decide(requests, tries == 1).await;
            let deliveries = std::mem::take(&mut deliveries);
            let Numbered { copies, accepts, left } = self.number(&self.shard.behind, deliveries, plans).await;
            let resumed = copies.len();
            let mut writes = copies;
            writes.extend(batch.admit(accepts, |uid| {
                let queue = self.queue_of(uid);
                (queue != self.shard.index && !self.writes_to(uid)).then_some(queue)
            }));
            match self.commit(writes).await {
                Err(CommitError::Stale(stale)) => {
                    requests = batch.again(stale.iter().map(|at| at - resumed), tries >= MOST_TRIES);
                    if resumed > 0 {
                        self.recover(true).await;
                    }
                }
                committed => return self.answer(batch, resumed, left, committed).await.send(),
            }
        }
    }

    /// Step 1: what each request leads to, an answer or a planned write. Requests that no longer fit in wait for the next batch.
    ///
    /// At first nobody asks for the keys of messages where the commit looks at them itself. They are asked for when a message would be
    /// refused: it may be a repetition, which gets the first answer (I4).
    async fn decide(&mut self, requests: Vec<Queued>, is_first: bool) -> (Batch, Vec<Accept>) {
        let (mut requests, late): (Vec<Queued>, _) = requests.into_iter().partition(Queued::is_in_order);
        refuse(late, &SendError::OutOfOrder);
        let mut unasked = self.parts.store.unasked().filter(|_| is_first);
        loop {
            let (facts, unread) = self.facts(&requests, unasked).await;
            match self.plan(requests, facts, &unread, unasked.take().is_some()) {
                Ok(decided) => return decided,
                Err(again) => requests = again,
            }
        }
    }

    /// The decisions of a batch. Gives the requests back if their keys must be asked for.
    fn plan(
        &mut self,
        requests: Vec<Queued>,
        facts: Facts,
        unread: &Unread,
        is_unasked: bool,
    ) -> Result<(Batch, Vec<Accept>), Vec<Queued>> {
        let Options { text_characters, members, edit, recall, history_messages, stars, .. } = self.options;
        let limits =
            PlanLimits { text_characters, members, edit, recall, history: history_messages > 0, stars };
        let mut planner = Planner::new(facts, limits, self.parts.clock.now());
        let (mut batch, mut plans) = (Batch::new(requests), Vec::new());
        let (mut at, mut rows, mut is_full, now) = (0, 0, false, Instant::now());
        // Senders whose next requests wait for their slices.
        let mut cut = Vec::new();
        while at < batch.requests().len() && rows < self.options.batch_rows && !is_full {
            let queued = &batch.requests()[at];
            if cut.contains(&queued.who) {
                break;
            }
            let unreadable = unread.fact(queued);
            let may_repeat = is_unasked && unreadable.is_none() && queued.request.is_message();
            let decided = match unreadable.or_else(|| unread.limit(at)) {
                Some(refusal) => Err(refusal.into()),
                None => planner.decide(at, queued.who, &queued.request),
            };
            match decided {
                Err(NoWrite::Answer(_)) if may_repeat => return Err(batch.again(iter::empty(), false)),
                Err(NoWrite::Answer(answer)) => batch.answer(at, answer),
                Err(NoWrite::SameAs(first)) => batch.answer_like(at, first),
                Ok(mut plan) => {
                    let later = match self.parts.numbers.come_from_the_store() {
                        false => self.shard.slices.cut(&mut plan, now, |uid| self.is_mine(uid)),
                        true => Vec::new(),
                    };
                    if !later.is_empty() {
                        cut.push(queued.who);
                    }
                    rows += plan.rows.len();
                    // A joiner gets the earlier messages, and then the messages from here on.
                    is_full = joiner(&plan.content).is_some();
                    batch.plan(at, &plan, later);
                    plans.push(plan);
                }
            }
            at += 1;
        }
        self.shard.waiting.extend(batch.split_off(at));
        Ok((batch, plans))
    }

    /// Step 4: the answers, when it is known what is stored. The first `resumed` writes were copies of earlier acceptances.
    async fn answer(
        &mut self,
        mut batch: Batch,
        resumed: usize,
        left: LeftBehind,
        committed: Result<Vec<Outcome>, CommitError>,
    ) -> Batch {
        let accepts = batch.take_accepts();
        match committed {
            Ok(outcomes) => {
                let mut joining = Vec::new();
                self.leave_behind(left);
                for (accepting, outcome) in accepts.into_iter().zip(outcomes.into_iter().skip(resumed)) {
                    joining.extend(joining_of(&accepting, &outcome));
                    batch.answer(accepting.at, self.acknowledge(accepting, &outcome));
                }
                if !joining.is_empty() {
                    self.write_or_recover(joining).await;
                }
            }
            Err(CommitError::Unknown(error)) => {
                if let Some(left_out) = self.shard.log.pass() {
                    error!(%error, left_out, "the outcome of a commit is unknown; reading what is stored");
                }
                self.recover(true).await;
                let (store, places) = (&self.parts.store, accepts.iter().map(|accepting| accepting.at));
                let places: Vec<usize> = places.collect();
                let looks = accepts.into_iter().map(|accepting| found(Arc::clone(store), accepting));
                let found: Vec<RequestAnswer> = stream::iter(looks).buffered(LOOKS_AT_ONCE).collect().await;
                places.into_iter().zip(found).for_each(|(at, answer)| batch.answer(at, answer));
            }
            Err(error) => {
                if let Some(left_out) = self.shard.log.pass() {
                    warn!(%error, left_out, "a commit was refused");
                }
                if resumed > 0 {
                    self.recover(true).await;
                }
            }
        }
        batch
    }

    /// The answer to an acceptance by its outcome; copies for other queues go to the outbox.
    fn acknowledge(&mut self, accepting: Accepting, outcome: &Outcome) -> RequestAnswer {
        let Accepting { content, elsewhere, later, .. } = accepting;
        match outcome {
            Outcome::Accepted(acceptance, copies) => {
                let rows = copies.len() + later.len() + elsewhere.values().map(Vec::len).sum::<usize>();
                self.fan_out.charge(&content, rows, Instant::now());
                self.marks.moved(&content);
                for (queue, to) in elsewhere {
                    let delivery = Delivery { acceptance: *acceptance, content: Arc::clone(&content), to };
                    self.shard.outbox.push_back((queue, delivery));
                }
                self.shard.slices.add(Delivery {
                    acceptance: *acceptance,
                    content: Arc::clone(&content),
                    to: later,
                });
                let (own, _) = copies.first().expect("the sender's own copy comes first");
                Ok(SendAck { message_id: own.message_id, sent_at: content.sent_at, repeated: false })
            }
            Outcome::GroupChanged => Err(SendError::GroupChanged),
            Outcome::Rejected(_) | Outcome::Delivered(_) => Err(SendError::Rejected),
        }
    }
}

/// After an unknown outcome: whether the acceptance is there.
async fn found(store: Arc<dyn MessageStore>, accepting: Accepting) -> RequestAnswer {
    let content = &*accepting.content;
    let found = match (content.key(), content.body.read_to()) {
        (Some(key), _) => {
            let states = store.keys(&[key]).await;
            let record = states.ok().and_then(|mut states| states.pop()).and_then(KeyState::record);
            if record.is_some_and(|record| record.digest != accepting.digest) {
                return Err(SendError::ClientIdReused);
            }
            record.map(|record| record.message_id)
        }
        (None, Some(marker)) => {
            let stands = store.read_to(content.sender, content.target).await;
            stands.ok().filter(|stands| *stands >= marker)
        }
        (None, None) => None,
    };
    let ack = |message_id| SendAck { message_id, sent_at: content.sent_at, repeated: false };
    found.map(ack).ok_or(SendError::Unavailable)
}

/// The copy for the one who joins a group with this acceptance, if that one gets earlier messages first.
fn joining_of(accepting: &Accepting, outcome: &Outcome) -> Option<Delivery> {
    let (Outcome::Accepted(acceptance, _), Some(joiner)) = (outcome, accepting.joiner) else { return None };
    let content = Arc::clone(&accepting.content);
    Some(Delivery { acceptance: *acceptance, content, to: vec![joiner] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Conversation;
    use crate::store::conformance::{accept, id, send_text, text_message};
    use crate::store::memory::MemoryStore;

    /// Another server may have stored something else under that name meanwhile.
    #[tokio::test]
    async fn after_an_unknown_outcome_another_text_under_the_same_client_id_is_refused() {
        let (ann, bob, store) = (Uid(10_001), Uid(10_002), Arc::new(MemoryStore::new()));
        send_text(&*store, (ann, 1), (bob, 1), 7).await;
        let look = async |text| {
            let content = text_message(ann, Conversation::User(bob), 7, text);
            let digest = accept(Arc::clone(&content), Vec::new(), Vec::new()).digest;
            let (elsewhere, later) = Default::default();
            found(store.clone(), Accepting { at: 0, content, digest, joiner: None, elsewhere, later }).await
        };
        assert!(matches!(look("message 7").await, Ok(ack) if ack.message_id == id(1)));
        assert!(matches!(look("another").await, Err(SendError::ClientIdReused)));
    }
}
