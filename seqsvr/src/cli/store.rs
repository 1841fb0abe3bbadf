//! `seqsvr store`: one replica of the durable state of a Set.

use std::path::PathBuf;

use clap::Args;

use super::{Fault, Signals, load};
use crate::replica::{Replica, ServeError, Start, StoreConfig};

/// The flags of the role.
#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    /// The replica's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Make an empty replica: once, for a new Set
    #[arg(long, conflicts_with = "rejoin")]
    init: bool,
    /// With --init: do not ask the other replicas whether the Set is new. If it was ever in use, numbers can then be handed out twice
    #[arg(long, requires = "init")]
    without_peers: bool,
    /// Copy from the other replicas first: after the disk was lost, damaged, or put back from a copy
    #[arg(long)]
    rejoin: bool,
}

/// Serves until a signal ends it.
pub(super) async fn run(args: StoreArgs) -> Result<(), Fault> {
    let config: StoreConfig = load(&args.config)?;
    let start = match args {
        StoreArgs { init: true, without_peers: true, .. } => Start::InitWithoutPeers,
        StoreArgs { init: true, .. } => Start::Init,
        StoreArgs { rejoin: true, .. } => Start::Rejoin,
        _ => Start::Open,
    };
    let mut signals = Signals::listen()?;
    let replica = tokio::select! {
        replica = Replica::open(config, start) => replica?,
        () = signals.next() => return Ok(()),
    };
    println!("listening on {}", replica.address()?);
    replica.serve(async move { signals.next().await }).await?;
    Ok(())
}

impl From<ServeError> for Fault {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Config(_) | ServeError::Connections(_) | ServeError::Security(_) => {
                Self::usage(error)
            }
            _ => Self::failed(error),
        }
    }
}
