//! Deleting an account: the mark, and telling other servers of it. [`Deletions`](crate::app::Deletions) does the rest.

use super::{AccountError, Accounts, DAY_MS};
use crate::app::sessions::LiveSession;
use crate::domain::{Timestamp, Uid};
use crate::notify::Hint;
use crate::store::StoreError;

/// For how long after a change of a name or a deletion the name is dropped from memory again and again, in case nobody told of it, in
/// milliseconds.
const TOLD_FOR: i64 = DAY_MS / 24;

/// Changes of that time that are looked at by themselves; of more all names are dropped.
const MOST: usize = 1_000;

impl Accounts {
    /// Deletes the account of `session`, for good, if `password` is right. All its sessions end; their sockets close.
    pub async fn delete_own(&self, session: &LiveSession, password: String) -> Result<(), AccountError> {
        let checked = self.check_current(session, password).await?;
        let uid = session.uid;
        if !self.0.directory.delete_account(uid, Some(&checked), self.0.clock.now()).await? {
            return Err(AccountError::WrongPassword);
        }
        self.announce_deleted(uid);
        Ok(())
    }

    /// The directory has the mark: sessions end here and on other servers, and what follows begins.
    pub(super) fn announce_deleted(&self, uid: Uid) {
        self.end_all_here(uid);
        self.tell(Hint::SessionsEnded(uid));
    }

    /// All sessions of `uid` have ended in the directory; their sockets here close. The account may be deleted.
    pub(in crate::app) fn end_all_here(&self, uid: Uid) {
        self.0.directory.forget_names(Some(uid));
        self.0.sessions.end_all(uid);
        self.0.deleted.notify_one();
    }

    /// Anything may have happened on other servers: no name in memory counts.
    pub(in crate::app) fn forget_names(&self) {
        self.0.directory.forget_names(None);
        self.0.deleted.notify_one();
    }

    /// Drops the names of accounts that were renamed or deleted lately, by any process. Says which were renamed.
    pub(super) async fn forget_changed(&self) -> Result<Vec<Uid>, StoreError> {
        let since = Timestamp(self.0.clock.now().0.saturating_sub(TOLD_FOR));
        let renamed = self.0.directory.renamed_since(since, MOST).await?;
        self.forget_all(&renamed);
        let deleted = self.0.directory.deleted_since(since, MOST).await?;
        if !deleted.is_empty() {
            self.forget_all(&deleted);
            self.0.deleted.notify_one();
        }
        Ok(renamed)
    }

    fn forget_all(&self, uids: &[Uid]) {
        match uids.len() {
            MOST => self.0.directory.forget_names(None),
            _ => uids.iter().for_each(|uid| self.0.directory.forget_names(Some(*uid))),
        }
    }

    /// Waits until an account may have been deleted. One task asks.
    pub(in crate::app) async fn deleted(&self) {
        self.0.deleted.notified().await;
    }
}
