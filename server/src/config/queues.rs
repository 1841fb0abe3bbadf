//! `[queues]`: how many there are, how much each holds, how much one commit takes.

use serde::{Deserialize, Serialize};

use super::{ConfigError, within};

/// How writes are queued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueuesSection {
    /// How many queues share the receivers. With one, a message is in every inbox when it is answered.
    pub count: usize,
    /// Requests that wait in one queue before new ones are refused.
    pub length: usize,
    /// Copies from other queues that wait in one before those accept no more.
    pub deliveries: usize,
    /// Requests, and deliveries, of one commit.
    pub batch: usize,
    /// Rows after which a commit takes no further request.
    pub batch_rows: usize,
    /// How long a commit waits for the numbers of its rows, in milliseconds.
    pub number_wait_ms: u32,
    /// Bytes of the messages that may wait for the numbers of their receivers.
    pub owed_bytes: usize,
    /// For how long the sends of a connection wait for one of them that was refused to be sent again.
    pub resend_seconds: u32,
    /// Users whose latest committed id is kept in memory beside those who are connected.
    pub known_watermarks: usize,
}

impl Default for QueuesSection {
    fn default() -> Self {
        QueuesSection {
            count: 1,
            length: 4_096,
            deliveries: 1_024,
            batch: 512,
            batch_rows: 8_192,
            number_wait_ms: 500,
            owed_bytes: 64 << 20,
            resend_seconds: 30,
            known_watermarks: 1_000_000,
        }
    }
}

impl QueuesSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("queues", "count", self.count, 1..=1_024)?;
        within("queues", "length", self.length, 1..=1_000_000)?;
        within("queues", "deliveries", self.deliveries, 1..=1_000_000)?;
        within("queues", "batch", self.batch, 1..=100_000)?;
        within("queues", "batch_rows", self.batch_rows, 1..=100_000)?;
        within("queues", "number_wait_ms", self.number_wait_ms, 1..=60_000)?;
        within("queues", "owed_bytes", self.owed_bytes, 1..=1 << 40)?;
        within("queues", "resend_seconds", self.resend_seconds, 1..=3_600)?;
        within("queues", "known_watermarks", self.known_watermarks, 1..=100_000_000)
    }
}
