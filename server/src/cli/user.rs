//! `tidemark user …`: what an operator does to accounts, also while servers run: on SQLite beside the one that has the files, which
//! notices within a second that sessions have ended.

use std::io::{self, BufRead as _, Read as _, Write as _};

use clap::Subcommand;

use super::ExitError;
use crate::app::{Accounts, OpenSignUpInvite};
use crate::boot::{BootError, Hinting, Storage, numbers_of_users};
use crate::config::Config;
use crate::domain::{Clock, Uid};
use crate::store::Invites;

/// Accounts read at a time.
const PAGE: usize = 1_000;

/// Bytes of standard input that a password or a name is looked for in; the longest are shorter.
const LONGEST_LINE: u64 = 4_096;

pub(super) const EXAMPLES: &str = "\
Examples:
  tidemark user add \"Ann Lee\"                              prints her password
  pass show ann | tidemark user add \"Ann Lee\" --password-stdin
  tidemark user invite --uses 20 --days 3                   prints the path of a link to sign up
  tidemark user invite --list
  tidemark user disable \"Ann Lee\"";

/// What to do to accounts.
#[derive(Debug, Subcommand)]
pub(super) enum User {
    /// Make an account and print its password
    Add {
        /// The account's name
        name: String,
        /// Take the first line of standard input as the password, and print none
        #[arg(long)]
        password_stdin: bool,
    },
    /// Make an invitation to sign up and print the path of its link; list those that were made so, or end one
    Invite {
        /// How many accounts may be made by it
        #[arg(long, default_value_t = 1)]
        uses: u32,
        /// For how many days it is good
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=3_650))]
        days: u32,
        /// List what is open: id, uses left of how many, and until when
        #[arg(long, conflicts_with_all = ["uses", "days", "end"])]
        list: bool,
        /// End the one with this code, link or id
        #[arg(long, value_name = "CODE", conflicts_with_all = ["uses", "days"])]
        end: Option<String>,
    },
    /// What is done to accounts that are there.
    #[command(flatten)]
    Existing(Existing),
}

/// What to do to accounts that are there.
#[derive(Debug, Subcommand)]
pub(super) enum Existing {
    /// List all accounts: uid, name, and whether it is disabled or deleted
    List,
    /// Give an account a new password, print it, and log it out everywhere
    ResetPassword {
        /// The account's name
        name: String,
    },
    /// Shut an account, log it out everywhere, and end the invitations that it has made
    Disable {
        /// The account's name
        name: String,
    },
    /// Open a disabled account again
    Enable {
        /// The account's name
        name: String,
    },
    /// Delete an account for good; asks for the name once more
    Delete {
        /// The account's name
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub(super) async fn run(what: User, config: &Config) -> Result<(), ExitError> {
    match what {
        User::Add { name, password_stdin } => {
            let password = if password_stdin { Some(first_line_of_input()?) } else { None };
            let storage = Storage::open_for_accounts(config).await?;
            let done = add(&name, password, &storage, config).await;
            storage.close().await.map_err(BootError::from)?;
            done
        }
        User::Invite { uses, days, list, end } => {
            let storage = Storage::open_for_accounts(config).await?;
            let accounts = storage.accounts(config, Clock::system());
            let done = match end {
                Some(named) => end_invite(&named, &accounts).await,
                None if list => list_invites(&accounts).await,
                None => invite(days * 24 * 60 * 60, uses, &accounts).await,
            };
            storage.close().await.map_err(BootError::from)?;
            done
        }
        User::Existing(Existing::Delete { name, yes: false }) if !is_repeated(&name)? => {
            Err(ExitError::failed("nothing is deleted: the name was not repeated"))
        }
        User::Existing(what) => change(what, config).await,
    }
}

/// Whether the operator writes the name once more.
fn is_repeated(name: &str) -> Result<bool, ExitError> {
    eprint!("This cannot be undone. Type the name {name:?} again to delete the account: ");
    Ok(first_line_of_input()?.trim() == name.trim())
}

/// Without the end of the line.
fn first_line_of_input() -> Result<String, ExitError> {
    let mut line = String::new();
    io::stdin().lock().take(LONGEST_LINE).read_line(&mut line)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

async fn invite(seconds: u32, uses: u32, accounts: &Accounts) -> Result<(), ExitError> {
    let made = accounts.invite(None, Some(seconds), Some(uses), None).await.map_err(ExitError::failed)?;
    println!("/sign-up?invite={}", made.code.as_str());
    Ok(())
}

async fn list_invites(accounts: &Accounts) -> Result<(), ExitError> {
    let mut out = io::stdout().lock();
    for OpenSignUpInvite { id, invite } in accounts.open_invites(None).await.map_err(ExitError::failed)? {
        writeln!(out, "{id}\t{} of {}\t{}", invite.uses_left, invite.uses, invite.expires_at.to_rfc3339())?;
    }
    Ok(())
}

async fn end_invite(named: &str, accounts: &Accounts) -> Result<(), ExitError> {
    match accounts.end_operators_invite(named).await.map_err(ExitError::failed)? {
        true => {
            println!("the invitation is ended");
            Ok(())
        }
        false => Err(ExitError::failed(
            "there is no such invitation of yours; `tidemark user invite --list` shows them",
        )),
    }
}

async fn add(name: &str, given: Option<String>, storage: &Storage, config: &Config) -> Result<(), ExitError> {
    let ids = numbers_of_users(config, storage).await?;
    let is_given = given.is_some();
    let made = storage.accounts(config, Clock::system()).add(name, given, &ids).await;
    ids.shutdown().await;
    let (uid, password) = made.map_err(ExitError::failed)?;
    match is_given {
        true => println!("{uid} is added"),
        false => println!("{password}"),
    }
    Ok(())
}

async fn change(what: Existing, config: &Config) -> Result<(), ExitError> {
    let storage = Storage::open_for_accounts(config).await?;
    let hinting = Hinting::default();
    let accounts = match what {
        Existing::List | Existing::Enable { .. } => storage.accounts(config, Clock::system()),
        Existing::ResetPassword { .. } | Existing::Disable { .. } | Existing::Delete { .. } => {
            storage.accounts_among(config, Clock::system(), &hinting).await
        }
    };
    let done = carry_out(what, &accounts, &*storage.invites).await;
    hinting.stop().await;
    storage.close().await.map_err(BootError::from)?;
    done
}

async fn carry_out(what: Existing, accounts: &Accounts, invites: &dyn Invites) -> Result<(), ExitError> {
    match what {
        Existing::List => list(accounts).await,
        Existing::ResetPassword { name } => {
            let password = accounts.reset_password(&name).await.map_err(ExitError::failed)?;
            println!("{password}");
            Ok(())
        }
        Existing::Disable { name } => {
            let uid = accounts.disable(&name).await.map_err(ExitError::failed)?;
            // Those into groups; invitations to sign up have ended with the account.
            invites.end_invites_of(uid, Clock::system().now()).await.map_err(ExitError::failed)?;
            println!("{uid} is disabled");
            Ok(())
        }
        Existing::Enable { name } => {
            let uid = accounts.enable(&name).await.map_err(ExitError::failed)?;
            println!("{uid} is enabled");
            Ok(())
        }
        Existing::Delete { name, .. } => {
            let uid = accounts.delete(&name).await.map_err(ExitError::failed)?;
            println!("{uid} is deleted");
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
            let state = match account.deleted_at {
                Some(_) => "\tdeleted",
                None if account.disabled => "\tdisabled",
                None => "",
            };
            writeln!(out, "{}\t{}{state}", account.uid, account.name)?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.uid,
            _ => return Ok(()),
        }
    }
}
