//! `tidemark user …`: what an operator does to accounts: on SQLite while the server is stopped, on PostgreSQL also while
//! servers run.

use std::io::Write as _;

use clap::Subcommand;

use super::ExitError;
use crate::app::Accounts;
use crate::boot::{BootError, Hinting, Storage};
use crate::config::Config;
use crate::domain::{Clock, Uid};

/// Accounts read at a time.
const PAGE: usize = 1_000;

/// What to do to accounts.
#[derive(Debug, Subcommand)]
pub(super) enum User {
    /// List all accounts: uid, name, and whether it is disabled
    List,
    /// Give an account a new password, print it, and log it out everywhere
    ResetPassword {
        /// The account's name
        name: String,
    },
    /// Shut an account and log it out everywhere
    Disable {
        /// The account's name
        name: String,
    },
    /// Open a disabled account again
    Enable {
        /// The account's name
        name: String,
    },
}

pub(super) async fn run(what: User, config: &Config) -> Result<(), ExitError> {
    let storage = Storage::open_existing(config).await?;
    let hinting = Hinting::default();
    let accounts = match what {
        User::List | User::Enable { .. } => storage.accounts(config, Clock::system()),
        User::ResetPassword { .. } | User::Disable { .. } => {
            storage.accounts_among(config, Clock::system(), &hinting).await
        }
    };
    let done = carry_out(what, &accounts).await;
    hinting.stop().await;
    storage.close().await.map_err(BootError::from)?;
    done
}

async fn carry_out(what: User, accounts: &Accounts) -> Result<(), ExitError> {
    match what {
        User::List => list(accounts).await,
        User::ResetPassword { name } => {
            let password = accounts.reset_password(&name).await.map_err(ExitError::failed)?;
            println!("{password}");
            Ok(())
        }
        User::Disable { name } => {
            let uid = accounts.disable(&name).await.map_err(ExitError::failed)?;
            println!("{uid} is disabled");
            Ok(())
        }
        User::Enable { name } => {
            let uid = accounts.enable(&name).await.map_err(ExitError::failed)?;
            println!("{uid} is enabled");
            Ok(())
        }
    }
}

async fn list(accounts: &Accounts) -> Result<(), ExitError> {
    let mut out = std::io::stdout().lock();
    let mut after = Uid(0);
    loop {
        let page = accounts.list(after, PAGE).await.map_err(ExitError::failed)?;
        for account in &page {
            let state = if account.disabled { "\tdisabled" } else { "" };
            writeln!(out, "{}\t{}{state}", account.uid, account.name)?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.uid,
            _ => return Ok(()),
        }
    }
}
