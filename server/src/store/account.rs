//! Accounts as values.

use crate::domain::{DELETED_ACCOUNT, Timestamp, Uid};

/// A stored account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Who.
    pub uid: Uid,
    /// As the person wrote it; unique without regard to case.
    pub name: String,
    /// The password's argon2id hash in PHC form.
    pub password_hash: String,
    /// Whether the operator has locked it, or it is deleted.
    pub disabled: bool,
    /// When it was deleted, if it is.
    pub deleted_at: Option<Timestamp>,
}

/// An account to be made.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// As the person wrote it, already checked.
    pub name: String,
    /// The password's argon2id hash in PHC form.
    pub password_hash: String,
    /// When.
    pub created_at: Timestamp,
}

/// The name of an account, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownName {
    /// As the person wrote it.
    Of(String),
    /// The account is deleted: nobody sees its name any more.
    Deleted,
}

impl ShownName {
    /// The text.
    pub fn into_text(self) -> String {
        match self {
            ShownName::Of(name) => name,
            ShownName::Deleted => DELETED_ACCOUNT.to_owned(),
        }
    }

    /// Whether the account is deleted.
    pub fn is_deleted(&self) -> bool {
        *self == ShownName::Deleted
    }
}
