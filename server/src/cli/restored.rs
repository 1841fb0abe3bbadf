//! `tidemark restored`: to be run after files or a database were restored, before serving.

use clap::Args;
use seqsvr_core::Sequencer;

use super::ExitError;
use crate::boot::{self, BootError, Storage};
use crate::config::{Config, DatabaseKind};
use crate::store::MessageStore;
use crate::store::sqlite::rename_history;
use crate::transfer;

const WHAT: &str = "`tidemark restored`";

/// How far numbers go on beyond those in the files.
#[derive(Debug, Args)]
pub(super) struct Restored {
    /// Skip so many numbers of users, groups and invitations: more than were given since the files were saved
    #[arg(long, value_name = "NUMBERS", default_value_t = transfer::AHEAD,
          value_parser = clap::value_parser!(u32).range(1..=transfer::MOST_AHEAD))]
    ahead: u32,
}

pub(super) async fn run(what: Restored, config: &Config) -> Result<(), ExitError> {
    if config.storage.database_url.kind() == DatabaseKind::Postgres {
        let history = boot::begin_another_life(config, what.ahead).await?;
        println!(
            "ids of messages go on further on; users, groups and invitations go on {} numbers later; the history is {history}",
            what.ahead
        );
        return Ok(());
    }
    boot::only_with_sequences(config, WHAT)?;
    let storage = Storage::open_restored(config).await?;
    let done = renew(&storage, config, what.ahead).await;
    storage.close().await.map_err(BootError::from)?;
    println!("{}", done?);
    Ok(())
}

/// Numbers first: the new history says that everything is in order.
async fn renew(storage: &Storage, config: &Config, ahead: u32) -> Result<String, ExitError> {
    let db = storage.with_sequences(config).await?;
    let messages = storage.messages(config).await?;
    let numbers = boot::sequencer(config).await?;
    let raised = raise(storage, config, &*messages, &*numbers).await;
    numbers.shutdown().await;
    let raised = raised.map_err(ExitError::failed)?;
    boot::renew_stored_numbers(config, storage, &*messages, ahead).await?;
    let history = boot::new_history();
    rename_history(db, history).await.map_err(BootError::from)?;
    messages.close().await;
    Ok(format!(
        "{raised} ceilings raised by {}; users, groups and invitations go on {ahead} numbers later; \
         links of earlier invitations have ended; the history is {history}",
        transfer::MARGIN
    ))
}

/// The margin counts from the latest ids, should the sequence be behind them.
async fn raise(
    storage: &Storage,
    config: &Config,
    messages: &dyn MessageStore,
    numbers: &dyn Sequencer,
) -> Result<usize, transfer::TransferError> {
    let adjacent = config.sequence.section_size;
    let latest = transfer::latest_ids(messages, &*storage.directory, adjacent, transfer::Look::All).await?;
    transfer::overtake_rows(numbers, &latest).await?;
    transfer::raise_all(numbers, adjacent).await
}
