//! `[queues]`: how many there are.

use serde::{Deserialize, Serialize};

use super::{ConfigError, within};

/// How writes are queued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueuesSection {
    /// How many queues share the receivers. With one, a message is in every inbox when it is answered.
    pub count: usize,
}

impl Default for QueuesSection {
    fn default() -> Self {
        QueuesSection { count: crate::queue::Options::default().queues }
    }
}

impl QueuesSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("queues", "count", self.count, 1..=1_024)
    }
}
