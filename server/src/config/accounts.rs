//! `[accounts]`: who may sign up, what a password costs to check, and how long a session lasts.

use serde::{Deserialize, Serialize};

use super::{ConfigError, within};
use crate::app::SignUp;

/// Sign-up, passwords and sessions. What is skipped is no setting, as in `[limits]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccountsSection {
    /// The people that may make an account.
    pub sign_up: SignUp,
    /// With sign-up by invitation: how many accounts may be made by one invitation of an account.
    pub sign_ups_per_invite: u32,
    /// How long a session lasts.
    pub session_days: u32,
    /// argon2id: memory of one hash, in KiB.
    pub password_memory_kib: u32,

    /// How many invitations to sign up that are open an account may have.
    #[serde(skip)]
    pub open_invites: usize,
    /// Hashes waiting for their turn before one of the address (IPv6: of the /64) that has the most is refused.
    #[serde(skip)]
    pub password_waiting: usize,
}

impl Default for AccountsSection {
    fn default() -> Self {
        AccountsSection {
            sign_up: SignUp::Open,
            sign_ups_per_invite: 10,
            session_days: 90,
            password_memory_kib: 19_456,
            open_invites: 5,
            password_waiting: 256,
        }
    }
}

impl AccountsSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("accounts", "sign_ups_per_invite", self.sign_ups_per_invite, 1..=1_000_000)?;
        within("accounts", "session_days", self.session_days, 1..=3_650)?;
        within("accounts", "password_memory_kib", self.password_memory_kib, 8..=4_194_304)
    }
}
