//! Accounts and sessions in memory: for tests of what stands above storage.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::invites::Kept;
use crate::domain::{Timestamp, Uid, name_endings, name_key, skeletons};
use crate::store::directory::MOST_SESSIONS;
use crate::store::names::Search;
use crate::store::{
    AccessKey, Account, CodeHash, Directory, NewAccount, Session, ShownName, SignUpInvite, StoreError,
};

/// A [`Directory`] that forgets everything when it is dropped.
#[derive(Default)]
pub struct MemoryDirectory {
    state: Mutex<DirectoryState>,
    invites: Mutex<BTreeMap<u64, Kept>>,
    keys: Mutex<BTreeMap<String, AccessKey>>,
}

#[derive(Default)]
pub(super) struct DirectoryState {
    pub(super) accounts: BTreeMap<Uid, Account>,
    /// By the lower-case form of the name.
    names: BTreeMap<String, Uid>,
    pub(super) sessions: HashMap<[u8; 32], Session>,
    pub(super) recovery_codes: BTreeSet<(Uid, CodeHash)>,
    pub(super) sign_up_invites: BTreeMap<CodeHash, SignUpInvite>,
    /// Deleted accounts of which nothing is left.
    pub(super) cleared: BTreeSet<Uid>,
    /// The skeletons of all names: a new name must not look like another one.
    skeletons: HashSet<String>,
}

impl MemoryDirectory {
    /// Without accounts.
    pub fn new() -> MemoryDirectory {
        MemoryDirectory::default()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, DirectoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn invites(&self) -> MutexGuard<'_, BTreeMap<u64, Kept>> {
        self.invites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keys(&self) -> MutexGuard<'_, BTreeMap<String, AccessKey>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, uid: Uid, change: impl FnOnce(&mut Account)) -> bool {
        let mut state = self.state();
        state.accounts.get_mut(&uid).filter(|account| account.deleted_at.is_none()).map(change).is_some()
    }
}

#[async_trait]
impl Directory for MemoryDirectory {
    async fn create_account(
        &self,
        uid: Uid,
        account: NewAccount,
        first: Option<Session>,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let key = name_key(&account.name);
        let skeletons = skeletons(&account.name);
        if state.names.contains_key(&key) || skeletons.iter().any(|one| state.skeletons.contains(one)) {
            return Ok(false);
        }
        state.skeletons.extend(skeletons);
        let NewAccount { name, password_hash, .. } = account;
        state.names.insert(key, uid);
        let account = Account { uid, name, password_hash, disabled: false, deleted_at: None };
        state.accounts.insert(uid, account);
        state.sessions.extend(first.map(|session| (session.token_hash, session)));
        Ok(true)
    }

    async fn largest_uid(&self) -> Result<Option<Uid>, StoreError> {
        Ok(self.state().accounts.keys().next_back().copied())
    }

    async fn account_by_name(&self, name: &str) -> Result<Option<Account>, StoreError> {
        let state = self.state();
        Ok(state.names.get(&name_key(name)).and_then(|uid| state.accounts.get(uid)).cloned())
    }

    async fn account(&self, uid: Uid) -> Result<Option<Account>, StoreError> {
        Ok(self.state().accounts.get(&uid).cloned())
    }

    async fn shown_names(&self, uids: &[Uid]) -> Result<Vec<Option<ShownName>>, StoreError> {
        let state = self.state();
        let shown = |account: &Account| match account.deleted_at {
            None => ShownName::Of(account.name.clone()),
            Some(_) => ShownName::Deleted,
        };
        Ok(uids.iter().map(|uid| state.accounts.get(uid).map(shown)).collect())
    }

    async fn has_look_alike(&self, name: &str) -> Result<bool, StoreError> {
        let state = self.state();
        Ok(skeletons(name).iter().any(|skeleton| state.skeletons.contains(skeleton)))
    }

    async fn search(&self, part: &str, limit: usize) -> Result<Vec<(Uid, String)>, StoreError> {
        let state = self.state();
        let search = Search::new(part, limit);
        let open = state.names.iter().filter_map(|(key, uid)| Some((key, state.accounts.get(uid)?)));
        let open = open.filter(|(_, account)| !account.disabled);
        let shown = |account: &Account| (account.uid, account.name.clone());
        let beginning: Vec<_> = open
            .clone()
            .filter(|(key, _)| key.starts_with(&search.part))
            .map(|(_, account)| shown(account))
            .take(limit)
            .collect();
        let has_part = |name: &str| name_endings(name).iter().any(|ending| ending.starts_with(&search.part));
        let elsewhere = match search.endings(beginning.len()) {
            0 => Vec::new(),
            most => {
                let open = open.map(|(_, account)| account).filter(|account| has_part(&account.name));
                open.map(shown).take(most).collect()
            }
        };
        Ok(search.together(beginning, elsewhere))
    }

