//! `seqsvr store`: one replica of the durable state of a Set.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Fault, Signals, load};
use crate::arbiter::config::ArbiterConfig;
use crate::replica::{Replica, ServeError, Start, StoreConfig};
use crate::store::quorum::{Changed, Quorum};

/// The flags of the role, or a command about the stores of a Set.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    command: Option<StoreCommand>,
    /// The replica's configuration file
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    /// Make an empty replica: once, for a new Set
    #[arg(long, conflicts_with = "rejoin")]
    init: bool,
    /// With --init: do not ask the other replicas whether the Set is new. If it was ever in use, numbers can then be handed out twice
    #[arg(long, requires = "init")]
    without_peers: bool,
    /// Make an empty replica that waits until `seqsvr store replace` takes it in
    #[arg(long, conflicts_with_all = ["init", "rejoin"])]
    join: bool,
    /// Copy from the other replicas first: after the disk was lost, damaged, or put back from a copy
    #[arg(long)]
    rejoin: bool,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Puts a new store, which was started with --join, in the place of another, while the Set serves
    Replace(ReplaceArgs),
    /// Changes the lease of a Set, while it serves. A shorter one takes 1.1 times the earlier one until it is settled
    #[command(after_help = LEASE)]
    Lease(LeaseArgs),
}

const LEASE: &str = "\
Example:
  seqsvr store lease 3000 --config arbiter0.toml
Cut off, or failed: run it again. Afterwards write it into lease_ms of the AllocSvrs, or leave that key out: one that starts \
with another value serves nothing.";

/// The flags of `store lease`.
#[derive(Debug, Args)]
struct LeaseArgs {
    /// The lease, in milliseconds: 100 to 60,000
    #[arg(value_parser = clap::value_parser!(u64).range(100..=60_000))]
    milliseconds: u64,
    #[command(flatten)]
    stores: WhichStores,
}

/// How the stores are reached, and how to answer.
#[derive(Debug, Args)]
struct WhichStores {
    /// The configuration file of an arbiter of the Set: how the stores are reached
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Answer with JSON
    #[arg(long)]
    json: bool,
}

/// The flags of `store replace`.
#[derive(Debug, Args)]
struct ReplaceArgs {
    /// The name of the store that leaves, dead or alive
    old: String,
    /// Where the new one is reached, http://HOST:PORT or https://HOST:PORT
    new: String,
    #[command(flatten)]
    stores: WhichStores,
}

impl StoreArgs {
    /// It gives one answer and ends.
    pub(super) fn answers(&self) -> bool {
        self.command.is_some()
    }
}

impl WhichStores {
    fn quorum(&self) -> Result<Arc<Quorum>, Fault> {
        let config: ArbiterConfig = load(&self.config)?;
        let stores = config.stores.open(&config.cluster, config.set.number).map_err(Fault::usage)?;
        stores.quorum.ok_or_else(|| {
            Fault::usage("the stores of this Set are etcd: replace a member with etcdctl member")
        })
    }

    fn answer(&self, text: String, json: &Value) {
        println!("{}", if self.json { json.to_string() } else { text });
    }
}

/// Replaces a store. Cut off at any moment, it is to be run again.
async fn replace(args: ReplaceArgs) -> Result<(), Fault> {
    let quorum = args.stores.quorum()?;
    let Changed { configuration, already } =
        quorum.replace(&args.old, &args.new).await.map_err(Fault::failed)?;
    let members = || configuration.members.iter();
    let done = if already { "was replaced before" } else { "is replaced" };
    let shown: Vec<_> = members().map(|one| format!("{} at {}", one.name, one.addr)).collect();
    let text = format!("{} {done}; configuration {}: {}", args.old, configuration.number, shown.join(", "));
    let members: Vec<_> = members().map(|one| json!({ "name": one.name, "addr": one.addr })).collect();
    let (number, write) = (configuration.number, configuration.write);
    let json = json!({ "configuration": number, "write": write, "members": members, "already": already });
    args.stores.answer(text, &json);
    Ok(())
}

/// Changes the lease. Cut off at any moment, it is to be run again.
async fn lease(args: LeaseArgs) -> Result<(), Fault> {
    let wanted = Duration::from_millis(args.milliseconds);
    let Changed { configuration, already } =
        args.stores.quorum()?.set_lease(wanted).await.map_err(Fault::failed)?;
    let number = configuration.number;
    let done = if already { "was the lease before" } else { "is the lease from now on" };
    let text = format!(
        "{0} ms {done}; configuration {number}. Write lease_ms = {0} into the files of the AllocSvrs, or leave it out",
        args.milliseconds
    );
    let json = json!({ "configuration": number, "lease_ms": args.milliseconds, "already": already });
    args.stores.answer(text, &json);
    Ok(())
}

/// Serves until a signal ends it.
pub(super) async fn run(args: StoreArgs) -> Result<(), Fault> {
    match args.command {
        Some(StoreCommand::Replace(args)) => return replace(args).await,
        Some(StoreCommand::Lease(args)) => return lease(args).await,
        None => {}
    }
    let Some(file) = &args.config else { return Err(Fault::usage("say which file: --config FILE")) };
    let config: StoreConfig = load(file)?;
    let start = match args {
        StoreArgs { init: true, without_peers: true, .. } => Start::InitWithoutPeers,
        StoreArgs { init: true, .. } => Start::Init,
        StoreArgs { join: true, .. } => Start::Join,
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
