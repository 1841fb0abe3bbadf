//! `[log]`: how much is said on standard error, and in what form.

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use super::ConfigError;

/// What is written to standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// The form of a line.
    pub format: LogFormat,
    /// What is logged, in the notation of `tracing`: `info`, or `info,tidemark::queue=debug`.
    pub filter: String,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for programs.
    Json,
}

impl Default for LogSection {
    fn default() -> Self {
        LogSection { format: LogFormat::Text, filter: "info".into() }
    }
}

impl LogSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match EnvFilter::try_new(&self.filter) {
            Ok(_) => Ok(()),
            Err(e) => Err(ConfigError::Value { section: "log", key: "filter", why: e.to_string() }),
        }
    }
}
