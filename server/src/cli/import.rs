//! `tidemark import FILE`: fills an empty installation, or appends one user's rows to an inbox.

use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;

use super::{ExitError, progress};
use crate::boot::{self, BootError, Storage};
use crate::config::{Config, MessageIds};
use crate::domain::{Clock, HistoryId, Uid};
use crate::seq::{Sequences, StoredNumbers};
use crate::transfer::{self, Checked, Filling, Installation};

/// Files that are looked for at a time.
const PAGE: usize = 500;

const EXAMPLES: &str = "\
Examples:
  tidemark import today.jsonl --data-dir /var/lib/tidemark        into an empty directory; continues if interrupted
  tidemark import today.jsonl --user \"Ann Lee\" --into 10007      the rows of one user";

/// From where, and whose.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Import {
    /// A file that `tidemark export` wrote
    file: PathBuf,
    /// Append only the rows of this user, by name or uid in the file
    #[arg(long, value_name = "NAME|UID", requires = "into")]
    user: Option<String>,
    /// The uid of the account that gets these rows
    #[arg(long, value_name = "UID", requires = "user")]
    into: Option<u32>,
    /// How many numbers of users, groups and invitations to skip: more than were given since the export
    #[arg(long, value_name = "NUMBERS", default_value_t = transfer::AHEAD, conflicts_with = "user",
          value_parser = clap::value_parser!(u32).range(1..=transfer::MOST_AHEAD))]
    ahead: u32,
}

pub(super) async fn run(what: Import, config: &Config) -> Result<(), ExitError> {
    let (storage, done) = match (&what.user, what.into) {
        (Some(user), Some(into)) => {
            let storage = Storage::open_existing(config).await?;
            let done = one(&what.file, user, Uid(into), &storage, config).await;
            (storage, done)
        }
        _ => {
            let bar = progress::bar();
            // Where nothing is yet, a bad file leaves nothing behind; elsewhere the lock comes before the long check.
            let (storage, checked) = if boot::is_installed(config).await? {
                (Storage::open(config).await?, check(&what.file, config, &bar)?)
            } else {
                let checked = check(&what.file, config, &bar)?;
                (Storage::open(config).await?, checked)
            };
            let done = whole(&what, &checked, &storage, config, &bar).await;
            bar.finish_and_clear();
            (storage, done)
        }
    };
    storage.close().await.map_err(BootError::from)?;
    println!("{}", done?);
    Ok(())
}

async fn whole(
    what: &Import,
    checked: &Checked,
    storage: &Storage,
    config: &Config,
    bar: &ProgressBar,
) -> Result<String, ExitError> {
    let sequences = sequences(storage, config).await?;
    let done = fill(what, checked, sequences.as_ref(), (storage, config), bar).await;
    if let Some(sequences) = sequences {
        sequences.shutdown().await;
    }
    let (stored, history) = done?;
    let before = if stored > 0 { format!(", {stored} of them by an earlier run") } else { String::new() };
    let files = of_files(checked, storage, config).await?;
    Ok(format!("{} records imported{before}{files}; the history is {history}", checked.records()))
}

/// What is to be said of files.
async fn of_files(checked: &Checked, storage: &Storage, config: &Config) -> Result<String, ExitError> {
    if checked.files() == 0 {
        return Ok(String::new());
    }
    let place = boot::files_place(config)?;
    let (mut lacking, mut after) = (0, None);
    loop {
        let files = storage.directory.all_files(after, PAGE).await.map_err(BootError::from)?;
        for file in &files {
            let is_there = place.has_all(file.facts.id, &file.segments, &file.facts.previews).await;
            lacking +=
                u64::from(!is_there.map_err(|why| ExitError::failed(format!("[files] store: {why}")))?);
        }
        after = files.last().map(|file| file.facts.id);
        if files.len() < PAGE {
            break;
        }
    }
    Ok(match (lacking, checked.has_file_bytes()) {
        (0, _) => format!("; all {} files are there", checked.files()),
        (_, true) => format!("; {lacking} of {} files are gone, as they were at the export", checked.files()),
        (_, false) => format!(
            "; {lacking} of {} files are not in `[files] store`: copy the old directory or bucket there",
            checked.files()
        ),
    })
}

