//! Recovery codes and invitations to sign up in memory.

use async_trait::async_trait;

use super::MemoryDirectory;
use crate::domain::{Timestamp, Uid};
use crate::store::credentials::{CodeHash, CredentialStore, SignUpInvite, SignedUp};
use crate::store::{Directory as _, NewAccount, Session, StoreError};

#[async_trait]
impl CredentialStore for MemoryDirectory {
    async fn sign_up(
        &self,
        uid: Uid,
        account: NewAccount,
        first: Session,
        codes: &[CodeHash],
        invite: Option<&CodeHash>,
    ) -> Result<SignedUp, StoreError> {
        if let Some(code) = invite {
            let open = self.sign_up_invite(code).await?.is_some_and(|one| one.is_open(account.created_at));
            if !open {
                return Ok(SignedUp::NotInvited);
            }
        }
        if !self.create_account(uid, account, Some(first)).await? {
            return Ok(SignedUp::NameTaken);
        }
        let mut state = self.state();
        if let Some(invite) = invite.and_then(|code| state.sign_up_invites.get_mut(code)) {
            invite.uses_left -= 1;
        }
        state.recovery_codes.extend(codes.iter().map(|code| (uid, *code)));
        Ok(SignedUp::Made)
    }

    async fn put_recovery_codes(
        &self,
        uid: Uid,
        checked: &str,
        codes: &[CodeHash],
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let account = state.accounts.get(&uid);
        let may = account.is_some_and(|account| account.password_hash == checked && !account.disabled);
        if may {
            state.recovery_codes.retain(|(whose, _)| *whose != uid);
            state.recovery_codes.extend(codes.iter().map(|code| (uid, *code)));
        }
        Ok(may)
    }

    async fn recovery_codes(&self, uid: Uid) -> Result<u64, StoreError> {
        Ok(self.state().recovery_codes.iter().filter(|(whose, _)| *whose == uid).count() as u64)
    }

    async fn has_recovery_code(&self, uid: Uid, code: &CodeHash) -> Result<bool, StoreError> {
        Ok(self.state().recovery_codes.contains(&(uid, *code)))
    }

    async fn recover(
        &self,
        code: &CodeHash,
        password_hash: &str,
        session: Session,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let uid = session.uid;
        if state.accounts.get(&uid).is_none_or(|account| account.disabled)
            || !state.recovery_codes.remove(&(uid, *code))
        {
            return Ok(false);
        }
        if let Some(account) = state.accounts.get_mut(&uid) {
            account.password_hash = password_hash.to_owned();
        }
        state.sessions.retain(|_, session| session.uid != uid);
        state.sessions.insert(session.token_hash, session);
        Ok(true)
    }

    async fn put_sign_up_invite(&self, invite: SignUpInvite, most_open: usize) -> Result<bool, StoreError> {
        let mut state = self.state();
        let of_maker = state.sign_up_invites.values().filter(|other| other.made_by == invite.made_by);
        let has_room = of_maker.filter(|other| other.is_open(invite.made_at)).count() < most_open;
        let keeps = has_room && !state.sign_up_invites.contains_key(&invite.code_hash);
        if keeps {
            state.sign_up_invites.insert(invite.code_hash, invite);
        }
        Ok(keeps)
    }

    async fn sign_up_invite(&self, code: &CodeHash) -> Result<Option<SignUpInvite>, StoreError> {
        Ok(self.state().sign_up_invites.get(code).copied())
    }

    async fn sign_up_invites(
        &self,
        made_by: Option<Uid>,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<SignUpInvite>, StoreError> {
        let state = self.state();
        let open = state.sign_up_invites.values();
        let open = open.filter(|invite| invite.made_by == made_by && invite.is_open(now));
        let mut open: Vec<SignUpInvite> = open.copied().collect();
        open.sort_by_key(|invite| (invite.expires_at, invite.code_hash));
        open.truncate(limit);
        Ok(open)
    }

    async fn end_sign_up_invite(&self, made_by: Option<Uid>, id: &[u8; 16]) -> Result<bool, StoreError> {
        let mut state = self.state();
        let before = state.sign_up_invites.len();
        state.sign_up_invites.retain(|code, invite| !(code.starts_with(id) && invite.made_by == made_by));
        Ok(state.sign_up_invites.len() < before)
    }

    async fn forget_sign_up_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let mut state = self.state();
        let over = state.sign_up_invites.values().filter(|invite| invite.expires_at <= now);
        let over: Vec<CodeHash> = over.take(limit).map(|invite| invite.code_hash).collect();
        for code in &over {
            state.sign_up_invites.remove(code);
        }
        Ok(over.len() as u64)
    }
}
