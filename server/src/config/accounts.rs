//! `[accounts]`: who may sign up, what a password costs to check, and how long a session lasts.

use serde::{Deserialize, Serialize};

use super::{ConfigError, within};

/// The people that may make an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignUp {
    /// Everybody who reaches the server.
    #[default]
    Open,
    /// People with an invitation of somebody who has an account, or of the operator.
    Invitation,
    /// The operator alone, by `tidemark user add`.
    Closed,
}

/// Sign-up, passwords and sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccountsSection {
    /// The people that may make an account.
    pub sign_up: SignUp,
    /// With sign-up by invitation: how many invitations that are open an account may have.
    pub open_invites: usize,
    /// How many accounts may be made by one of them.
    pub sign_ups_per_invite: u32,
    /// How long a session lasts.
    pub session_days: u32,
    /// argon2id: memory of one hash, in KiB.
    pub password_memory_kib: u32,
    /// argon2id: passes over that memory.
    pub password_passes: u32,
    /// Hashes computed at the same time.
    pub password_threads: usize,
    /// Hashes waiting for their turn before one of the address (IPv6: of the /64) that has the most is refused.
    pub password_waiting: usize,
    /// Sessions kept in memory.
    pub cached_sessions: usize,
    /// Tickets not yet used or expired, over all sessions.
    pub tickets: usize,
}

impl Default for AccountsSection {
    fn default() -> Self {
        AccountsSection {
            sign_up: SignUp::Open,
            open_invites: 5,
            sign_ups_per_invite: 10,
            session_days: 90,
            password_memory_kib: 19_456,
            password_passes: 2,
            password_threads: 1,
            password_waiting: 256,
            cached_sessions: 100_000,
            tickets: 10_000,
        }
    }
}

impl AccountsSection {
    /// Log-ins, sign-ups and changes of a password that are carried out at a time: enough that the threads which hash have work while others
    /// look up and store.
    pub fn password_turns(&self) -> usize {
        self.password_threads + 8
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("accounts", "open_invites", self.open_invites, 0..=1_000)?;
        within("accounts", "sign_ups_per_invite", self.sign_ups_per_invite, 1..=1_000_000)?;
        within("accounts", "session_days", self.session_days, 1..=3_650)?;
        within("accounts", "password_memory_kib", self.password_memory_kib, 8..=4_194_304)?;
        within("accounts", "password_passes", self.password_passes, 1..=100)?;
        within("accounts", "password_threads", self.password_threads, 1..=256)?;
        within("accounts", "password_waiting", self.password_waiting, 1..=100_000)?;
        within("accounts", "cached_sessions", self.cached_sessions, 1..=100_000_000)?;
        within("accounts", "tickets", self.tickets, 1..=10_000_000)
    }
}