    async fn index_names(&self, _: usize) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn accounts(&self, after: Uid, limit: usize) -> Result<Vec<Account>, StoreError> {
        let later = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        Ok(self.state().accounts.range(later).take(limit).map(|(_, account)| account.clone()).collect())
    }

    async fn set_password(&self, uid: Uid, password_hash: &str) -> Result<bool, StoreError> {
        self.state().recovery_codes.retain(|(whose, _)| *whose != uid);
        Ok(self.change(uid, |account| account.password_hash = password_hash.to_owned()))
    }

    async fn replace_hash(&self, uid: Uid, checked: &str, password_hash: &str) -> Result<bool, StoreError> {
        let mut state = self.state();
        let account = state.accounts.get_mut(&uid);
        let account = account.filter(|account| account.password_hash == checked && !account.disabled);
        let Some(account) = account else { return Ok(false) };
        account.password_hash = password_hash.to_owned();
        Ok(true)
    }

    async fn change_password(
        &self,
        uid: Uid,
        checked: &str,
        password_hash: &str,
        kept: &[u8; 32],
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let account = state.accounts.get_mut(&uid);
        let account = account.filter(|account| account.password_hash == checked && !account.disabled);
        let Some(account) = account else { return Ok(false) };
        account.password_hash = password_hash.to_owned();
        state.sessions.retain(|token_hash, session| session.uid != uid || token_hash == kept);
        state.recovery_codes.retain(|(whose, _)| *whose != uid);
        Ok(true)
    }

    async fn set_disabled(&self, uid: Uid, disabled: bool) -> Result<bool, StoreError> {
        if disabled {
            self.state().sign_up_invites.retain(|_, invite| invite.made_by != Some(uid));
        }
        Ok(self.change(uid, |account| account.disabled = disabled))
    }

    async fn create_session(&self, session: Session, password_hash: &str) -> Result<bool, StoreError> {
        let mut state = self.state();
        let account = state.accounts.get(&session.uid);
        let may = account.is_some_and(|account| account.password_hash == password_hash && !account.disabled);
        if may {
            state.sessions.insert(session.token_hash, session);
        }
        Ok(may)
    }

    async fn session(&self, token_hash: &[u8; 32], now: Timestamp) -> Result<Option<Session>, StoreError> {
        let state = self.state();
        let open = |session: &&Session| {
            session.expires_at > now
                && state.accounts.get(&session.uid).is_some_and(|account| !account.disabled)
        };
        Ok(state.sessions.get(token_hash).filter(open).cloned())
    }

    async fn sessions(&self, uid: Uid, now: Timestamp, limit: usize) -> Result<Vec<Session>, StoreError> {
        let state = self.state();
        let open = state.sessions.values().filter(|session| session.uid == uid && session.expires_at > now);
        let mut open: Vec<Session> = open.take(MOST_SESSIONS).cloned().collect();
        open.sort_by_key(|session| (Reverse(session.created_at), session.token_hash));
        open.truncate(limit);
        Ok(open)
    }

    async fn end_session_of(&self, uid: Uid, id: &[u8; 16]) -> Result<Option<[u8; 32]>, StoreError> {
        let mut state = self.state();
        let mut of_account = state.sessions.values().filter(|session| session.uid == uid);
        let ended = of_account.find(|session| session.token_hash.starts_with(id));
        let ended = ended.map(|session| session.token_hash);
        if let Some(token_hash) = &ended {
            state.sessions.remove(token_hash);
        }
        Ok(ended)
    }

    async fn label_session(&self, uid: Uid, id: &[u8; 16], label: &str) -> Result<bool, StoreError> {
        let mut state = self.state();
        let mut of_account = state.sessions.values_mut().filter(|session| session.uid == uid);
        let labelled = of_account.find(|session| session.token_hash.starts_with(id));
        Ok(labelled.map(|session| session.label = label.to_owned()).is_some())
    }

    async fn end_session(&self, token_hash: &[u8; 32]) -> Result<bool, StoreError> {
        Ok(self.state().sessions.remove(token_hash).is_some())
    }

    async fn end_sessions(&self, uid: Uid) -> Result<(), StoreError> {
        self.state().sessions.retain(|_, session| session.uid != uid);
        Ok(())
    }

    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let mut state = self.state();
        let expired: Vec<[u8; 32]> = state
            .sessions
            .values()
            .filter(|session| session.expires_at <= now)
            .take(limit)
            .map(|session| session.token_hash)
            .collect();
        for token_hash in &expired {
            state.sessions.remove(token_hash);
        }
        Ok(expired.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance;

    #[tokio::test]
    async fn it_keeps_the_contract() {
        conformance::directory::run(&MemoryDirectory::new()).await;
        conformance::credentials::run(&MemoryDirectory::new()).await;
        conformance::deletions::run(&MemoryDirectory::new()).await;
        conformance::invites::run(&MemoryDirectory::new()).await;
        conformance::access_keys::run(&MemoryDirectory::new()).await;
    }
}
