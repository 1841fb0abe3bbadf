//! `tidemark restored`: to be run after files or a database were put back, before serving.

use super::Fault;
use crate::boot::{self, BootError, Storage};
use crate::config::Config;
use crate::store::sqlite::rename_history;
use crate::transfer;

pub(super) async fn run(config: &Config) -> Result<(), Fault> {
    let storage = Storage::open(config).await?;
    let done = renew(&storage, config).await;
    storage.close().await.map_err(BootError::from)?;
    println!("{}", done?);
    Ok(())
}

/// Ceilings first: the new history says that everything is in order.
async fn renew(storage: &Storage, config: &Config) -> Result<String, Fault> {
    let numbers = boot::sequencer(config).await?;
    let raised = transfer::raise_all(&*numbers, config.sequence.section_size).await;
    numbers.shutdown().await;
    let raised = raised.map_err(Fault::failed)?;
    let history = boot::new_history();
    rename_history(storage.db(), history).await.map_err(BootError::from)?;
    Ok(format!("{raised} ceilings raised by {}; the history is {history}", transfer::MARGIN))
}
