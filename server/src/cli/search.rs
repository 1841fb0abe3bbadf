//! `tidemark search rebuild`: lets the server make the index of words anew, while it serves.

use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::time::{Instant, sleep};

use super::{ExitError, progress};
use crate::boot::{BootError, search_index_beside};
use crate::config::Config;
use crate::store::SearchIndex;
use crate::store::search::Rebuild;

pub(super) const EXAMPLES: &str = "\
Examples:
  tidemark search rebuild                       while the server serves; shows how far it is
  tidemark search rebuild --no-wait

Exit codes: 0 it is rebuilt, or will be; 1 no server does it; 2 wrong use.";

/// How often it looks how far the server is.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A server that runs begins within that, and says more at least as often.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command for the index of words.
#[derive(Debug, Args)]
pub(super) struct SearchArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make the index of words anew from the messages
    Rebuild {
        /// Ask for it and do not wait; it is done beside everything else, also by a server that starts later
        #[arg(long)]
        no_wait: bool,
    },
}

pub(super) async fn run(what: SearchArguments, config: &Config) -> Result<(), ExitError> {
    let What::Rebuild { no_wait } = what.what;
    let Some((index, storage)) = search_index_beside(config).await? else {
        println!("there is no index yet; a server makes it when it starts");
        return Ok(());
    };
    let asked = index.ask_rebuild().await.map_err(BootError::from)?;
    let outcome = if no_wait { Ok(()) } else { wait(&*index, asked).await };
    index.close().await;
    if let Some(storage) = storage {
        storage.close().await.map_err(BootError::from)?;
    }
    outcome?;
    println!("{}", if no_wait { "the index will be rebuilt" } else { "the index is rebuilt" });
    Ok(())
}

/// Waits until as many rebuilds are done.
async fn wait(index: &dyn SearchIndex, asked: u64) -> Result<(), ExitError> {
    let bar = progress::bar();
    bar.set_length(100);
    let (mut last, mut since) = (Rebuild::default(), Instant::now());
    loop {
        let now = index.rebuild().await.map_err(BootError::from)?;
        if now.walked >= asked {
            bar.finish_and_clear();
            return Ok(());
        }
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > PATIENCE {
            bar.finish_and_clear();
            return Err(ExitError::failed(
                "no server goes on with it; start one, and it is done then (or the one that runs has [search] index = false)",
            ));
        }
        bar.set_position(u64::from(now.share / 100));
        sleep(LOOK_EVERY).await;
    }
}
