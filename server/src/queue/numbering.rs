//! Step 2 of a batch: one number for every copy that this queue's writer is about to write, asked for in one call.
//!
//! Owns nothing. The writer calls it between its decisions and its commit, and recovery for the copies that it resumes.
//! A copy whose number does not come in time stays owed, and its receiver gets nothing more before that: so each inbox
//! keeps the order.

use std::collections::HashSet;

use tracing::error;

use super::SendError;
use super::outage::Out;
use super::plan::joiner;
use super::shard::QueueWriter;
use super::slices::Delivery;
use crate::domain::{Content, Conversation, GroupId, MessageId, Uid};
use crate::seq::NumberError;
use crate::store::{Accept, Deliver, Row, Write};

/// The writes of a batch, numbered.
#[derive(Default)]
pub(super) struct Numbered {
    /// Copies of earlier acceptances.
    pub(super) copies: Vec<Write>,
    /// The new acceptances, or why one is refused.
    pub(super) accepts: Vec<Result<Accept, SendError>>,
    /// The copies that stay pending.
    pub(super) left: LeftBehind,
}

/// The copies that a batch leaves pending for receivers without numbers.
#[derive(Debug, Default)]
pub(super) struct LeftBehind {
    /// Receivers without pending copies before.
    pub(super) receivers: HashSet<Uid>,
    /// The weight of the acceptances that owe them copies.
    pub(super) weight: usize,
}

impl LeftBehind {
    /// Adds the copies that something else leaves behind.
    pub(super) fn add(&mut self, more: LeftBehind) {
        self.receivers.extend(more.receivers);
        self.weight += more.weight;
    }
}

/// The number of one copy.
enum Number {
    Taken(MessageId),
    /// None now.
    Late,
    /// None ever again.
    Exhausted,
}

/// The weight of an acceptance that waits for the numbers of `copies` receivers.
pub(super) fn weight(content: &Content, copies: usize) -> usize {
    content.body.as_json().len() + 200 + 8 * copies
}

impl QueueWriter<'_> {
    /// Takes numbers for the receivers of this queue; the others' queues take their own. They are asked for, and so grow, in the
    /// order in which the commit writes: copies first. None is asked for receivers who are `behind`, nor where it is known that
    /// none can be had; only the sender's own copy does not wait for what is owed.
    pub(super) async fn number(
        &self,
        behind: &HashSet<Uid>,
        deliveries: Vec<Delivery>,
        plans: Vec<Accept>,
    ) -> Numbered {
        let out = self.outages.out();
        let mut wanted: Vec<(Uid, bool)> = Vec::new();
        wanted.extend(deliveries.iter().flat_map(|delivery| &delivery.to).map(|to| (to.uid, false)));
        for plan in &plans {
            let (joiner, sender) = (joiner(&plan.content), plan.content.sender);
            let mine = plan.rows.iter().map(|row| row.receiver);
            let mine = mine.filter(|uid| self.writes_to(*uid) && joiner != Some(*uid));
            wanted.extend(mine.map(|uid| (uid, uid == sender)));
        }
        let (numbers, fell) = self.take_numbers(&out, behind, &wanted).await;
        let mut numbering =
            Numbering { writer: self, out, numbers: numbers.into_iter(), unchanged: HashSet::new(), owed: 0 };
        let copies = deliveries.into_iter().filter_map(|delivery| numbering.copies(delivery));
        let copies = copies.map(Write::Deliver).collect();
        let accepts = plans.into_iter().map(|plan| numbering.accept(plan)).collect();
        Numbered { copies, accepts, left: LeftBehind { receivers: fell, weight: numbering.owed } }
    }

    /// A number for each of `wanted`, which are receivers and whether it is for a sender's own copy; and who falls behind by it.
    async fn take_numbers(
        &self,
        out: &Out,
        behind: &HashSet<Uid>,
        wanted: &[(Uid, bool)],
    ) -> (Vec<Number>, HashSet<Uid>) {
        let source = &self.parts.numbers;
        let all_well = out.is_empty() && behind.is_empty();
        let may_ask = |&(uid, own): &(Uid, bool)| {
            all_well || (!out.contains_key(&source.section_of(uid)) && (own || !behind.contains(&uid)))
        };
        let asked: Vec<Uid> = wanted.iter().filter(|one| may_ask(one)).map(|(uid, _)| *uid).collect();
        let outcomes = source.each(&asked, self.outages.patience()).await;
        let mut outcomes = asked.into_iter().zip(outcomes);
        let (mut numbers, mut fell) = (Vec::with_capacity(wanted.len()), HashSet::new());
        for one in wanted {
            let &(uid, own) = one;
            let outcome = may_ask(one).then(|| outcomes.next().expect("one for each that was asked").1);
            let number = match outcome {
                // A later number of one who has just fallen behind must not overtake the earlier copy.
                Some(Ok(_)) if !own && !fell.is_empty() && fell.contains(&uid) => Number::Late,
                Some(Ok(id)) => Number::Taken(id),
                Some(Err(NumberError::Exhausted)) => Number::Exhausted,
                Some(Err(error)) => {
                    self.outages.begin(source.section_of(uid), uid, &error);
                    Number::Late
                }
                None => Number::Late,
            };
            if matches!(number, Number::Late) && !own && !behind.contains(&uid) {
                fell.insert(uid);
            }
            numbers.push(number);
        }
        (numbers, fell)
    }
}

