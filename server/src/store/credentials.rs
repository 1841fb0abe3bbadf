//! Credentials other than passwords: recovery codes for a forgotten password, and invitations to make an account.

use async_trait::async_trait;

use super::StoreError;
use super::directory::{NewAccount, Session};
use crate::domain::{Timestamp, Uid};

/// SHA-256 of a code that somebody holds; the code itself is never stored.
pub type CodeHash = [u8; 32];

/// An invitation to make an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignUpInvite {
    /// Of what stands in its link.
    pub code_hash: CodeHash,
    /// The user that made it; `None`: the operator.
    pub made_by: Option<Uid>,
    /// When.
    pub made_at: Timestamp,
    /// From when on nobody makes an account by it.
    pub expires_at: Timestamp,
    /// How many accounts may be made by it in all.
    pub uses: u32,
    /// How many may still be made by it.
    pub uses_left: u32,
}

impl SignUpInvite {
    /// Whether somebody can make an account by it at `now`.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.expires_at > now && self.uses_left > 0
    }
}

/// The outcome of a sign-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedUp {
    /// The account is made.
    Made,
    /// Somebody has the name, or one that can be taken for it.
    NameTaken,
    /// The invitation is unknown, over or used up.
    NotInvited,
}

/// Recovery codes and invitations to sign up, beside the accounts. Every change is durable when the call returns, and done whole or not
/// at all.
#[async_trait]
pub trait CredentialStore: Send + Sync + 'static {
    /// Makes an account under `uid`, which nobody has or had, with its `first` session and its recovery codes. With an invitation it
    /// takes a use of that one, as it is when the account is made.
    async fn sign_up(
        &self,
        uid: Uid,
        account: NewAccount,
        first: Session,
        codes: &[CodeHash],
        invite: Option<&CodeHash>,
    ) -> Result<SignedUp, StoreError>;

    /// Gives the account these recovery codes in place of those that it has. `false`, and nothing changes, when the hash of its password
    /// is not `checked` any more, or it is disabled.
    async fn put_recovery_codes(
        &self,
        uid: Uid,
        checked: &str,
        codes: &[CodeHash],
    ) -> Result<bool, StoreError>;

    /// How many recovery codes the account has.
    async fn recovery_codes(&self, uid: Uid) -> Result<u64, StoreError>;

    /// Whether the account has this recovery code.
    async fn has_recovery_code(&self, uid: Uid, code: &CodeHash) -> Result<bool, StoreError>;

    /// Uses the recovery code up: its account gets another password, all its sessions end, and `session` begins. `false`, and nothing
    /// changes, when the account has no such code, or is disabled. Of several who use one code at the same moment one succeeds.
    async fn recover(
        &self,
        code: &CodeHash,
        password_hash: &str,
        session: Session,
    ) -> Result<bool, StoreError>;

    /// Keeps an invitation. `false`, and nothing is kept, when its maker has `most_open` that are open when it is made, or there is one of
    /// the same code.
    async fn put_sign_up_invite(&self, invite: SignUpInvite, most_open: usize) -> Result<bool, StoreError>;

    /// The invitation of this code.
    async fn sign_up_invite(&self, code: &CodeHash) -> Result<Option<SignUpInvite>, StoreError>;

    /// The invitations of `made_by` (`None`: the operator) that are open at `now`, the one that ends first before the others, at most `limit`.
    async fn sign_up_invites(
        &self,
        made_by: Option<Uid>,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<SignUpInvite>, StoreError>;

    /// Forgets the invitation of `made_by` whose code's hash begins with `id`. `false`: there is none.
    async fn end_sign_up_invite(&self, made_by: Option<Uid>, id: &[u8; 16]) -> Result<bool, StoreError>;

    /// Forgets up to `limit` invitations that were over at `now`, and tells how many.
    async fn forget_sign_up_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
