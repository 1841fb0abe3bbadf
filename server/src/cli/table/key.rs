//! `tidemark table key …`: access keys of tables. They can be made and revoked while servers run.

use std::io::Write as _;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::app::{NewAccessKey, create_access_key};
use crate::boot::{BootError, Storage};
use crate::cli::ExitError;
use crate::config::Config;
use crate::domain::{Clock, Uid};
use crate::store::{AccessKey, Directory};

/// Keys read at a time.
const PAGE: usize = 1_000;

pub(super) const EXAMPLES: &str = "\
Examples:
  tidemark table key create --instance shop               a key that reads and writes the tables of `shop`
  tidemark table key create --instance shop --read-only   one that only reads
  tidemark table key create --instance bots --inbox 10001 one that also reads all inboxes, and writes into them as the user 10001
  tidemark table key list
  tidemark table key revoke TIDE0123456789abcdefghij";

/// Commands for access keys.
#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Create a key and print it; its secret is never shown again
    Create(Create),
    /// List all keys, without their secrets
    List {
        /// Print JSON, one object a line
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key: within a second every server refuses it
    Revoke {
        /// The key's id
        access_key_id: String,
    },
}

/// The key to make.
#[derive(Debug, Args)]
pub(super) struct Create {
    /// The instance whose tables it opens: 3 to 16 letters, digits and hyphens, a letter first; it need not exist before
    #[arg(long, value_name = "NAME")]
    instance: String,
    /// Allow only reading
    #[arg(long)]
    read_only: bool,
    /// Open the chat's inboxes, too, as the table `inbox`; rows that it writes there are sent by this user
    #[arg(long, value_name = "UID")]
    inbox: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(what: KeyCommand, config: &Config) -> Result<(), ExitError> {
    let storage = Storage::open_for_access_keys(config).await?;
    let done = carry_out(what, &storage).await;
    storage.close().await.map_err(BootError::from)?;
    done
}

async fn carry_out(what: KeyCommand, storage: &Storage) -> Result<(), ExitError> {
    let keys = &*storage.directory;
    match what {
        KeyCommand::Create(Create { instance, read_only, inbox, json }) => {
            let new = NewAccessKey { instance, may_write: !read_only, inbox: inbox.map(Uid) };
            let made = create_access_key(new, keys, &Clock::system()).await;
            show_new(&made.map_err(ExitError::failed)?, json);
            Ok(())
        }
        KeyCommand::List { json } => list(keys, json).await,
        KeyCommand::Revoke { access_key_id } => {
            if keys.remove_access_key(&access_key_id).await.map_err(ExitError::failed)? {
                println!("{access_key_id} is revoked");
                return Ok(());
            }
            Err(ExitError::failed(format!(
                "there is no access key {access_key_id}; `tidemark table key list` shows them"
            )))
        }
    }
}

fn show_new(key: &AccessKey, json: bool) {
    if json {
        let shown = json!({
            "instance": key.instance, "access_key_id": key.id, "access_key_secret": key.secret,
        });
        println!("{shown}");
        return;
    }
    println!("instance           {}", key.instance);
    println!("access key id      {}", key.id);
    println!("access key secret  {}", key.secret);
    eprintln!("The secret is not shown again.");
}

async fn list(keys: &Directory, json: bool) -> Result<(), ExitError> {
    let mut out = std::io::stdout().lock();
    let mut after = String::new();
    loop {
        let page = keys.access_keys(&after, PAGE).await.map_err(ExitError::failed)?;
        for key in &page {
            let inbox = key.inbox.map(|uid| uid.0);
            let created_at = key.created_at.to_rfc3339();
            if json {
                let shown = json!({
                    "access_key_id": key.id, "instance": key.instance, "read_only": !key.may_write,
                    "inbox": inbox, "created_at": created_at,
                });
                writeln!(out, "{shown}")?;
                continue;
            }
            let rights = if key.may_write { "read and write" } else { "read only" };
            let inbox = inbox.map(|uid| format!("\tinboxes as {uid}")).unwrap_or_default();
            writeln!(out, "{}\t{}\t{rights}\t{created_at}{inbox}", key.id, key.instance)?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after.clone_from(&last.id),
            _ => return Ok(()),
        }
    }
}
