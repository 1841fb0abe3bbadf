//! A sequence that is behind the rows: its numbers are not larger than what inboxes hold already, since its file was
//! lost or is older, or another sequence is the source now. The store gives such a batch back; it is numbered again,
//! whole and in its order.

use std::collections::HashSet;

use super::NUMBER_WAIT;
use super::writer::QueueWriter;
use crate::domain::Uid;
use crate::seq::NumberError;
use crate::store::{Behind, CommitError, Row, StoreError, Write};

/// How often one batch is numbered again. Once is enough, unless others use the same sequence wrongly.
pub(super) const TIMES: usize = 3;

impl QueueWriter<'_> {
    /// The writes under numbers that come after what their receivers have.
    ///
    /// # Errors
    /// When no numbers can be had now; nothing is stored.
    pub(super) async fn renumbered(&self, behind: Behind) -> Result<Vec<Write>, CommitError> {
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
