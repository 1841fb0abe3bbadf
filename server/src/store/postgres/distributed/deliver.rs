//! The second half of a commit: copies are delivered, each receiver's in one transaction, and then owed no more. A copy
//! that fails here stays owed, and the commit goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use tracing::{error, warn};

use super::calls::{self, CallAnswer, CopyOf, NewCopy, PgCallFailure};
use super::known::{OwedLookup, key};
use super::{AT_ONCE, Commit, Planned, owed};
use crate::domain::{Content, MessageId, Uid};
use crate::store::postgres::PgDb;
use crate::store::{CopyOutcome, Deliver, Outcome, PendingKey, Recipient, StoreError, Write};

/// Copies from one sender to one receiver that are delivered before the next one, if they are still owed.
const CAUGHT_UP: usize = 256;

impl Commit<'_> {
    /// Plans a copy.
    pub(super) fn plan(
        &mut self,
        row: Option<(usize, usize)>,
        content: &Arc<Content>,
        copy: CopyOf,
        id: MessageId,
    ) {
        let planned = Planned { row, content: Arc::clone(content), copy, id };
        self.planned.entry(copy.to.uid).or_default().push(planned);
    }

    /// Plans what is owed still of a delivery.
    pub(super) fn plan_delivery(&mut self, at: usize, deliver: &Deliver, known: &OwedLookup) {
        if !deliver.is_in_order() {
            self.outcomes[at] = Some(Outcome::Rejected(Deliver::EARLIER.to_owned()));
            return;
        }
        let key = key(deliver);
        let open = known.open.get(&key);
        let latest = known.latest.get(&key.sender).copied().unwrap_or_default();
        if open.is_none() && (key.acceptance.0 == 0 || key.acceptance.0 > latest.get()) {
            self.outcomes[at] = Some(Outcome::Rejected("there is no such acceptance".to_owned()));
            return;
        }
        let mut rows = Vec::with_capacity(deliver.rows.len());
        for (nth, row) in deliver.rows.iter().enumerate() {
            let owed = open.and_then(|open| open.copies.iter().find(|copy| copy.to.uid == row.receiver));
            let planned = self.planned.get(&row.receiver);
            let is_same = |planned: &Planned| {
                planned.content.sender == key.sender && planned.copy.acceptance == key.acceptance
            };
            match owed.filter(|_| !planned.is_some_and(|planned| planned.iter().any(is_same))) {
                Some(copy) => {
                    let content = &open.expect("it owes a copy").content;
                    let copy = CopyOf { to: Recipient { epoch: row.epoch, ..copy.to }, ..*copy };
                    self.plan(Some((at, nth)), content, copy, row.message_id);
                    rows.push(None);
                }
                None => rows.push(Some((*row, CopyOutcome::Already))),
            }
        }
        self.stored.insert(at, (key.acceptance, rows));
    }

    /// Delivers what is planned, and once more with what comes before it where something is still owed.
    pub(super) async fn deliver_all(&mut self) {
        let planned = std::mem::take(&mut self.planned);
        let early = self.deliver_now(planned).await;
        if early.is_empty() {
            return;
        }
        let mut again: BTreeMap<Uid, Vec<Planned>> = BTreeMap::new();
        for planned in early {
            let (receiver, sender) = (planned.copy.to.uid, planned.content.sender);
            let last = PendingKey { sender, acceptance: planned.copy.acceptance };
            let look =
                async { owed::up_to(&mut *self.db.for_queues().await?, last, receiver, CAUGHT_UP).await };
            let before = match self.db.limited(look).await {
                Ok(before) => before,
                Err(error) => {
                    warn!(%error, %receiver, "a copy stays pending");
                    continue;
                }
            };
            let list = again.entry(receiver).or_default();
            let older = before.into_iter().filter(|(_, copy)| copy.acceptance < last.acceptance);
            let older =
                older.map(|(content, copy)| Planned { row: None, content, copy, id: MessageId::ZERO });
            list.extend(older);
            list.push(planned);
        }
        for stays in self.deliver_now(again).await {
            warn!(receiver = %stays.copy.to.uid, sender = %stays.content.sender, "a copy stays pending: one before it does");
        }
    }

    /// Returns what was too early.
    async fn deliver_now(&mut self, planned: BTreeMap<Uid, Vec<Planned>>) -> Vec<Planned> {
        let (db, writes) = (self.db, self.writes);
        let delivering = planned.into_iter().map(async |(receiver, planned)| {
            let new = |planned: &Planned| {
                let earlier = match planned.row.map(|(at, _)| &writes[at]) {
                    Some(Write::Deliver(deliver)) => &deliver.earlier[..],
                    _ => &[],
                };
                NewCopy::new(&planned.content, planned.copy, planned.id).after(earlier, receiver)
            };
            let copies: Vec<NewCopy> = planned.iter().map(new).collect();
            let delivered = deliver_some(db, receiver, &copies).await;
            (receiver, planned, delivered)
        });
        let delivered: Vec<_> = stream::iter(delivering).buffer_unordered(AT_ONCE).collect().await;
        let mut early = Vec::new();
        for (receiver, planned, answers) in delivered {
            let answers = match answers {
                Ok(answers) => answers,
                Err(error) => {
                    warn!(%error, %receiver, copies = planned.len(), "copies stay pending");
                    continue;
                }
            };
            for (planned, answer) in planned.into_iter().zip(answers) {
                let outcome = match answer.verdict.as_str() {
                    "stored" => CopyOutcome::Stored,
                    "already" => CopyOutcome::Already,
                    "void" => CopyOutcome::Void,
                    "end" => {
                        error!(%receiver, "an inbox has reached the end of its ids; it takes no more copies");
                        CopyOutcome::Void
                    }
                    "early" => {
                        early.push(planned);
                        continue;
                    }
                    other => {
                        error!(%receiver, verdict = other, "a copy stays pending");
                        continue;
                    }
                };
                self.delivered(&planned, outcome, answer.id());
            }
        }
        early
    }

    fn delivered(&mut self, planned: &Planned, outcome: CopyOutcome, id: MessageId) {
        let CopyOf { acceptance, to, .. } = planned.copy;
        self.settled.entry(planned.content.sender).or_default().push((acceptance, to.uid));
        let Some((at, nth)) = planned.row else { return };
        let mut row = self.writes[at].rows()[nth];
        if outcome == CopyOutcome::Stored {
            row.message_id = id;
        }
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
    let refused = |failure| match failure {
        PgCallFailure::Refused(error) | PgCallFailure::Unknown(error) => error,
        PgCallFailure::Unstorable(why) => StoreError::corrupt(why),
    };
    match calls::deliver(db, receiver, copies).await {
        Ok(answers) => return Ok(answers),
        Err(PgCallFailure::Unstorable(_)) => {}
        Err(failure) => return Err(refused(failure)),
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
        answers.extend(one.map_err(refused)?);
    }
    Ok(answers)
}
