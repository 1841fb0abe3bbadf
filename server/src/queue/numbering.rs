//! Step 1 of a batch: one number for every copy that this queue's writer is about to write, asked for in one call.
//!
//! Owns nothing. The writer calls it between its decisions and its commit, and recovery for the copies that it resumes.

use tracing::{error, warn};

use super::SendError;
use super::plan::Planned;
use super::shard::Delivery;
use super::writer::Writer;
use crate::domain::{MessageId, Uid};
use crate::seq::NumberError;
use crate::store::{Accept, Deliver, Recipient, Row};

type Number = Result<MessageId, NumberError>;

/// What a batch writes, numbered.
pub(super) struct Numbered {
    /// Copies of earlier acceptances. An error: none may be written, so that none is overtaken by a later one.
    pub(super) copies: Result<Vec<Deliver>, NumberError>,
    /// For each planned order the acceptance, or why there is none.
    pub(super) accepts: Vec<Result<Accept, SendError>>,
}

impl Writer<'_> {
    /// Takes numbers for the receivers of this queue; the others' queues take their own. They are asked for, and so grow, in the
    /// order in which the commit writes: copies first.
    pub(super) async fn number(&self, deliveries: Vec<Delivery>, planned: Vec<Planned>) -> Numbered {
        let copied = deliveries.iter().flat_map(|delivery| &delivery.to).map(|to| to.uid);
        let accepted = planned.iter().flat_map(|planned| &planned.recipients).map(|to| to.uid);
        let uids: Vec<Uid> = copied.chain(accepted.filter(|&uid| self.is_mine(uid))).collect();
        let mut numbers = self.parts.numbers.each(&uids).await.into_iter();
        let copies = copies(deliveries, &mut numbers);
        let accepts = planned.into_iter().map(|planned| self.accept(planned, &mut numbers)).collect();
        Numbered { copies, accepts }
    }

    fn accept(
        &self,
        planned: Planned,
        numbers: &mut impl Iterator<Item = Number>,
    ) -> Result<Accept, SendError> {
        let Planned { content, digest, recipients, change } = planned;
        let (mut rows, mut rest) = (Vec::with_capacity(recipients.len()), Vec::new());
        let mut refusal = None;
        for recipient in recipients {
            if !self.is_mine(recipient.uid) {
                rest.push(recipient);
                continue;
            }
            match next(numbers) {
                Ok(id) => rows.push(row(recipient, id)),
                // One whose line has ended must not silence a whole group: the copy stays owed.
                Err(NumberError::Exhausted) if recipient.uid != content.sender => rest.push(recipient),
                Err(NumberError::Exhausted) => refusal = Some(SendError::Exhausted),
                Err(error @ NumberError::Unavailable(_)) => {
                    if refusal.is_none() {
                        warn!(%error, "an order is refused");
                    }
                    refusal.get_or_insert(SendError::Unavailable);
                }
            }
        }
        match refusal {
            Some(refusal) => Err(refusal),
            None => Ok(Accept { content, digest, rows, rest, change }),
        }
    }
}

fn copies(
    deliveries: Vec<Delivery>,
    numbers: &mut impl Iterator<Item = Number>,
) -> Result<Vec<Deliver>, NumberError> {
    let mut copies = Vec::with_capacity(deliveries.len());
    let mut unavailable = None;
    for Delivery { acceptance, content, to } in deliveries {
        let mut rows = Vec::with_capacity(to.len());
        for recipient in to {
            match next(numbers) {
                Ok(id) => rows.push(row(recipient, id)),
                Err(NumberError::Exhausted) => {
                    error!(uid = %recipient.uid, "a number line has come to its end; the copy stays owed");
                }
                Err(error) => unavailable = Some(error),
            }
        }
        if !rows.is_empty() {
            copies.push(Deliver { acceptance, content, rows });
        }
    }
    match unavailable {
        Some(error) => Err(error),
        None => Ok(copies),
    }
}

fn next(numbers: &mut impl Iterator<Item = Number>) -> Number {
    numbers.next().expect("one for each uid that was asked about")
}

fn row(recipient: Recipient, message_id: MessageId) -> Row {
    Row { receiver: recipient.uid, message_id, generation: recipient.generation }
}
