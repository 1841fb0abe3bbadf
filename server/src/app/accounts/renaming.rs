//! Changing the name of an account. Others see the new one; the old one stays reserved for as long as the name may not be changed again.

use std::time::Duration;

use super::rules::checked_name;
use super::{AccountError, Accounts, DAY_MS};
use crate::domain::{Timestamp, Uid, is_official, is_reserved};
use crate::notify::Hint;
use crate::store::{Renamed, StoreError};

/// Between two changes of a name by its owner, and for how long the old one is reserved, in milliseconds.
const RESTS: i64 = 7 * DAY_MS;

impl Accounts {
    /// Gives the account of `uid` another name, as its owner wishes, and returns it. The rules are those of signing up.
    ///
    /// # Errors
    /// When the name cannot be one, is not free, or was changed less than a week ago.
    pub async fn rename_own(&self, uid: Uid, name: &str) -> Result<String, AccountError> {
        if is_official(name) {
            return Err(AccountError::NameResembles);
        }
        let since = Timestamp(self.0.clock.now().0.saturating_sub(RESTS));
        self.rename(uid, name, Some(since)).await
    }

    /// Gives the account of this name another one, as an operator does, however lately it was changed.
    ///
    /// # Errors
    /// As [`rename_own`](Self::rename_own), but for the week.
    pub async fn rename_by_operator(&self, name: &str, new: &str) -> Result<Uid, AccountError> {
        let uid = self.known(name).await?.uid;
        self.rename(uid, new, None).await?;
        Ok(uid)
    }

    async fn rename(&self, uid: Uid, name: &str, since: Option<Timestamp>) -> Result<String, AccountError> {
        let name = checked_name(name)?;
        if is_reserved(&name) {
            return Err(AccountError::NameResembles);
        }
        let now = self.0.clock.now();
        match self.0.directory.rename(uid, &name, now, since).await? {
            Renamed::Done => {}
            Renamed::NameTaken => return Err(self.why_not(&name).await?),
            Renamed::TooSoon(last) => {
                let wait = last.0.saturating_add(RESTS).saturating_sub(now.0);
                return Err(AccountError::RenamedLately(Duration::from_millis(wait.max(0).cast_unsigned())));
            }
            Renamed::NoAccount => return Err(AccountError::NoAccount(uid)),
        }
        self.tell_changed(uid);
        Ok(name)
    }

    /// What others are shown of `uid` is another name or picture from now on: the other servers ask for it anew.
    pub(in crate::app) fn tell_changed(&self, uid: Uid) {
        self.tell(Hint::Renamed(uid));
    }

    /// The name of `uid` has changed, as another server says: memory does not know it any more.
    pub(in crate::app) fn forget_name(&self, uid: Uid) {
        self.0.directory.forget_names(Some(uid));
    }

    /// Frees names that were given up more than a week ago, of at most `limit` accounts. Says of how many.
    pub(super) async fn free_former_names(&self, limit: usize) -> Result<u64, StoreError> {
        let since = Timestamp(self.0.clock.now().0.saturating_sub(RESTS));
        self.0.directory.free_former_names(since, limit).await
    }

    /// When the account of `uid` was made: with the uid it names one account, also where a new installation gives the same uids.
    pub async fn made_at(&self, uid: Uid) -> Result<Option<Timestamp>, StoreError> {
        self.0.directory.made_at(uid).await
    }
}
