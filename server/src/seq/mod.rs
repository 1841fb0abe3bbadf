//! Numbers for rows: the adapter of seqsvr. Turns its ranges into message ids and its errors into ours.
//!
//! `sequences` says which sequences these are. Owns no state. [`Numbers`] is called by the queues alone (step 2 of a
//! write); which implementation lies behind it, embedded or cluster, is decided at boot. `ids` and `request_ids` use
//! the number issuer.

mod ids;
mod request_ids;
mod sequences;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use seqsvr_core::{NextError, Refusal, Sequencer};

use tracing::warn;

use crate::domain::{MessageId, Uid};

/// Sequences that are advanced at the same time.
const AT_ONCE: usize = 1_000;

pub use ids::{Ids, IdsError, StoredNumbers};
pub use request_ids::{RequestIds, RequestIdsError};
pub use sequences::Sequences;

/// Why no number could be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NumberError {
    /// Not now; nothing was taken.
    #[error("no id is available: {0}")]
    Unavailable(String),
    /// This user's sequence has come to its end at 2^53 − 1.
    #[error("the sequence has reached its end")]
    Exhausted,
}

/// A run of adjacent uids whose numbers come from one place, and fail together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UidSection(u32);

impl std::fmt::Display for UidSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The source of message ids.
#[derive(Clone)]
pub struct Numbers {
    /// `None`: the store assigns them (S19).
    sequencer: Option<Arc<dyn Sequencer>>,
    section_size: u32,
    overtaken: Arc<AtomicU64>,
}

impl Numbers {
    /// Numbers from `sequencer`, whose limit must be [`MessageId::MAX`] or less and whose sections have `section_size` uids. (With
    /// another size than the sequencer's, an outage is taken to be smaller or larger than it is.)
    pub fn new(sequencer: Arc<dyn Sequencer>, section_size: u32) -> Numbers {
        Numbers { sequencer: Some(sequencer), section_size: section_size.max(1), overtaken: Arc::default() }
    }

    /// No numbers: the store assigns the ids in the transaction that stores the rows (S19), and every copy is handed to it under
    /// [`MessageId::ZERO`].
    pub fn of_the_store() -> Numbers {
        Numbers { sequencer: None, section_size: 1, overtaken: Arc::default() }
    }

    /// Whether the store assigns the ids.
    pub fn come_from_the_store(&self) -> bool {
        self.sequencer.is_none()
    }

    /// The section that `uid` belongs to.
    pub fn section_of(&self, uid: Uid) -> UidSection {
        UidSection(uid.0 / self.section_size)
    }

    /// The next number of each of these sequences, larger than all before it (S1, I6), asked for at once and waited for at most
    /// `patience`. They stand in the order of `uids`; a user that is there twice gets two, the later one larger.
    pub async fn each(&self, uids: &[Uid], patience: Duration) -> Vec<Result<MessageId, NumberError>> {
        let Some(sequencer) = &self.sequencer else { return vec![Ok(MessageId::ZERO); uids.len()] };
        let uids: Vec<_> = uids.iter().map(|uid| seqsvr_core::Uid::new(uid.0)).collect();
        let numbers = sequencer.next_each(&uids, patience).await;
        numbers.into_iter().map(|number| MessageId::new(number?).ok_or(NumberError::Exhausted)).collect()
    }
}

impl Numbers {
    /// Lets these sequences go on above the latest ids of their inboxes: for a sequence that is behind them, because its file was lost or
    /// is older, or another one is the source now.
    ///
    /// # Errors
    /// When a ceiling cannot be raised now; other sequences may have been advanced.
    pub async fn overtake(&self, latest: &[(Uid, MessageId)]) -> Result<(), NumberError> {
        let Some(sequencer) = &self.sequencer else { return Ok(()) };
        let advance =
            |&(uid, id): &(Uid, MessageId)| sequencer.advance(seqsvr_core::Uid::new(uid.0), id.get());
        for some in latest.chunks(AT_ONCE) {
            try_join_all(some.iter().map(advance)).await?;
            self.note_overtaken(some.len());
        }
        if let Some((uid, id)) = latest.first() {
            warn!(
                inboxes = latest.len(), %uid, latest = %id,
                "the sequence was behind the rows of inboxes, such as this one; it continues above them"
            );
        }
        Ok(())
    }

    /// Counts sequences that were advanced elsewhere.
    pub fn note_overtaken(&self, sequences: usize) {
        self.overtaken.fetch_add(sequences as u64, Ordering::Relaxed);
    }

    /// How many sequences were found behind the rows and advanced.
    pub fn overtaken(&self) -> u64 {
        self.overtaken.load(Ordering::Relaxed)
    }
}

impl From<NextError> for NumberError {
    fn from(error: NextError) -> NumberError {
        match error {
            NextError::Final(Refusal::Exhausted { .. }) => NumberError::Exhausted,
            other => NumberError::Unavailable(other.to_string()),
        }
    }
}
