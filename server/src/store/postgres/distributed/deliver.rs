//! The second half of a commit: copies are delivered, each receiver's in one transaction, and then owed no more. A copy
//! that fails here, or comes before one that is still owed, stays owed, and the commit goes on.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use tracing::{error, warn};

use super::calls::{self, CallAnswer, CopyOf, NewCopy, PgCallFailure};
use super::commit::{AT_ONCE, Commit, Planned};
use super::owed::{self, OwedCopies};
use crate::domain::{Content, MessageId, Uid};
use crate::store::postgres::PgDb;
use crate::store::{AcceptanceId, CopyOutcome, Deliver, Outcome, PendingKey, Recipient, StoreError, Write};

impl Commit<'_> {
    /// Plans a copy.
    pub(super) fn plan(&mut self, row: (usize, usize), content: &Arc<Content>, copy: CopyOf, id: MessageId) {
        let planned = Planned { row, content: Arc::clone(content), copy, id };
        self.planned.entry(copy.to.uid).or_default().push(planned);
    }

    /// Plans what is owed still of a delivery.
    pub(super) fn plan_delivery(
        &mut self,
        at: usize,
        deliver: &Deliver,
        owed: &HashMap<PendingKey, OwedCopies>,
    ) {
        let refusal = if deliver.acceptance == AcceptanceId(0) {
            Some("there is no such acceptance")
        } else {
            (!deliver.is_in_order()).then_some(Deliver::EARLIER)
        };
        if let Some(why) = refusal {
            self.outcomes[at] = Some(Outcome::Rejected(why.to_owned()));
            return;
        }
        let open = owed.get(&owed::key(deliver));
        let mut rows = Vec::with_capacity(deliver.rows.len());
        for (nth, row) in deliver.rows.iter().enumerate() {
            let copy = open.and_then(|open| {
                let copy = open.copies.iter().find(|copy| copy.to.uid == row.receiver)?;
                Some((&open.content, copy))
            });
            rows.push(match copy {
                Some((content, copy)) => {
                    let copy = CopyOf { to: Recipient { epoch: row.epoch, ..copy.to }, ..*copy };
                    self.plan((at, nth), content, copy, row.message_id);
                    None
                }
                None => Some((*row, CopyOutcome::Already)),
            });
        }
        self.stored.insert(at, (deliver.acceptance, rows));
    }

    /// Delivers what is planned.
    pub(super) async fn deliver_all(&mut self) {
        let (db, writes) = (self.db, self.writes);
        let delivering = std::mem::take(&mut self.planned).into_iter().map(async |(receiver, planned)| {
            let new = |planned: &Planned| {
                let earlier = match &writes[planned.row.0] {
                    Write::Deliver(deliver) => &deliver.earlier[..],
                    Write::Accept(_) => &[],
                };
                NewCopy::new(&planned.content, planned.copy, planned.id).after(earlier, receiver)
            };
            let copies: Vec<NewCopy> = planned.iter().map(new).collect();
            let delivered = deliver_some(db, receiver, &copies).await;
            (receiver, planned, delivered)
        });
        let delivered: Vec<_> = stream::iter(delivering).buffer_unordered(AT_ONCE).collect().await;
        for (receiver, planned, answers) in delivered {
            match answers {
                Ok(answers) => {
                    for (planned, answer) in planned.iter().zip(&answers) {
                        self.delivered(receiver, planned, answer);
                    }
                }
                Err(error) => warn!(%error, %receiver, copies = planned.len(), "copies stay pending"),
            }
        }
    }

    fn delivered(&mut self, receiver: Uid, planned: &Planned, answer: &CallAnswer) {
        let ((at, nth), sender) = (planned.row, planned.content.sender);
        let mut row = self.writes[at].rows()[nth];
        let outcome = match answer.verdict.as_str() {
            "stored" => {
                row.message_id = answer.id();
                CopyOutcome::Stored
            }
            "already" => CopyOutcome::Already,
            "void" => CopyOutcome::Void,
            "end" => {
                error!(%receiver, "an inbox has reached the end of its ids; it takes no more copies");
                CopyOutcome::Void
            }
            "late" => return self.behind.push((receiver, answer.id())),
            // What comes before it is looked for now and then, and brings it along.
            other => return warn!(%receiver, %sender, verdict = other, "a copy stays pending"),
        };
        self.settled.entry(sender).or_default().push((planned.copy.acceptance, receiver));
        if let Some((_, rows)) = self.stored.get_mut(&at) {
            rows[nth] = Some((row, outcome));
        }
    }

    /// Notes that delivered copies are owed no more. If that fails, they are delivered again, and found to be there.
    pub(super) async fn settle_all(&mut self) {
        let db = self.db;
        let settling = std::mem::take(&mut self.settled).into_iter().map(async |(sender, copies)| {
            if let Err(failure) = calls::settle(db, sender, &copies).await {
                warn!(?failure, %sender, "copies that were delivered stay pending");
            }
        });
        stream::iter(settling).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    }
}

/// Delivers copies to one user. A copy that the inbox will never take counts as delivered, so that what comes after it does.
async fn deliver_some(db: &PgDb, receiver: Uid, copies: &[NewCopy]) -> Result<Vec<CallAnswer>, StoreError> {
    match calls::deliver(db, receiver, copies).await {
        Ok(answers) => return Ok(answers),
        Err(PgCallFailure::Unstorable(_)) => {}
        Err(failure) => return Err(failure.into()),
    }
    let mut answers = Vec::with_capacity(copies.len());
    for copy in copies {
        let one = match calls::deliver(db, receiver, std::slice::from_ref(copy)).await {
            Err(PgCallFailure::Unstorable(why)) => {
                error!(why, %receiver, sender = copy.sender(), acceptance = copy.acceptance, "an inbox rejects a copy permanently");
                calls::deliver(db, receiver, &[copy.without_a_row()]).await
            }
            one => one,
        };
        answers.extend(one?);
    }
    Ok(answers)
}
