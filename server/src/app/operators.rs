//! What operators do on the page `/admin`. Who is one is decided by a command on the machine (`tidemark user operator`), and accounts of
//! operators are changed by such commands alone.

use std::sync::Arc;

use super::{Accounts, Audit, Audited, NamedReport, OpenSession, ReportList, SessionId};
use crate::domain::{Clock, Uid, normal_name};
use crate::store::{Directory, ListedAccount, StoreError};

/// People of one search.
const MOST_FOUND: usize = 50;

/// Sessions that are shown of one account.
const MOST_SESSIONS: usize = 100;

/// Reports that are shown about one person.
const MOST_SHOWN: usize = 50;

/// Why an operator's wish is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// There is no such account, or it is deleted.
    #[error("there is no account with the uid {0}, or it is deleted")]
    Unknown(Uid),
    /// The account is an operator's.
    #[error("the account {0} is an operator's; change it by `tidemark user` on the machine of the server")]
    IsOperator(Uid),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A person as operators see it.
#[derive(Clone, Debug)]
pub struct InspectedPerson {
    /// The account.
    pub account: ListedAccount,
    /// Its open sessions, newest first.
    pub sessions: Vec<OpenSession>,
    /// The reports about it, newest first.
    pub reports: Vec<NamedReport>,
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Operators {
    accounts: Accounts,
    directory: Arc<Directory>,
    audit: Audit,
    reports: ReportList,
    clock: Clock,
}

impl Operators {
    /// Operators of the accounts in `directory`; what they do is noted in `audit`.
    pub fn new(accounts: Accounts, directory: Arc<Directory>, audit: Audit, clock: Clock) -> Operators {
        let reports = ReportList::new(Arc::clone(&directory), clock.clone());
        Operators { accounts, directory, audit, reports, clock }
    }

    /// The log of what was done.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// All reports.
    pub fn reports(&self) -> &ReportList {
        &self.reports
    }

    /// Whether the account of `uid` is an operator's.
    pub async fn is_operator(&self, uid: Uid) -> Result<bool, StoreError> {
        Ok(self.directory.listed_account(uid).await?.is_some_and(|account| account.operator))
    }

    /// People with `part` in their names, or the one whose uid it is, also those who are locked or deleted.
    pub async fn find(&self, part: &str) -> Result<Vec<ListedAccount>, StoreError> {
        let part = normal_name(part);
        if part.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        if let Ok(uid) = part.parse() {
            found.extend(self.directory.listed_account(uid).await?);
        }
        for account in self.directory.list_accounts(&part, MOST_FOUND).await? {
            if found.iter().all(|known: &ListedAccount| known.uid != account.uid) {
                found.push(account);
            }
        }
        Ok(found)
    }

    /// An account, its open sessions and the reports about it.
    pub async fn person(&self, uid: Uid) -> Result<InspectedPerson, OperatorError> {
        let account = self.directory.listed_account(uid).await?.ok_or(OperatorError::Unknown(uid))?;
        let open = self.directory.sessions(uid, self.clock.now(), MOST_SESSIONS).await?;
        let sessions = open.into_iter().map(OpenSession::of_another).collect();
        Ok(InspectedPerson { account, sessions, reports: self.reports.about(uid, MOST_SHOWN).await? })
    }

    /// Locks the account of `uid`: its sessions and invitations end, and nobody logs in to it.
    pub async fn lock(&self, by: Uid, uid: Uid) -> Result<(), OperatorError> {
        self.changeable(uid).await?;
        self.accounts.lock(uid).await?;
        self.directory.end_invites_of(uid, self.clock.now()).await?;
        self.audit.note(Some(by), Audited::AccountLocked, uid, "").await;
        Ok(())
    }

    /// Unlocks it.
    pub async fn unlock(&self, by: Uid, uid: Uid) -> Result<(), OperatorError> {
        self.changeable(uid).await?;
        self.accounts.unlock(uid).await?;
        self.audit.note(Some(by), Audited::AccountUnlocked, uid, "").await;
        Ok(())
    }

    /// Ends one session of `uid`; nothing if it has ended.
    pub async fn end_session(&self, by: Uid, uid: Uid, id: SessionId) -> Result<(), OperatorError> {
        self.changeable(uid).await?;
        if self.accounts.end_session(uid, id).await? {
            self.audit.note(Some(by), Audited::SessionEnded, uid, &id.to_string()).await;
        }
        Ok(())
    }

    /// Ends all sessions of `uid`.
    pub async fn end_sessions(&self, by: Uid, uid: Uid) -> Result<(), OperatorError> {
        self.changeable(uid).await?;
        self.accounts.log_out_everywhere(uid).await?;
        self.audit.note(Some(by), Audited::SessionsEnded, uid, "").await;
        Ok(())
    }

    /// Refuses what is no account, or an operator's.
    async fn changeable(&self, uid: Uid) -> Result<(), OperatorError> {
        match self.directory.listed_account(uid).await? {
            Some(account) if account.operator => Err(OperatorError::IsOperator(uid)),
            Some(account) if !account.deleted => Ok(()),
            _ => Err(OperatorError::Unknown(uid)),
        }
    }
}
