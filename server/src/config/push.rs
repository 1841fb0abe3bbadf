//! `[push]`: whether devices are told of messages while no page is open, and where pushes may go.

use serde::{Deserialize, Serialize};

use super::Cidr;

/// Web Push.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PushSection {
    /// Whether devices may subscribe, and pushes are sent.
    pub enabled: bool,
    /// Addresses inside a network to which pushes may go, too: of a push service of one's own.
    pub allow: Vec<Cidr>,
}

impl Default for PushSection {
    fn default() -> PushSection {
        PushSection { enabled: true, allow: Vec::new() }
    }
}
