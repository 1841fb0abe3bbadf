//! Step 3 of a batch: the commit, after which its rows are visible (I1, I3).
//!
//! A sequence may be behind the rows: its numbers are not larger than what inboxes hold already, since its file was lost or is older, or
//! another sequence is the source now. The store gives such a batch back; it is numbered again, whole and in its order.

use std::collections::HashSet;

use tracing::error;

use super::NUMBER_WAIT;
use super::delayed_wakes::DelayedWakes;
use super::permissions::Changes;
use super::shard::QueueWriter;
use crate::domain::Uid;
use crate::seq::NumberError;
use crate::store::{Behind, CommitError, CopyOutcome, Outcome, Row, StoreError, Write};

/// How often one batch is numbered again. Once is enough, unless others use the same sequence wrongly.
const TIMES: usize = 3;

impl QueueWriter<'_> {
    /// Step 3, for a batch and for recovery: makes writes durable in one transaction, then visible, and wakes the receivers.
    pub(super) async fn commit(&mut self, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        let receivers = writes.iter().flat_map(Write::rows).map(|row| row.receiver);
        let before = self.shard.unsettled.len();
        self.shard.unsettled.extend(receivers);
        let may_wait: Vec<bool> = writes.iter().map(DelayedWakes::is_for).collect();
        let changes = Changes::of(&writes);
        let committed = self.store(writes).await;
        self.permissions.forget(&changes);
        match &committed {
            Ok(outcomes) => self.show(outcomes, &may_wait),
            // Rows that it stored, if any, are not visible yet; a recovery reads them.
            Err(CommitError::Unknown(_)) => return committed,
            Err(CommitError::Refused(_) | CommitError::Behind(_) | CommitError::Stale(_)) => {}
        }
        self.shard.unsettled.truncate(before);
        committed
    }

    /// Hands writes to the store, again under new ids where the sequence is behind the rows.
    async fn store(&self, mut writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
        let mut tries = 0..TIMES;
        loop {
            match self.parts.store.commit(writes).await {
                // The earlier messages that were read for it may have changed, too.
                Err(CommitError::Behind(behind)) if behind.writes.iter().any(Write::has_earlier) => {
                    return Err(CommitError::Behind(behind));
                }
                Err(CommitError::Behind(behind)) if tries.next().is_some() => {
                    writes = self.renumbered(*behind).await?;
                }
                committed => return committed,
            }
        }
    }

    /// Moves the watermarks of those who got a row, and wakes their connections; those later whose rows `may_wait`.
    fn show(&self, outcomes: &[Outcome], may_wait: &[bool]) {
        let (mut now, mut delayed) = (Vec::new(), Vec::new());
        for (outcome, may_wait) in outcomes.iter().zip(may_wait) {
            let woken = if *may_wait { &mut delayed } else { &mut now };
            for (row, _) in outcome.copies().iter().filter(|(_, copy)| *copy == CopyOutcome::Stored) {
                self.parts.watermarks.publish(row.receiver, row.message_id);
                woken.push((row.receiver, row.message_id));
            }
            if let Outcome::Rejected(why) = outcome {
                error!(why, "the database rejects a write permanently");
            }
        }
        self.parts.notifier.notify(&now);
        self.wakes.add(delayed);
    }

    /// The writes under numbers that come after what their receivers have.
    ///
    /// # Errors
    /// When no numbers can be had now; nothing is stored.
    async fn renumbered(&self, behind: Behind) -> Result<Vec<Write>, CommitError> {
        let Behind { mut writes, latest } = behind;
        let refused = |error: NumberError| CommitError::Refused(StoreError::unavailable(error));
        self.parts.numbers.overtake(&latest).await.map_err(refused)?;
        let late: HashSet<Uid> = latest.into_iter().map(|(uid, _)| uid).collect();
        let rows = writes.iter_mut().flat_map(Write::rows_mut);
        let mut rows: Vec<&mut Row> = rows.filter(|row| late.contains(&row.receiver)).collect();
        let uids: Vec<Uid> = rows.iter().map(|row| row.receiver).collect();
        let numbers = self.parts.numbers.each(&uids, NUMBER_WAIT).await;
        for (row, number) in rows.iter_mut().zip(numbers) {
            row.message_id = number.map_err(refused)?;
        }
        Ok(writes)
    }
}
