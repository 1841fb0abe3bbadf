//! `tidemark user …`: what an operator does to accounts, also while servers run: on SQLite beside the one that has the files, which
//! notices within a second that sessions have ended.

use std::fmt::Display;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::ExitError;
use crate::app::{Accounts, Audit, Audited, OpenSignUpInvite};
use crate::boot::{BootError, Hinting, Storage, numbers_of_users};
use crate::config::Config;
use crate::domain::{Clock, Uid, normal_name};
use crate::store::Directory;

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
  tidemark user list --json                                 an object a line, for programs
  tidemark user disable \"Ann Lee\"
  tidemark user operator \"Ann Lee\" on                      shows her the pages under /admin";

/// A command for accounts, and the form of its output.
#[derive(Debug, Args)]
pub(super) struct User {
    #[command(subcommand)]
    what: What,
    /// Print JSON, an object a line
    #[arg(long, global = true)]
    json: bool,
}

/// Commands for accounts.
#[derive(Debug, Subcommand)]
enum What {
    /// Create an account and print its password
    Add {
        /// The account's name
        name: String,
        /// Take the first line of standard input as the password, and print none
        #[arg(long)]
        password_stdin: bool,
    },
    /// Create an invitation to sign up and print the path of its link, list the invitations made by this command, or end one
    Invite {
        /// How many accounts can be created with it
        #[arg(long, default_value_t = 1)]
        uses: u32,
        /// How many days it is valid
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=3_650))]
        days: u32,
        /// List open invitations: id, uses left and in all, and expiry
        #[arg(long, conflicts_with_all = ["uses", "days", "end"])]
        list: bool,
        /// End the invitation with this code, link or id
        #[arg(long, value_name = "CODE", conflicts_with_all = ["uses", "days"])]
        end: Option<String>,
    },
    /// Commands for existing accounts.
    #[command(flatten)]
    Existing(Existing),
}

/// Commands for existing accounts.
#[derive(Debug, Subcommand)]
enum Existing {
    /// List all accounts: uid, name, and whether it is disabled or deleted
    List,
    /// Give an account a new password, print it, and log it out everywhere
    ResetPassword {
        /// The account's name
        name: String,
    },
    /// Give an account another name; the old one stays reserved for a week
    Rename {
        /// The account's name
        name: String,
        /// The name that it gets
        new: String,
    },
    /// Show the pages under /admin to an account, or no longer
    Operator {
        /// The account's name
        name: String,
        /// on or off
        is: OnOff,
    },
    /// Disable an account, log it out everywhere, and end its invitations
    Disable {
        /// The account's name
        name: String,
    },
    /// Enable a disabled account
    Enable {
        /// The account's name
        name: String,
    },
    /// Delete an account permanently; asks for the name once more
    Delete {
        /// The account's name
        name: String,
        /// Delete without asking
        #[arg(long)]
        yes: bool,
    },
}

/// Whether something is so from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnOff {
    On,
    Off,
}

/// Where results go: lines of text, or of JSON.
#[derive(Clone, Copy)]
struct Out {
    json: bool,
}

impl Out {
    fn line(self, text: impl Display, object: Value) -> Result<(), ExitError> {
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{object}")?
        } else {
            writeln!(out, "{text}")?
        }
        Ok(())
    }
}

pub(super) async fn run(User { what, json }: User, config: &Config) -> Result<(), ExitError> {
    let out = Out { json };
    match what {
        What::Add { name, password_stdin } => {
            let password = if password_stdin { Some(first_line_of_input()?) } else { None };
            let storage = Storage::open_for_accounts(config).await?;
            let done = add(&name, password, &storage, config, out).await;
            storage.close().await.map_err(BootError::from)?;
            done
        }
        What::Invite { uses, days, list, end } => {
            let storage = Storage::open_for_accounts(config).await?;
            let accounts = storage.accounts(config, Clock::system());
            let done = match end {
                Some(named) => end_invite(&named, &accounts, out).await,
                None if list => list_invites(&accounts, out).await,
                None => invite(days * 24 * 60 * 60, uses, &accounts, out).await,
            };
            storage.close().await.map_err(BootError::from)?;
            done
        }
        What::Existing(Existing::Delete { name, yes: false }) if !is_repeated(&name)? => {
            Err(ExitError::failed("nothing was deleted: the typed name is not the account's"))
        }
        What::Existing(what) => change(what, config, out).await,
    }
}

/// Whether the operator writes the name once more.
fn is_repeated(name: &str) -> Result<bool, ExitError> {
    eprint!("This cannot be undone. Type the name {name:?} again to delete the account: ");
    Ok(normal_name(&first_line_of_input()?) == normal_name(name))
}

