//! `tidemark migrate`: brings the database and the files beside it up to date and does nothing else.

use super::ExitError;
use crate::boot::{self, BootError, Storage};
use crate::config::{Config, MessageIds};

pub(super) async fn run(config: &Config) -> Result<(), ExitError> {
    Storage::wait_for(config).await?;
    let storage = Storage::open(config).await?;
    storage.make_issuer_tables().await?;
    if config.message_ids() == MessageIds::Seqsvr {
        boot::sequencer(config).await?.shutdown().await;
    }
    storage.close().await.map_err(BootError::from)?;
    println!("the database is up to date");
    Ok(())
}
