//! Numbers for rows: the door to seqsvr. Turns its ranges into message ids and its errors into ours.
//!
//! `lines` says which number lines these are. Owns no state. [`Numbers`] is called by the queues alone (step 1 of a write); which
//! implementation lies behind it, embedded or cluster, is decided at boot. `ids` and `traces` are the door to the number issuer.

mod ids;
mod lines;
mod traces;

use std::sync::Arc;
use std::time::Duration;

use seqsvr::{NextError, Refusal, Sequencer};

use crate::domain::{MessageId, Uid};

pub use ids::{Ids, OpenError, Stored};
pub use lines::Lines;
pub use traces::{Traces, TracesError};

/// Why no number could be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NumberError {
    /// Not now; nothing was taken.
    #[error("no number can be had now: {0}")]
    Unavailable(String),
    /// This user's line has come to its end at 2^53 − 1.
    #[error("the number line has come to its end")]
    Exhausted,
}

/// A run of adjacent uids whose numbers come from one place, and fail together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Section(u32);

impl std::fmt::Display for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The source of message ids.
#[derive(Clone)]
pub struct Numbers {
    sequencer: Arc<dyn Sequencer>,
    section_size: u32,
}

impl Numbers {
    /// Numbers from `sequencer`, whose limit must be [`MessageId::MAX`] or less and whose sections have `section_size` uids. (With
    /// another size than the sequencer's, an outage is taken to be smaller or larger than it is.)
    pub fn new(sequencer: Arc<dyn Sequencer>, section_size: u32) -> Numbers {
        Numbers { sequencer, section_size: section_size.max(1) }
    }

    /// The section that `uid` belongs to.
    pub fn section_of(&self, uid: Uid) -> Section {
        Section(uid.0 / self.section_size)
    }

    /// The next number of each of these lines, larger than all before it (S1, I6), asked for at once and waited for at most
    /// `patience`. They stand in the order of `uids`; a user that is there twice gets two, the later one larger.
    pub async fn each(&self, uids: &[Uid], patience: Duration) -> Vec<Result<MessageId, NumberError>> {
        let lines: Vec<_> = uids.iter().map(|uid| seqsvr::Uid::new(uid.0)).collect();
        let numbers = self.sequencer.next_each(&lines, patience).await;
        numbers.into_iter().map(|number| MessageId::new(number?).ok_or(NumberError::Exhausted)).collect()
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
