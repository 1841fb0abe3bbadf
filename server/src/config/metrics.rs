//! `[metrics]`: who may read `/metrics`.

use serde::{Deserialize, Serialize};

use super::{ConfigError, Listen};

/// Access to `/metrics`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsSection {
    /// An address of their own, at which everybody who reaches it may read them; empty: none.
    pub listen: String,
    /// Whether everybody may read them at the server's own address. Otherwise callers on the same machine may, unless the
    /// configuration tells of a proxy.
    pub public: bool,
}

impl MetricsSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.address().map(drop)
    }

    /// The address of their own.
    ///
    /// # Errors
    ///
    /// It cannot be one.
    pub fn address(&self) -> Result<Option<Listen>, ConfigError> {
        if self.listen.is_empty() {
            return Ok(None);
        }
        let wrong = |why| ConfigError::Value { section: "metrics", key: "listen", why };
        self.listen.parse().map(Some).map_err(wrong)
    }
}