impl QueueWriter<'_> {
    /// So many numbers of one inbox, which growing ids need that come from the caller; `None`: they cannot be had now.
    pub(super) async fn numbers_of(
        &self,
        behind: &HashSet<Uid>,
        uid: Uid,
        count: usize,
    ) -> Option<Vec<MessageId>> {
        let out = self.outages.out();
        let (numbers, _) = self.take_numbers(&out, behind, &vec![(uid, false); count]).await;
        let taken = |number| match number {
            Number::Taken(id) => Some(id),
            Number::Late => None,
            Number::Exhausted => {
                error!(%uid, "a sequence has reached its end; the copy stays pending");
                None
            }
        };
        numbers.into_iter().map(taken).collect()
    }
}

/// Hands the numbers of a batch out, in its order.
struct Numbering<'a> {
    writer: &'a QueueWriter<'a>,
    out: Out,
    numbers: std::vec::IntoIter<Number>,
    /// Groups of which a change in this batch was refused: what follows it was decided on a state that does not come about.
    unchanged: HashSet<GroupId>,
    owed: usize,
}

impl Numbering<'_> {
    fn copies(&mut self, delivery: Delivery) -> Option<Deliver> {
        let Delivery { acceptance, content, to } = delivery;
        let (mut rows, mut late) = (Vec::with_capacity(to.len()), 0);
        for recipient in to {
            match self.next() {
                Number::Taken(id) => rows.push(recipient.row(id)),
                Number::Late => late += 1,
                Number::Exhausted => {
                    error!(uid = %recipient.uid, "a sequence has reached its end; the copy stays pending");
                }
            }
        }
        if late > 0 {
            self.owed += weight(&content, late);
        }
        (!rows.is_empty()).then_some(Deliver { acceptance, content, rows, earlier: Vec::new() })
    }

    /// Numbers the rows of a plan; those that get no number are owed, before what is owed already.
    fn accept(&mut self, plan: Accept) -> Result<Accept, SendError> {
        let content = &plan.content;
        let (joiner, mut rest) = (joiner(content), Vec::new());
        let mut rows = Vec::with_capacity(plan.rows.len());
        let (mut refusal, mut late, mut elsewhere) = (None, 0, 0);
        for (at, recipient) in plan.rows.into_iter().map(Row::recipient).enumerate() {
            if Some(recipient.uid) == joiner {
                rest.push(recipient);
                continue;
            }
            if !self.writer.writes_to(recipient.uid) {
                elsewhere += usize::from(self.is_out(recipient.uid));
                rest.push(recipient);
                continue;
            }
            match self.next() {
                Number::Taken(id) => rows.push(recipient.row(id)),
                // Without the copy that answers the request there is no answer.
                Number::Late if at == 0 => refusal = Some(SendError::Unavailable),
                Number::Exhausted if at == 0 => refusal = Some(SendError::Exhausted),
                Number::Late => {
                    late += 1;
                    rest.push(recipient);
                }
                // One whose sequence has ended must not silence a whole group: the copy stays owed.
                Number::Exhausted => rest.push(recipient),
            }
        }
        let outdated = matches!(content.target, Conversation::Group(gid) if self.unchanged.contains(&gid));
        if outdated {
            refusal.get_or_insert(SendError::Unavailable);
        }
        if late + elsewhere > 0 && refusal.is_none() {
            let owed = self.owed + weight(content, late + elsewhere);
            if self.writer.outages.owed() + owed > self.writer.options.owed_bytes {
                refusal = Some(SendError::Unavailable);
            } else if late > 0 {
                // Copies that wait in other queues are counted there.
                self.owed = owed;
            }
        }
        match refusal {
            Some(refusal) => {
                self.unchanged.extend(plan.change.map(|change| change.gid));
                Err(refusal)
            }
            None => {
                rest.extend(plan.rest);
                Ok(Accept { rows, rest, ..plan })
            }
        }
    }

    fn is_out(&self, uid: Uid) -> bool {
        !self.out.is_empty() && self.out.contains_key(&self.writer.parts.numbers.section_of(uid))
    }

    fn next(&mut self) -> Number {
        self.numbers.next().expect("one for each copy of this queue")
    }
}
