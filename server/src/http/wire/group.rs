//! Words for roles and histories of groups, on the wire and in the description of the API.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain;

/// A member's role and rights.
#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::http) enum Role {
    /// Write, add people, make invitations, leave.
    Member,
    /// That, and take back others' messages, pin, remove, ban and mute members, set name, topic, history and slow mode, see reports,
    /// revoke invitations.
    Administrator,
    /// That, and appoint administrators and the owner.
    Owner,
}

impl From<domain::Role> for Role {
    fn from(role: domain::Role) -> Role {
        match role {
            domain::Role::Member => Role::Member,
            domain::Role::Administrator => Role::Administrator,
            domain::Role::Owner => Role::Owner,
        }
    }
}

impl From<Role> for domain::Role {
    fn from(role: Role) -> domain::Role {
        match role {
            Role::Member => domain::Role::Member,
            Role::Administrator => domain::Role::Administrator,
            Role::Owner => domain::Role::Owner,
        }
    }
}

/// The earlier messages that a new member of a group sees.
#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::http) enum History {
    /// Nothing.
    Hidden,
    /// The newest messages.
    Visible,
}

impl From<domain::History> for History {
    fn from(history: domain::History) -> History {
        match history {
            domain::History::Hidden => History::Hidden,
            domain::History::Visible => History::Visible,
        }
    }
}

impl From<History> for domain::History {
    fn from(history: History) -> domain::History {
        match history {
            History::Hidden => domain::History::Hidden,
            History::Visible => domain::History::Visible,
        }
    }
}
