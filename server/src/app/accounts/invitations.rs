//! Invitations to make an account, where not everybody may: somebody who has one makes a link, or the operator does.

use super::{AccountError, Accounts, SignUp};
use crate::app::sessions::SessionId;
use crate::app::tokens::{Token, hash_of};
use crate::domain::{ClientId, LONGEST_INVITE_SECONDS, Timestamp, Uid};
use crate::seq::Ids;
use crate::store::{SignUpInvite, StoreError};

/// Invitations of the operator in one list.
const MOST_LISTED: usize = 10_000;

/// How long an invitation lasts where nothing else is said, in seconds.
const USUAL_SECONDS: u32 = 7 * 24 * 60 * 60;

/// An invitation just made; the code is shown this once.
#[derive(Clone, Debug)]
pub struct NewSignUpInvite {
    /// The code in the link.
    pub code: Token,
    /// The id by which its maker ends it.
    pub id: SessionId,
    /// From when on nobody makes an account by it.
    pub expires_at: Timestamp,
    /// How many accounts may be made by it.
    pub uses: u32,
}

/// An invitation as its maker sees it.
#[derive(Clone, Copy, Debug)]
pub struct OpenSignUpInvite {
    /// The argument of [`Accounts::end_sign_up_invite`].
    pub id: SessionId,
    /// The rest of it.
    pub invite: SignUpInvite,
}

impl Accounts {
    /// Makes an invitation of `by`; `None`: of the operator, without limits. Without terms it lasts a week and is for one account.
    /// `key`, with the numbers' secret: a repetition under the same key makes no second one and gets the same answer, until the first one
    /// is ended or some time after it is over.
    pub async fn invite(
        &self,
        by: Option<Uid>,
        seconds: Option<u32>,
        uses: Option<u32>,
        key: Option<(ClientId, &Ids)>,
    ) -> Result<NewSignUpInvite, AccountError> {
        if self.0.sign_up == SignUp::Closed {
            return Err(AccountError::SignUpClosed);
        }
        let (longest_seconds, most_uses, most_open) = match by {
            Some(_) => (LONGEST_INVITE_SECONDS, self.0.sign_ups_per_invite, self.0.open_invites),
            None => (u32::MAX, u32::MAX, usize::MAX),
        };
        let (seconds, uses) = (seconds.unwrap_or(USUAL_SECONDS), uses.unwrap_or(1));
        if !(60..=longest_seconds).contains(&seconds) || !(1..=most_uses).contains(&uses) {
            return Err(AccountError::InviteTerms { longest_seconds, most_uses });
        }
        let code = match (by, key) {
            (Some(by), Some((key, ids))) => Token::of(ids.sign_up_code(by, key)),
            _ => Token::random(&mut rand::rng()),
        };
        let made_at = self.0.clock.now();
        let expires_at = Timestamp(made_at.0.saturating_add(i64::from(seconds) * 1_000));
        let code_hash = code.hash();
        let invite = SignUpInvite { code_hash, made_by: by, made_at, expires_at, uses, uses_left: uses };
        let made = |expires_at| NewSignUpInvite { code, id: SessionId::of(&code_hash), expires_at, uses };
        if self.0.directory.put_sign_up_invite(invite, most_open).await? {
            return Ok(made(expires_at));
        }
        let first = self.0.directory.sign_up_invite(&code_hash).await?;
        let first = first.ok_or(AccountError::TooManyInvites(most_open))?;
        let lasts = first.expires_at.0 - first.made_at.0;
        match (first.uses, lasts) == (uses, i64::from(seconds) * 1_000) {
            true => Ok(made(first.expires_at)),
            false => Err(AccountError::KeyReused),
        }
    }

    /// The invitations of `by` (`None`: the operator) by which somebody can make an account, those that end first; of an account all, of the
    /// operator no more than a list is for.
    pub async fn open_invites(&self, by: Option<Uid>) -> Result<Vec<OpenSignUpInvite>, StoreError> {
        let most = by.map_or(MOST_LISTED, |_| self.0.open_invites);
        let open = self.0.directory.sign_up_invites(by, self.0.clock.now(), most).await?;
        let seen = |invite: SignUpInvite| OpenSignUpInvite { id: SessionId::of(&invite.code_hash), invite };
        Ok(open.into_iter().map(seen).collect())
    }

    /// Ends an invitation of `by`. `false`: there is none with this id.
    pub async fn end_sign_up_invite(&self, by: Option<Uid>, id: SessionId) -> Result<bool, StoreError> {
        self.0.directory.end_sign_up_invite(by, &id.0).await
    }

    /// Ends an invitation of the operator: by its id, by the code in its link, or by the link. `false`: there is none.
    pub async fn end_operators_invite(&self, named: &str) -> Result<bool, StoreError> {
        let code = named.rsplit("invite=").next().unwrap_or_default().trim();
        let id = code.parse().unwrap_or_else(|_| SessionId::of(&hash_of(code)));
        self.end_sign_up_invite(None, id).await
    }

    /// Whether somebody who shows `code`, if any, may make an account now.
    pub async fn may_sign_up(&self, code: Option<&str>) -> Result<bool, StoreError> {
        Ok(match (self.0.sign_up, code) {
            (SignUp::Open, _) => true,
            (SignUp::Closed, _) | (SignUp::Invitation, None) => false,
            (SignUp::Invitation, Some(code)) => {
                let invite = self.0.directory.sign_up_invite(&hash_of(code)).await?;
                invite.is_some_and(|invite| invite.is_open(self.0.clock.now()))
            }
        })
    }
}
