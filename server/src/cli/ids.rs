//! `tidemark ids`: changes the source of the ids of messages.

use clap::{Args, ValueEnum};

use super::ExitError;
use crate::boot::{self, BootError, Storage};
use crate::config::{Config, MessageIds};

/// The arguments of `tidemark ids`.
#[derive(Debug, Args)]
pub(super) struct IdsArguments {
    /// What assigns the ids of messages from the next start on
    #[arg(value_enum)]
    from: From,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    /// The database, in the transaction that stores the message
    Store,
    /// The sequence service
    Seqsvr,
}

pub(super) async fn run(what: IdsArguments, config: &Config) -> Result<(), ExitError> {
    boot::only_on_sqlite(config, "another source of ids than the database")?;
    let ids = match what.from {
        From::Store => MessageIds::Store,
        From::Seqsvr => MessageIds::Seqsvr,
    };
    let storage = Storage::open_existing(config).await?;
    let changed = storage.change_message_ids(ids).await;
    storage.close().await.map_err(BootError::from)?;
    changed?;
    let by = ids.as_str();
    println!(
        "the ids of messages come from \"{by}\" from now on; set [messages] ids to \"{by}\" or \"auto\""
    );
    Ok(())
}