/// The sequences, unless the database assigns the ids.
async fn sequences(storage: &Storage, config: &Config) -> Result<Option<Sequences>, BootError> {
    match storage.check_message_ids(config).await? {
        MessageIds::Seqsvr => Ok(Some(boot::sequencer(config).await?)),
        MessageIds::Store => Ok(None),
    }
}

/// Numbers come before rows, and only into an installation that takes the file.
async fn fill(
    what: &Import,
    checked: &Checked,
    sequences: Option<&Sequences>,
    (storage, config): (&Storage, &Config),
    bar: &ProgressBar,
) -> Result<(u64, HistoryId), ExitError> {
    let alone = storage.keep_servers_away(config).await?;
    let mut import = storage.import()?;
    transfer::begin(&mut *import, checked).await.map_err(ExitError::failed)?;
    let (uid, gid) = checked.largest();
    let known = StoredNumbers { uid: uid.0, gid: gid.0, invite: 0 };
    boot::renew_numbers(config, storage, known, what.ahead).await?;
    let history = boot::new_history();
    let sequencer = sequences.map(|sequences| &**sequences);
    let files = boot::files_place(config)?;
    let filling = Filling { into: &mut *import, sequencer, files: &files };
    let stored = transfer::import(filling, &what.file, checked, history, bar).await;
    if let Some(alone) = alone {
        alone.end().await;
    }
    Ok((stored.map_err(ExitError::failed)?, history))
}

async fn one(
    file: &Path,
    user: &str,
    into: Uid,
    storage: &Storage,
    config: &Config,
) -> Result<String, ExitError> {
    let sequences = sequences(storage, config).await?;
    match storage.directory.account(into).await.map_err(BootError::from)? {
        None => {
            return Err(ExitError::failed(format!(
                "there is no account {into}; `tidemark user list` shows them"
            )));
        }
        Some(account) if account.deleted_at.is_some() => {
            return Err(ExitError::failed(format!(
                "the account {into} is deleted; its rows do not come back, import them into another account"
            )));
        }
        Some(_) => {}
    }
    let bar = progress::bar();
    let checked = check(file, config, &bar)?;
    let from = transfer::find_user(file, user).map_err(ExitError::failed)?;
    let from = from.ok_or_else(|| ExitError::failed(format!("{} holds no user {user:?}", file.display())))?;
    let mut append = storage.inbox_import(config).await?;
    let messages = storage.messages(config).await?;
    let (directory, sequencer) = (&*storage.directory, sequences.as_deref());
    let (files, clock) = (boot::files_place(config)?, Clock::system());
    let installation = Installation {
        append: &mut *append,
        store: &*messages,
        directory,
        sequencer,
        files: &files,
        clock: &clock,
    };
    let done = transfer::import_one(installation, file, &checked, (from, into), &bar).await;
    if let Some(sequences) = sequences {
        sequences.shutdown().await;
    }
    drop(append);
    messages.close().await;
    bar.finish_and_clear();
    let done = done.map_err(ExitError::failed)?;
    let files = match (done.files, done.files_gone) {
        (0, 0) => String::new(),
        (came, 0) => format!("; {came} files came along"),
        (came, gone) => format!("; {came} files came along, {gone} are neither here nor in the export"),
    };
    Ok(format!(
        "{} rows of user {from} appended to {into}; {} were there already, {} left out (unknown people or groups){files}",
        done.stored, done.already, done.left_out
    ))
}

fn check(file: &Path, config: &Config, bar: &ProgressBar) -> Result<Checked, ExitError> {
    transfer::check(file, config.sequence.section_size, bar).map_err(ExitError::failed)
}
