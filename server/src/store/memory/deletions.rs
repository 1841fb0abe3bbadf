//! Deleted accounts in memory.

use async_trait::async_trait;

use super::MemoryDirectory;
use crate::domain::{Timestamp, Uid};
use crate::store::{Deletions, StoreError};

#[async_trait]
impl Deletions for MemoryDirectory {
    async fn delete_account(
        &self,
        uid: Uid,
        checked: Option<&str>,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(account) = state.accounts.get_mut(&uid) else { return Ok(false) };
        let may = checked.is_none_or(|hash| account.password_hash == hash && !account.disabled);
        if account.deleted_at.is_some() || !may {
            return Ok(false);
        }
        account.deleted_at = Some(at);
        account.disabled = true;
        account.password_hash.clear();
        state.sessions.retain(|_, session| session.uid != uid);
        state.recovery_codes.retain(|(whose, _)| *whose != uid);
        state.sign_up_invites.retain(|_, invite| invite.made_by != Some(uid));
        Ok(true)
    }

    async fn to_clear(&self, after: Uid, limit: usize) -> Result<Vec<(Uid, Timestamp)>, StoreError> {
        let state = self.state();
        let later = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        let deleted =
            state.accounts.range(later).filter_map(|(uid, account)| Some((*uid, account.deleted_at?)));
        Ok(deleted.filter(|(uid, _)| !state.cleared.contains(uid)).take(limit).collect())
    }

    async fn mark_cleared(&self, uid: Uid) -> Result<(), StoreError> {
        self.state().cleared.insert(uid);
        Ok(())
    }

    async fn deleted_since(&self, since: Timestamp, limit: usize) -> Result<Vec<Uid>, StoreError> {
        let state = self.state();
        let deleted = state.accounts.values().filter_map(|account| Some((account.deleted_at?, account.uid)));
        let mut deleted: Vec<_> = deleted.filter(|(at, _)| *at >= since).collect();
        deleted.sort_unstable_by(|one, other| other.cmp(one));
        Ok(deleted.into_iter().take(limit).map(|(_, uid)| uid).collect())
    }

    fn forget_names(&self, _: Option<Uid>) {}
}
