//! The operator's changes to accounts: `tidemark user`. The sessions that it ends end on running servers, too.

use super::{AccountError, Accounts};
use crate::app::tokens::Token;
use crate::domain::{Uid, normal_name};
use crate::seq::Ids;
use crate::store::{Account, StoreError};

impl Accounts {
    /// All accounts after `after`, by uid, at most `limit`: for the operator.
    pub async fn list(&self, after: Uid, limit: usize) -> Result<Vec<Account>, StoreError> {
        self.0.directory.accounts(after, limit).await
    }

    /// Makes an account under a uid of `ids`, whether sign-up is open or not, and returns its password: the one that is given, or one
    /// made at random.
    pub async fn add(
        &self,
        name: &str,
        password: Option<String>,
        ids: &Ids,
    ) -> Result<(Uid, String), AccountError> {
        let password = password.unwrap_or_else(random_password);
        let account = self.new_account(name, password.clone()).await?;
        let uid = ids.uid().await?;
        match self.0.directory.create_account(uid, account, None).await? {
            true => Ok((uid, password)),
            false => Err(self.why_not(name).await?),
        }
    }

    /// Makes the account an operator's, which the pages under `/admin` are shown to, or no longer.
    pub async fn set_operator(&self, name: &str, operator: bool) -> Result<Uid, AccountError> {
        let uid = self.known(name).await?.uid;
        self.0.directory.set_operator(uid, operator).await?;
        Ok(uid)
    }

    /// Locks the account of `uid` and ends its sessions; its sockets close.
    pub(in crate::app) async fn lock(&self, uid: Uid) -> Result<(), StoreError> {
        self.0.directory.set_disabled(uid, true).await?;
        self.log_out_everywhere(uid).await
    }

    /// Unlocks it.
    pub(in crate::app) async fn unlock(&self, uid: Uid) -> Result<(), StoreError> {
        self.0.directory.set_disabled(uid, false).await.map(drop)
    }

    /// Gives the account a password made at random, ends its sessions, and returns its uid and the password.
    pub async fn reset_password(&self, name: &str) -> Result<(Uid, String), AccountError> {
        let account = self.known(name).await?;
        let password = random_password();
        let hash = self.0.passwords.hash(password.clone()).await?;
        self.0.directory.set_password(account.uid, &hash).await?;
        self.log_out_everywhere(account.uid).await?;
        Ok((account.uid, password))
    }

    /// Locks the account and ends its sessions; its sockets close.
    pub async fn disable(&self, name: &str) -> Result<Uid, AccountError> {
        let uid = self.known(name).await?.uid;
        self.lock(uid).await?;
        Ok(uid)
    }

    /// Opens the account again.
    pub async fn enable(&self, name: &str) -> Result<Uid, AccountError> {
        let uid = self.known(name).await?.uid;
        self.unlock(uid).await?;
        Ok(uid)
    }

    /// Deletes the account, for good. Once more changes nothing.
    pub async fn delete(&self, name: &str) -> Result<Uid, AccountError> {
        match self.known(name).await {
            Ok(Account { uid, .. }) => {
                self.0.directory.delete_account(uid, None, self.0.clock.now()).await?;
                self.announce_deleted(uid);
                Ok(uid)
            }
            Err(AccountError::Deleted(name)) => {
                let account = self.0.directory.account_by_name(&name).await?;
                account.map(|account| account.uid).ok_or(AccountError::Unknown(name))
            }
            Err(error) => Err(error),
        }
    }

    /// The account of this name, if it is not deleted.
    pub(super) async fn known(&self, name: &str) -> Result<Account, AccountError> {
        let name = normal_name(name);
        match self.0.directory.account_by_name(&name).await? {
            Some(Account { deleted_at: Some(_), .. }) => Err(AccountError::Deleted(name)),
            Some(account) => Ok(account),
            None => Err(AccountError::Unknown(name)),
        }
    }
}

/// 80 bits: enough behind argon2, short enough to be read out.
fn random_password() -> String {
    Token::random(&mut rand::rng()).as_str()[..20].to_owned()
}
