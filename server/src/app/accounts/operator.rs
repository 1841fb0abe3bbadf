//! What an operator does to accounts: `tidemark user`. The sessions that it ends end on running servers, too.

use super::{AccountError, Accounts};
use crate::app::tokens::Token;
use crate::domain::Uid;
use crate::store::{Account, StoreError};

impl Accounts {
    /// All accounts after `after`, by uid, at most `limit`: for the operator.
    pub async fn list(&self, after: Uid, limit: usize) -> Result<Vec<Account>, StoreError> {
        self.0.directory.accounts(after, limit).await
    }

    /// Gives the account a password made at random, ends its sessions, and returns the password.
    pub async fn reset_password(&self, name: &str) -> Result<String, AccountError> {
        let account = self.known(name).await?;
        // 80 bits: enough behind argon2, short enough to be read out.
        let password = Token::random(&mut rand::rng()).as_str()[..20].to_owned();
        let hash = self.0.passwords.hash(password.clone()).await?;
        self.0.directory.set_password(account.uid, &hash).await?;
        self.log_out_everywhere(account.uid).await?;
        Ok(password)
    }

    /// Shuts the account and ends its sessions; its sockets close.
    pub async fn disable(&self, name: &str) -> Result<Uid, AccountError> {
        let account = self.known(name).await?;
        self.0.directory.set_disabled(account.uid, true).await?;
        self.log_out_everywhere(account.uid).await?;
        Ok(account.uid)
    }

    /// Opens the account again.
    pub async fn enable(&self, name: &str) -> Result<Uid, AccountError> {
        let account = self.known(name).await?;
        self.0.directory.set_disabled(account.uid, false).await?;
        Ok(account.uid)
    }

    async fn known(&self, name: &str) -> Result<Account, AccountError> {
        let account = self.0.directory.account_by_name(name.trim()).await?;
        account.ok_or_else(|| AccountError::Unknown(name.trim().to_owned()))
    }
}