/// Without the end of the line.
fn first_line_of_input() -> Result<String, ExitError> {
    let mut line = String::new();
    io::stdin().lock().take(LONGEST_LINE).read_line(&mut line)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

async fn invite(seconds: u32, uses: u32, accounts: &Accounts, out: Out) -> Result<(), ExitError> {
    let made = accounts.invite(None, Some(seconds), Some(uses), None).await.map_err(ExitError::failed)?;
    let path = format!("/sign-up?invite={}", made.code.as_str());
    let expires_at = made.expires_at.to_rfc3339();
    out.line(
        &path,
        json!({ "id": made.id.to_string(), "path": path, "uses": made.uses, "expires_at": expires_at }),
    )
}

async fn list_invites(accounts: &Accounts, out: Out) -> Result<(), ExitError> {
    for OpenSignUpInvite { id, invite } in accounts.open_invites(None).await.map_err(ExitError::failed)? {
        let (left, uses, expires_at) = (invite.uses_left, invite.uses, invite.expires_at.to_rfc3339());
        out.line(
            format_args!("{id}\t{left} of {uses}\t{expires_at}"),
            json!({ "id": id.to_string(), "uses_left": left, "uses": uses, "expires_at": expires_at }),
        )?;
    }
    Ok(())
}

async fn end_invite(named: &str, accounts: &Accounts, out: Out) -> Result<(), ExitError> {
    match accounts.end_operators_invite(named).await.map_err(ExitError::failed)? {
        true => out.line("the invitation is ended", json!({ "ended": named })),
        false => Err(ExitError::failed(
            "there is no such invitation; `tidemark user invite --list` shows the open ones",
        )),
    }
}

async fn add(
    name: &str,
    given: Option<String>,
    storage: &Storage,
    config: &Config,
    out: Out,
) -> Result<(), ExitError> {
    let ids = numbers_of_users(config, storage).await?;
    let is_given = given.is_some();
    let made = storage.accounts(config, Clock::system()).add(name, given, &ids).await;
    ids.shutdown().await;
    let (uid, password) = made.map_err(ExitError::failed)?;
    Audit::new(Arc::clone(&storage.directory), Clock::system())
        .note(None, Audited::AccountAdded, uid, "")
        .await;
    match is_given {
        true => out.line(format_args!("{uid} is added"), json!({ "uid": uid.0 })),
        false => out.line(&password, json!({ "uid": uid.0, "password": password })),
    }
}

async fn change(what: Existing, config: &Config, out: Out) -> Result<(), ExitError> {
    let storage = Storage::open_for_accounts(config).await?;
    let hinting = Hinting::default();
    let accounts = match what {
        Existing::List | Existing::Enable { .. } | Existing::Operator { .. } => {
            storage.accounts(config, Clock::system())
        }
        Existing::ResetPassword { .. }
        | Existing::Rename { .. }
        | Existing::Disable { .. }
        | Existing::Delete { .. } => storage.accounts_among(config, Clock::system(), &hinting).await,
    };
    let audit = Audit::new(Arc::clone(&storage.directory), Clock::system());
    let done = carry_out(what, &accounts, &storage.directory, &audit, out).await;
    hinting.stop().await;
    storage.close().await.map_err(BootError::from)?;
    done
}

async fn carry_out(
    what: Existing,
    accounts: &Accounts,
    directory: &Directory,
    audit: &Audit,
    out: Out,
) -> Result<(), ExitError> {
    let is_now = |uid: Uid, state: &str| {
        out.line(format_args!("{uid} is {state}"), json!({ "uid": uid.0, "state": state }))
    };
    match what {
        Existing::List => list(accounts, out).await,
        Existing::ResetPassword { name } => {
            let (uid, password) = accounts.reset_password(&name).await.map_err(ExitError::failed)?;
            audit.note(None, Audited::PasswordReset, uid, "").await;
            out.line(&password, json!({ "password": password }))
        }
        Existing::Rename { name, new } => {
            let uid = accounts.rename_by_operator(&name, &new).await.map_err(ExitError::failed)?;
            audit.note(None, Audited::AccountRenamed, uid, "").await;
            is_now(uid, "renamed")
        }
        Existing::Operator { name, is } => {
            let on = is == OnOff::On;
            let uid = accounts.set_operator(&name, on).await.map_err(ExitError::failed)?;
            let what = if on { Audited::OperatorMade } else { Audited::OperatorEnded };
            audit.note(None, what, uid, "").await;
            is_now(uid, if on { "an operator" } else { "no operator" })
        }
        Existing::Disable { name } => {
            let uid = accounts.disable(&name).await.map_err(ExitError::failed)?;
            // Those into groups; invitations to sign up have ended with the account.
            directory.end_invites_of(uid, Clock::system().now()).await.map_err(ExitError::failed)?;
            audit.note(None, Audited::AccountLocked, uid, "").await;
            is_now(uid, "disabled")
        }
        Existing::Enable { name } => {
            let uid = accounts.enable(&name).await.map_err(ExitError::failed)?;
            audit.note(None, Audited::AccountUnlocked, uid, "").await;
            is_now(uid, "enabled")
        }
        Existing::Delete { name, .. } => {
            let uid = accounts.delete(&name).await.map_err(ExitError::failed)?;
            audit.note(None, Audited::AccountDeleted, uid, "").await;
            is_now(uid, "deleted")
        }
    }
}

async fn list(accounts: &Accounts, out: Out) -> Result<(), ExitError> {
    let mut after = Uid(0);
    loop {
        let page = accounts.list(after, PAGE).await.map_err(ExitError::failed)?;
        for account in &page {
            let (state, shown) = match account.deleted_at {
                Some(_) => ("deleted", "\tdeleted"),
                None if account.disabled => ("disabled", "\tdisabled"),
                None => ("enabled", ""),
            };
            out.line(
                format_args!("{}\t{}{shown}", account.uid, account.name),
                json!({ "uid": account.uid.0, "name": account.name, "state": state }),
            )?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.uid,
            _ => return Ok(()),
        }
    }
}
