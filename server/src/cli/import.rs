//! `tidemark import FILE`: fills an empty installation, or appends one user's rows to an inbox.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::{Fault, progress};
use crate::boot::{self, BootError, Storage};
use crate::config::Config;
use crate::domain::Uid;
use crate::store::sqlite::{SqliteAppend, SqliteRestore};
use crate::transfer::{self, Checked, Installation};

/// From where, and whose.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// A file that `tidemark export` wrote
    file: PathBuf,
    /// Append this user's rows alone, named as in the file or by uid
    #[arg(long, value_name = "NAME|UID", requires = "into")]
    user: Option<String>,
    /// To the inbox of this account
    #[arg(long, value_name = "UID", requires = "user")]
    into: Option<u32>,
}

pub(super) async fn run(what: Import, config: &Config) -> Result<(), Fault> {
    let storage = Storage::open(config).await?;
    let done = match (&what.user, what.into) {
        (Some(user), Some(into)) => one(&what.file, user, Uid(into), &storage, config).await,
        _ => whole(&what.file, &storage, config).await,
    };
    storage.close().await.map_err(BootError::from)?;
    println!("{}", done?);
    Ok(())
}

async fn whole(file: &Path, storage: &Storage, config: &Config) -> Result<String, Fault> {
    let bar = progress::bar();
    let checked = check(file, config, &bar)?;
    let mut restore = SqliteRestore::new(Arc::clone(storage.db()), config.storage.sqlite());
    let numbers = boot::sequencer(config).await?;
    let history = boot::new_history();
    let done = transfer::import(&mut restore, &*numbers, file, &checked, history, &bar).await;
    numbers.shutdown().await;
    bar.finish_and_clear();
    let stored = done.map_err(Fault::failed)?;
    let before = if stored > 0 { format!(", {stored} of them by an earlier run") } else { String::new() };
    Ok(format!("{} records imported{before}; the history is {history}", checked.records()))
}

async fn one(
    file: &Path,
    user: &str,
    into: Uid,
    storage: &Storage,
    config: &Config,
) -> Result<String, Fault> {
    if storage.directory.account(into).await.map_err(BootError::from)?.is_none() {
        return Err(Fault::failed(format!("there is no account {into}; `tidemark user list` shows them")));
    }
    let bar = progress::bar();
    let checked = check(file, config, &bar)?;
    let from = transfer::find_user(file, user).map_err(Fault::failed)?;
    let from = from.ok_or_else(|| Fault::failed(format!("{} holds no user {user:?}", file.display())))?;
    let append = SqliteAppend::open(Arc::clone(storage.db()), &config.storage.sqlite()).await;
    let mut append = append.map_err(BootError::from)?;
    let messages = storage.messages(config).await?;
    let numbers = boot::sequencer(config).await?;
    let directory = &*storage.directory;
    let installation =
        Installation { append: &mut append, store: &messages, directory, sequencer: &*numbers };
    let done = transfer::import_one(installation, file, &checked, (from, into), &bar).await;
    numbers.shutdown().await;
    crate::store::MessageStore::close(&messages).await;
    bar.finish_and_clear();
    let done = done.map_err(Fault::failed)?;
    Ok(format!(
        "{} rows of user {from} appended to {into}; {} were there already, {} left out (unknown people or groups)",
        done.stored, done.already, done.left_out
    ))
}

fn check(file: &Path, config: &Config, bar: &indicatif::ProgressBar) -> Result<Checked, Fault> {
    transfer::check(file, config.sequence.section_size, bar).map_err(Fault::failed)
}
