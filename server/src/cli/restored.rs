//! `tidemark restored`: to be run after files or a database were restored, before serving.

use std::path::Path;

use clap::Args;

use super::ExitError;
use crate::boot::{self, BootError, Storage};
use crate::config::{Config, DatabaseKind, MessageIds};
use crate::files::objects_of;
use crate::store::MessageStore;
use crate::store::sqlite::{rename_history, skip_ids};
use crate::transfer::backup::{Copied, restore_files};
use crate::transfer::{self, TransferError};

/// Files that are asked for at a time.
const PAGE: usize = 500;

const EXAMPLES: &str = "\
Examples, after restoring files or a database and before the first start:
  tidemark restored --data-dir /var/lib/tidemark
  tidemark restored --database-url postgres://tidemark@db.example.org/tidemark";

/// How far numbers go on beyond those in the files.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Restored {
    /// How many numbers of users, groups and invitations to skip: more than were given since the files were saved
    #[arg(long, value_name = "NUMBERS", default_value_t = transfer::AHEAD,
          value_parser = clap::value_parser!(u32).range(1..=transfer::MOST_AHEAD))]
    ahead: u32,
}

pub(super) async fn run(what: Restored, config: &Config) -> Result<(), ExitError> {
    if config.storage.database_url.kind() == DatabaseKind::Postgres {
        let history = boot::begin_another_life(config, what.ahead).await?;
        println!(
            "ids of messages skip ahead; users, groups and invitations skip {} numbers; the history is {history}",
            what.ahead
        );
        return Ok(());
    }
    println!("{}", renew_files(config, what.ahead, 0, None).await?);
    Ok(())
}

/// Makes restored files of SQLite good. Ceilings go on beyond `least`. With `backups`, the files of messages come from there. Returns what
/// was done.
pub(super) async fn renew_files(
    config: &Config,
    ahead: u32,
    least: u64,
    backups: Option<&Path>,
) -> Result<String, ExitError> {
    let storage = Storage::open_restored(config).await?;
    let done = async {
        let files = match backups {
            Some(backups) => files_from(backups, &storage, config).await?,
            None => String::new(),
        };
        Ok(renew(&storage, config, ahead, least).await? + &files)
    };
    let done = done.await;
    storage.close().await.map_err(BootError::from)?;
    done
}

/// Numbers first: the new history says that everything is in order.
async fn renew(storage: &Storage, config: &Config, ahead: u32, least: u64) -> Result<String, ExitError> {
    let ids_from = storage.check_message_ids(config).await?;
    let db = storage.sqlite()?;
    skip_ids(db, &config.storage.sqlite(), transfer::MARGIN).await.map_err(BootError::from)?;
    let messages = storage.messages(config).await?;
    let ceilings = match ids_from {
        MessageIds::Seqsvr => format!("{} ceilings and ", raise(storage, config, &*messages, least).await?),
        MessageIds::Store => String::new(),
    };
    boot::renew_stored_numbers(config, storage, &*messages, ahead).await?;
    let history = boot::new_history();
    rename_history(db, history).await.map_err(BootError::from)?;
    messages.close().await;
    Ok(format!(
        "{ceilings}the latest ids of all users raised by {}; users, groups and invitations skip {ahead} numbers; \
         links of earlier invitations no longer work; the history is {history}",
        transfer::MARGIN
    ))
}

/// Brings back the objects of all files that the database knows.
async fn files_from(backups: &Path, storage: &Storage, config: &Config) -> Result<String, ExitError> {
    let Some(directory) = boot::directory_of_files(config) else { return Ok(String::new()) };
    let (mut copied, mut after) = (Copied::default(), None);
    loop {
        let files = storage.directory.all_files(after, PAGE).await.map_err(BootError::from)?;
        let objects =
            files.iter().flat_map(|file| objects_of(file.facts.id, &file.segments, &file.facts.previews));
        let more = restore_files(backups, &directory, objects).map_err(ExitError::failed)?;
        copied.bytes += more.bytes;
        copied.missing += more.missing;
        after = match files.last() {
            Some(last) if files.len() == PAGE => Some(last.facts.id),
            _ => break,
        };
    }
    let missing = match copied.missing {
        0 => String::new(),
        missing => format!(", and {missing} parts are missing in {}", backups.display()),
    };
    Ok(format!("; {} MiB of files are back{missing}", copied.bytes >> 20))
}

/// Raises all ceilings as far as the latest ids, and lets them be ahead of those whatever they were.
async fn raise(
    storage: &Storage,
    config: &Config,
    messages: &dyn MessageStore,
    least: u64,
) -> Result<usize, ExitError> {
    let numbers = boot::sequencer(config).await?;
    let adjacent = config.sequence.section_size;
    let raised = async {
        let raised = transfer::raise_all(&*numbers, adjacent, least).await?;
        let latest =
            transfer::latest_ids(messages, &storage.directory, adjacent, transfer::Look::All).await?;
        transfer::overtake_rows(&*numbers, &latest).await?;
        Ok::<_, TransferError>(raised)
    };
    let raised = raised.await;
    numbers.shutdown().await;
    raised.map_err(ExitError::failed)
}
