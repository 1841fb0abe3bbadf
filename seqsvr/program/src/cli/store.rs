//! `seqsvr store`: one replica of the durable state of a Set.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use tidemark_process::Version;

use super::{ExitError, Signals, load};
use seqsvr_cluster::arbiter::config::ArbiterConfig;
use seqsvr_cluster::replica::{Replica, ServeError, Start, StoreConfig};
use seqsvr_cluster::store::backup_file::BackupFile;
use seqsvr_cluster::store::quorum::{Changed, Moved, Quorum};

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
    /// Copy from the other replicas first: after the disk was lost, damaged, or restored from a copy
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
    /// Takes uids from a Set, at one end of its own, and writes what must move with them into a file
    #[command(after_help = MOVE)]
    Give(GiveArgs),
    /// Makes uids that another Set gave up the Set's own; they must be beside those that it has
    #[command(after_help = MOVE)]
    Take(TakeArgs),
}

const MOVE: &str = "\
Example: the uids 500000 to 999999 move from Set 0 to Set 1, which has those from 1000000 on
  seqsvr store give 500000 999999 moved.uids --config set0-arbiter0.toml
  seqsvr store take moved.uids --config set1-arbiter0.toml
In between nobody serves these uids; all others are served. Cut off, or failed: run the same command again. Keep the file until it \
was taken, and take it into one Set only. Afterwards correct first_uid and last_uid of the arbiters and clients of both Sets.";

/// The flags of `store give`.
#[derive(Debug, Args)]
struct GiveArgs {
    /// The first uid: the first of the Set, or of a section
    first: u32,
    /// The last uid: the last of the Set, or of a section
    last: u32,
    /// Where to write; must not be there
    file: PathBuf,
    #[command(flatten)]
    stores: WhichStores,
}

/// The flags of `store take`.
#[derive(Debug, Args)]
struct TakeArgs {
    /// What `seqsvr store give` wrote; renamed to FILE.taken once the uids are the Set's own
    file: PathBuf,
    #[command(flatten)]
    stores: WhichStores,
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
    fn open(&self) -> Result<(ArbiterConfig, Arc<Quorum>), ExitError> {
        let config: ArbiterConfig = load(&self.config)?;
        let stores = config.stores.open(&config.cluster, config.set.number).map_err(ExitError::usage)?;
        match stores.quorum {
            Some(quorum) => Ok((config, quorum)),
            None => Err(ExitError::usage(
                "the stores of this Set are etcd, which this command cannot change; replace a member with etcdctl member",
            )),
        }
    }

    fn quorum(&self) -> Result<Arc<Quorum>, ExitError> {
        Ok(self.open()?.1)
    }

    fn answer(&self, text: String, json: &Value) {
        println!("{}", if self.json { json.to_string() } else { text });
    }
}

/// Replaces a store. Cut off at any moment, it is to be run again.
async fn replace(args: ReplaceArgs) -> Result<(), ExitError> {
    let quorum = args.stores.quorum()?;
    let Changed { configuration, already } =
        quorum.replace(&args.old, &args.new).await.map_err(ExitError::failed)?;
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
async fn lease(args: LeaseArgs) -> Result<(), ExitError> {
    let wanted = Duration::from_millis(args.milliseconds);
    let Changed { configuration, already } =
        args.stores.quorum()?.set_lease(wanted).await.map_err(ExitError::failed)?;
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

/// Gives uids up. Cut off at any moment, it is to be run again.
async fn give(args: GiveArgs) -> Result<(), ExitError> {
    if args.file.exists() {
        let file = args.file.display();
        return Err(ExitError::usage(format!("{file} is there already; name a new file, or move it away")));
    }
    if args.first > args.last {
        return Err(ExitError::usage(format!(
            "{} is behind {}; write the first uid first",
            args.first, args.last
        )));
    }
    let (config, quorum) = args.stores.open()?;
    let save = |moved: &Moved| {
        let (cluster, set) = (config.cluster.clone(), config.set.number);
        let Moved { uids, backup } = moved.clone();
        BackupFile { cluster, set, moved: Some(uids), backup }.write(&args.file)
    };
    let given = quorum.give(&(args.first..=args.last), save).await.map_err(ExitError::failed)?;
    let configuration = given.map_err(ExitError::failed)?.configuration;
    let (number, uids, file) = (configuration.number, &configuration.uids, args.file.display().to_string());
    let (first, last) = (*uids.start(), *uids.end());
    let text = format!(
        "{file}: uids {} to {}; configuration {number} of the Set has {first} to {last}. Correct first_uid and last_uid",
        args.first, args.last
    );
    let json = json!({ "configuration": number, "first_uid": first, "last_uid": last, "file": file });
    args.stores.answer(text, &json);
    Ok(())
}

/// Takes uids in. Cut off at any moment, it is to be run again.
async fn take(args: TakeArgs) -> Result<(), ExitError> {
    let file = BackupFile::read(&args.file).map_err(ExitError::failed)?;
    let path = args.file.display();
    let Some(uids) = file.moved else {
        return Err(ExitError::usage(format!("{path} is a backup; restore it with: seqsvr restore")));
    };
    let moved = Moved { uids: uids.clone(), backup: file.backup };
    let (config, quorum) = args.stores.open()?;
    let taken = quorum.take(&moved, rand::random()).await.map_err(ExitError::failed)?;
    let configured = config.set.first_uid..=config.set.last_uid;
    if taken.is_none() && configured != uids {
        return Err(ExitError::failed(format!(
            "the ceilings are stored, but the Set is new, and [set] has the uids {configured:?}; set first_uid = {} and last_uid = {}, \
             and run the same command again",
            uids.start(),
            uids.end()
        )));
    }
    let mut done = args.file.clone().into_os_string();
    done.push(".taken");
    // Nobody takes it a second time.
    std::fs::rename(&args.file, &done).map_err(|why| {
        ExitError::failed(format!("the uids are taken in, but {path} was not renamed: {why}; remove it"))
    })?;
    let range = format!("uids {} to {}", uids.start(), uids.end());
    let (text, json) = match taken {
        Some(Changed { configuration, already }) => {
            let (number, all) = (configuration.number, &configuration.uids);
            let (first, last) = (*all.start(), *all.end());
            let done = if already { "were taken in before" } else { "are taken in" };
            let now = format!("configuration {number} of the Set has {first} to {last}");
            let json = json!({
                "configuration": number, "first_uid": first, "last_uid": last, "already": already,
            });
            (format!("{range} {done}; {now}. Correct first_uid and last_uid"), json)
        }
        None => (
            format!("{range} are taken into a new Set; start its arbiters and AllocSvrs"),
            json!({ "configuration": 0, "first_uid": uids.start(), "last_uid": uids.end(), "already": false }),
        ),
    };
    args.stores.answer(text, &json);
    Ok(())
}

/// Serves until a signal ends it.
pub(super) async fn run(args: StoreArgs, version: Version) -> Result<(), ExitError> {
    match args.command {
        Some(StoreCommand::Replace(args)) => return replace(args).await,
        Some(StoreCommand::Lease(args)) => return lease(args).await,
        Some(StoreCommand::Give(args)) => return give(args).await,
        Some(StoreCommand::Take(args)) => return take(args).await,
        None => {}
    }
    let Some(file) = &args.config else { return Err(ExitError::usage("say which file: --config FILE")) };
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
        replica = Replica::open(config, start) => replica.map_err(not_served)?,
        () = signals.next() => return Ok(()),
    };
    let replica = replica.with_metrics(version.metric("seqsvr"));
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
