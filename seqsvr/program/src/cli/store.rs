//! `seqsvr store`: one replica of the durable state of a Set.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;

use tidemark_process::Version;

use super::{ExitError, Signals, load};
use seqsvr_cluster::arbiter::config::ArbiterConfig;
use seqsvr_cluster::replica::{Replica, ServeError, Start, StoreConfig};
use seqsvr_cluster::store::quorum::{ChangedConfiguration, Quorum};

/// The flags of the role, or a command about the stores of a Set.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    command: Option<StoreCommand>,
    /// The replica's configuration file
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    /// Make an empty replica, once. It does not vote before it is a member: the arbiter makes it one in a new Set, `seqsvr store add`
    /// or `seqsvr store replace` in a Set that serves
    #[arg(long)]
    init: bool,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Replaces a store with a new one, which was started with --init, while the Set serves
    #[command(after_help = REPLACE)]
    Replace(ReplaceArgs),
    /// Adds a new store, which was started with --init, while the Set serves
    #[command(after_help = GROW)]
    Add(AddArgs),
    /// Removes a store, dead or alive, while the Set serves
    #[command(after_help = GROW)]
    Remove(RemoveArgs),
    /// Changes how many stores must answer each call (W), while the Set serves
    #[command(after_help = GROW)]
    WriteQuorum(WriteArgs),
}

const REPLACE: &str = "\
Examples:
  seqsvr store replace store3 http://10.0.0.4:7001 --config arbiter0.toml     on another machine
  seqsvr store replace store3 http://10.0.0.3:7001 --config arbiter0.toml     its disk was lost, and it was started again with --init
If it is interrupted or fails, run it again. Afterwards correct the addresses in the files of all roles.";

const GROW: &str = "\
Examples:
  seqsvr store add http://10.0.0.4:7001 --config arbiter0.toml      three stores become four, W = 3
  seqsvr store add http://10.0.0.5:7001 --config arbiter0.toml      and five, of which two may be down
  seqsvr store write-quorum 4 --config arbiter0.toml                no number is answered before four stores have it
  seqsvr store remove store5 --config arbiter0.toml
W stays a majority if it is one. If a command is interrupted or fails, run it again. Afterwards correct the \
addresses in the files of all roles.";

/// The flags of `store add`.
#[derive(Debug, Args)]
struct AddArgs {
    /// The address of the new store, http://HOST:PORT or https://HOST:PORT
    addr: String,
    #[command(flatten)]
    stores: WhichStores,
}

/// The flags of `store remove`.
#[derive(Debug, Args)]
struct RemoveArgs {
    /// The name of the store
    name: String,
    #[command(flatten)]
    stores: WhichStores,
}

/// The flags of `store write-quorum`.
#[derive(Debug, Args)]
struct WriteArgs {
    /// How many stores must answer: more than half of them
    #[arg(value_parser = clap::value_parser!(u8).range(1..=15))]
    write: u8,
    #[command(flatten)]
    stores: WhichStores,
}

/// How the stores are reached, and how to answer.
#[derive(Debug, Args)]
struct WhichStores {
    /// The configuration of an arbiter of the Set, which names its stores
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The flags of `store replace`.
#[derive(Debug, Args)]
struct ReplaceArgs {
    /// The name of the store to replace, dead or alive
    old: String,
    /// The address of the new store, http://HOST:PORT or https://HOST:PORT
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
    fn quorum(&self) -> Result<Arc<Quorum>, ExitError> {
        let config: ArbiterConfig = load(&self.config)?;
        let stores = config.stores.open(&config.cluster, config.set.number).map_err(ExitError::usage)?;
        stores.quorum.ok_or_else(|| {
            ExitError::usage(
                "the stores of this Set are etcd, which this command cannot change; replace a member with etcdctl member",
            )
        })
    }

    /// Says `done`, and lists the members.
    fn members(&self, done: &str, ChangedConfiguration { configuration, already }: &ChangedConfiguration) {
        let members = || configuration.members.iter();
        let (number, write) = (configuration.number, configuration.write);
        let shown: Vec<_> = members().map(|one| format!("{} at {}", one.name, one.addr)).collect();
        let text = format!(
            "{done}; configuration {number}: {write} of {} must answer, {}",
            configuration.members.len(),
            shown.join(", ")
        );
        let members: Vec<_> = members().map(|one| json!({ "name": one.name, "addr": one.addr })).collect();
        let json = json!({ "configuration": number, "write": write, "members": members, "already": already });
        println!("{}", if self.json { json.to_string() } else { text });
    }
}

/// Replaces a store. If it is cut off at any moment, run it again.
async fn replace(args: ReplaceArgs) -> Result<(), ExitError> {
    let quorum = args.stores.quorum()?;
    let changed = quorum.replace(&args.old, &args.new).await.map_err(ExitError::failed)?;
    let done = if changed.already { "was already replaced" } else { "is replaced" };
    args.stores.members(&format!("{} {done}", args.old), &changed);
    Ok(())
}

/// Takes a store in. If it is cut off at any moment, run it again.
async fn add(args: AddArgs) -> Result<(), ExitError> {
    let changed = args.stores.quorum()?.add(&args.addr).await.map_err(ExitError::failed)?;
    let done = if changed.already { "was already a member" } else { "is a member" };
    args.stores.members(&format!("{} {done}", args.addr), &changed);
    Ok(())
}

/// Lets a store go. If it is cut off at any moment, run it again.
async fn remove(args: RemoveArgs) -> Result<(), ExitError> {
    let changed = args.stores.quorum()?.remove(&args.name).await.map_err(ExitError::failed)?;
    args.stores.members(&format!("{} is not a member; it can be stopped", args.name), &changed);
    Ok(())
}

/// Changes W. If it is cut off at any moment, run it again.
async fn set_write(args: WriteArgs) -> Result<(), ExitError> {
    let changed = args.stores.quorum()?.set_write(args.write.into()).await.map_err(ExitError::failed)?;
    args.stores.members(&format!("{} stores must answer each call", args.write), &changed);
    Ok(())
}

/// Serves until a signal ends it.
pub(super) async fn run(args: StoreArgs, version: Version) -> Result<(), ExitError> {
    match args.command {
        Some(StoreCommand::Replace(args)) => return replace(args).await,
        Some(StoreCommand::Add(args)) => return add(args).await,
        Some(StoreCommand::Remove(args)) => return remove(args).await,
        Some(StoreCommand::WriteQuorum(args)) => return set_write(args).await,
        None => {}
    }
    let Some(file) = &args.config else {
        return Err(ExitError::usage("name the configuration: --config FILE"));
    };
    let config: StoreConfig = load(file)?;
    let start = if args.init { Start::Init } else { Start::Open };
    let mut signals = Signals::listen()?;
    let replica = tokio::select! {
        replica = Replica::open(config, start) => replica.map_err(not_served)?,
        () = signals.next() => return Ok(()),
    };
    let replica = replica.with_metrics(move || version.metrics("seqsvr"));
    println!("listening on {}", replica.address().map_err(not_served)?);
    replica.serve(async move { signals.next().await }).await.map_err(not_served)?;
    Ok(())
}

fn not_served(error: ServeError) -> ExitError {
    match error {
        ServeError::Config(_) | ServeError::Connections(_) | ServeError::Security(_) => {
            ExitError::usage(error)
        }
        _ => ExitError::failed(error),
    }
}
