//! Why something about an account was refused.

use std::time::Duration;

use crate::app::passwords::Busy;
use crate::app::tickets::TooManyTickets;
use crate::domain::Uid;
use crate::seq::NumberError;
use crate::store::StoreError;

/// Why something about an account was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AccountError {
    /// Accounts are made by the operator alone.
    #[error("sign-up is closed on this server; ask its operator for an account")]
    SignUpClosed,
    /// Only invited people may make accounts.
    #[error(
        "new accounts need an invitation, and this one is missing, expired or used up; ask for a new link"
    )]
    NotInvited,
    /// The name cannot be one.
    #[error("choose a name of 1 to 40 visible characters, with single spaces between them")]
    BadName,
    /// The password cannot be one.
    #[error("choose a password of 8 to 200 characters")]
    BadPassword,
    /// Attackers try this password first.
    #[error("this password is too easy to guess; choose another")]
    CommonPassword,
    /// Somebody has that name.
    #[error("the name is taken; choose another, or log in")]
    NameTaken,
    /// Somebody has a name that can be taken for it.
    #[error("the name looks like the name of another account; choose another")]
    NameResembles,
    /// The name was changed a short time ago.
    #[error("the name was changed less than a week ago; it can be changed again in {} hours", .0.as_secs().div_ceil(3_600))]
    RenamedLately(Duration),
    /// Name and password do not belong together, or the account is locked.
    #[error("name or password is wrong")]
    WrongCredentials,
    /// The password that was to be changed is another one.
    #[error("the current password is wrong")]
    WrongPassword,
    /// The account has no such recovery code.
    #[error("the name or the recovery code is wrong, or the code was used already")]
    WrongRecoveryCode,
    /// A device cannot be called so.
    #[error("choose a name of 1 to 60 visible characters for the device")]
    BadLabel,
    /// A limit of invitations is passed.
    #[error(
        "choose a time of 60 to {longest_seconds} seconds and 1 to {most_uses} accounts for the invitation"
    )]
    InviteTerms {
        /// The longest life.
        longest_seconds: u32,
        /// The most accounts.
        most_uses: u32,
    },
    /// As many invitations are open as may be.
    #[error("an account has at most {0} open invitations; end one first, or wait until one expires")]
    TooManyInvites(usize),
    /// Another invitation was made under the key.
    #[error(
        "this Idempotency-Key was used for an invitation with other terms; make a new key for each invitation"
    )]
    KeyReused,
    /// No account has that name.
    #[error("no account has the name {0}; `tidemark user list` shows all names")]
    Unknown(String),
    /// No account that is not deleted has that uid.
    #[error("there is no account with the uid {0}, or it is deleted")]
    NoAccount(Uid),
    /// The account is deleted.
    #[error("the account {0} is deleted; that cannot be undone, and its name stays taken")]
    Deleted(String),
    /// Too many passwords are being checked.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// Too many tickets are open.
    #[error(transparent)]
    TooManyTickets(#[from] TooManyTickets),
    /// Over all servers too many of the kind came from the same address or under the same name.
    #[error("too many requests; try again in {} s", .0.as_secs() + 1)]
    TooOften(Duration),
    /// No uid could be had.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
