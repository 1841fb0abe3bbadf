//! `cluster`: a whole sequence service, or several chat servers, on this machine until it is interrupted. `cargo xtask
//! cluster` builds what it needs and becomes it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use serde_json::{Value, json};
use tidemark_test_support::servers::postgres;
use tidemark_trials::cluster::{Cluster, ClusterMember, KeeperKind, Shape};
use tidemark_trials::servers::{Servers, name};
use tidemark_trials::{Failure, Result, program};
use tokio::signal::unix::{SignalKind, signal};

/// Runs 3 stores, 3 AllocSvrs and 2 arbiters, or 3 chat servers, on free ports of the loopback, until Ctrl-C
#[derive(Parser)]
#[command(name = "cluster")]
struct ClusterArguments {
    /// The stores of ceilings and tables
    #[arg(long, value_enum, default_value_t = Store::Quorum)]
    store: Store,
    /// Run 3 chat servers over one PostgreSQL instead, with a new database that goes with them (Debian: postgresql)
    #[arg(long, conflicts_with = "store")]
    chat: bool,
    /// Where configuration, data and logs go: a new or empty folder, which is kept. Else a temporary one
    #[arg(long, value_name = "D")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Store {
    /// StoreSvrs
    Quorum,
    /// An etcd cluster
    Etcd,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(ClusterArguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("cluster: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: ClusterArguments) -> Result<()> {
    // From now on a signal ends nothing by itself.
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let asked = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    tokio::pin!(asked);
    let keeper = match arguments.store {
        Store::Quorum => KeeperKind::Quorum,
        Store::Etcd => KeeperKind::Etcd,
    };
    let temporary;
    let folder = match &arguments.dir {
        Some(folder) => empty(folder)?,
        None => {
            temporary = tempfile::Builder::new().prefix("seqsvr-cluster-").tempdir()?;
            temporary.path().to_owned()
        }
    };
    if arguments.chat {
        let binary = program("tidemark")?;
        if !postgres::is_installed() {
            return Err(Failure::new("PostgreSQL is missing; apt-get install postgresql"));
        }
        let mut servers = tokio::select! {
            servers = Servers::start(&binary, &folder, 3) => servers?,
            () = &mut asked => return Ok(()),
        };
        println!("{}", described_chat(&servers)?);
        asked.await;
        return servers.stop_all().await;
    }
    let binary = program("seqsvr")?;
    let shape = Shape { keeper, ..Shape::new(3, 2) };
    let cluster = tokio::select! {
        cluster = Cluster::start(&binary, &folder, &shape) => cluster?,
        () = &mut asked => return Ok(()),
    };
    println!("{}", described(&cluster));
    asked.await;
    cluster.stop().await
}

fn empty(folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    if std::fs::read_dir(folder)?.next().is_some() {
        return Err(Failure::new(format!("{} is not empty; name a new folder", folder.display())));
    }
    Ok(folder.canonicalize()?)
}

/// One line for programs.
fn described_chat(servers: &Servers) -> Result<Value> {
    let one = |at| {
        let server = servers.server(at)?;
        let addr = server.address().trim_start_matches("http://");
        Ok(json!({"name": name(at), "addr": addr, "pid": server.pid()?}))
    };
    let all: Vec<Value> = (0..servers.count()).map(one).collect::<Result<_>>()?;
    Ok(json!({"server": all, "database_url": servers.database_url()}))
}

/// One line for programs.
fn described(cluster: &Cluster) -> Value {
    let all = |members: &[ClusterMember]| -> Vec<Value> {
        let one = |member: &ClusterMember| -> Value {
            json!({"name": member.name(), "addr": member.addr(), "pid": member.pid()})
        };
        members.iter().map(one).collect()
    };
    json!({
        "store": all(&cluster.stores),
        "alloc": all(&cluster.allocators),
        "arbiter": all(&cluster.arbiters),
        "client_config": cluster.client_config(),
    })
}
