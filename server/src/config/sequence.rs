//! `[sequence]`: how numbers are set aside (S3, S4). Both values are compared with what is stored.

use serde::{Deserialize, Serialize};

use super::{ConfigError, within};

/// How numbers are set aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SequenceSection {
    /// Adjacent uids that share one ceiling.
    pub section_size: u32,
    /// By how much a ceiling is raised.
    pub step: u32,
}

impl Default for SequenceSection {
    fn default() -> Self {
        SequenceSection { section_size: 100_000, step: 10_000 }
    }
}

impl SequenceSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("sequence", "section_size", self.section_size, 10_000..=1 << 31)?;
        within("sequence", "step", self.step, 2..=1_000_000_000)
    }
}
