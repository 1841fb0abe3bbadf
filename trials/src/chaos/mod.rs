//! `chaos`: faults on purpose, against the real process, and whether the promises hold.
//!
//! A fault run has a fault (how the server ends), a seed (when, and who writes to whom) and a length. Users write to
//! each other while the server ends and comes back; afterwards everything that was acknowledged, everything that
//! devices saw and everything that is stored must agree (`check`). The sequence cluster has a fault run of its own
//! (`cluster`).

mod action;
mod check;
mod cluster;
mod contacts;
mod crowd;
mod devices;
#[cfg(feature = "simulation")]
mod exploration;
mod fault;
mod patroni;
mod person;
mod record;
mod rolling;
mod servers;
#[cfg(feature = "simulation")]
mod simulation;
mod stage;
mod tables;
mod view;

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tidemark_test_support::servers::patroni::is_installed as has_patroni;
use tidemark_test_support::servers::postgres;

pub use action::KINDS;
pub use cluster::{AnswerHistory, ClusterRun, ClusterSummary, Load};
pub use crowd::Summary;
pub use devices::{DevicesRun, DevicesSummary};
#[cfg(feature = "simulation")]
pub use exploration::{ExplorationRun, ExplorationSummary};
pub use fault::FaultRun;
pub use patroni::{Failover, PatroniRun};
pub use rolling::{RollingRun, RollingSummary};
pub use servers::ServersRun;
#[cfg(feature = "simulation")]
pub use simulation::{SimulationRun, SimulationSummary};
pub use tables::{AccessKey, Database, TableLedger, TableLoad, TablesRun, TablesSummary};

use crate::cluster::{KeeperKind, is_installed};
use crate::{Failure, Result, program};

/// How the server ends, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatFault {
    /// SIGKILL: at once, in the middle of anything.
    Kill,
    /// SIGTERM: it may finish what it accepted, and must end with 0.
    Stop,
}

/// A run, by the system that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChaosRun {
    /// The chat server.
    Chat(ChatFault),
    /// Several chat servers over one PostgreSQL.
    Servers,
    /// Chat servers over PostgreSQL under Patroni.
    Patroni,
    /// Two people with ten devices each, on this database.
    Devices(Database),
    /// Tables, on this database.
    Tables(Database),
    /// The sequence cluster over these stores.
    Cluster(KeeperKind),
    /// The sequence cluster in virtual time.
    #[cfg(feature = "simulation")]
    Simulation,
    /// The protocol of the sequence cluster, state by state.
    #[cfg(feature = "simulation")]
    Exploration,
}

/// The names on the command line, the run of each, and its description.
pub const NAMES: &[(&str, ChaosRun, &str)] = &[
    (
        "kill",
        ChaosRun::Chat(ChatFault::Kill),
        "SIGKILL at random moments under load, restart, compare everything",
    ),
    (
        "stop",
        ChaosRun::Chat(ChatFault::Stop),
        "SIGTERM at random moments under load: exit code 0, and nothing lost either",
    ),
    (
        "servers",
        ChaosRun::Servers,
        "three servers over one PostgreSQL: SIGKILL, SIGTERM, SIGSTOP, a database that crashes and cuts connections",
    ),
    (
        "patroni",
        ChaosRun::Patroni,
        "two servers over PostgreSQL under Patroni: so many failovers, whose primaries end in five ways (Debian patroni)",
    ),
    (
        "devices",
        ChaosRun::Devices(Database::Sqlite),
        "two people with ten devices each, offline and back, with lost answers and repetitions: all show the same",
    ),
    (
        "devices-servers",
        ChaosRun::Devices(Database::Postgres),
        "the same with three servers over one PostgreSQL",
    ),
    (
        "tables",
        ChaosRun::Tables(Database::Sqlite),
        "programs put rows with assigned numbers and read on from the last one: SIGKILL and SIGTERM of the server",
    ),
    (
        "tables-servers",
        ChaosRun::Tables(Database::Postgres),
        "the same with three servers over one PostgreSQL, broken as by `servers`",
    ),
    (
        "cluster",
        ChaosRun::Cluster(KeeperKind::Quorum),
        "the sequence cluster: SIGKILL, SIGSTOP and cut wires under load",
    ),
    (
        "cluster-etcd",
        ChaosRun::Cluster(KeeperKind::Etcd),
        "the same over etcd, its members too (Debian etcd-server)",
    ),
    #[cfg(feature = "simulation")]
    (
        "sim",
        ChaosRun::Simulation,
        "the sequence cluster in virtual time, seed after seed: every fault of docs/SIMULATION.md",
    ),
    #[cfg(feature = "simulation")]
    (
        "explore",
        ChaosRun::Exploration,
        "the sequence cluster's protocol state by state: every row of docs/SIMULATION.md",
    ),
];

/// The runs to carry out, from the command line.
#[derive(Clone, Debug)]
pub struct ChaosPlan {
    /// Names of faults; empty = all.
    pub names: Vec<String>,
    /// Repeats a run: the same moments, the same conversations.
    pub seed: u64,
    /// How long each fault is tried.
    pub length: Duration,
    /// How often `patroni` loses the primary, however long that takes.
    pub failovers: usize,
    /// How many seeds of the simulation are run, however long that takes.
    pub seeds: Option<u64>,
}

/// Carries out a plan with the server at `binary`, and `seqsvr` beside it, and tells each verdict.
///
/// # Errors
/// The first broken promise, with the seed that led to it.
pub async fn run(plan: &ChaosPlan, binary: &Path, folder: &Path) -> Result<()> {
    println!("seed {}", plan.seed);
    for (name, run, _) in choose(&plan.names)? {
        let missing = match *run {
            ChaosRun::Cluster(KeeperKind::Etcd) if !is_installed("etcd") => {
                Some("etcd is missing; apt-get install etcd-server")
            }
            ChaosRun::Servers
            | ChaosRun::Tables(Database::Postgres)
            | ChaosRun::Devices(Database::Postgres)
                if !postgres::is_installed() =>
            {
                Some("PostgreSQL is missing; apt-get install postgresql")
            }
            ChaosRun::Patroni if !has_patroni() => {
                Some("Patroni is missing; apt-get install patroni postgresql etcd-server haproxy")
            }
            _ => None,
        };
        if let Some(missing) = missing {
            let why = format!("{name}: {missing}");
            if plan.names.is_empty() {
                println!("{why}");
                continue;
            }
            return Err(Failure::new(why));
        }
        let bar = ProgressBar::new(plan.length.as_secs());
        bar.set_style(ProgressStyle::with_template("{bar:30} {elapsed_precise} {msg}")?);
        let data = tempfile::Builder::new().prefix("chaos-").tempdir_in(folder)?;
        let (seed, length) = (plan.seed, plan.length);
        let done: Result<String> = match *run {
            ChaosRun::Chat(fault) => {
                let run = FaultRun { fault, seed, length, bar: bar.clone() };
                run.run(binary, data.path()).await.map(|summary| summary.to_string())
            }
            ChaosRun::Servers => {
                let run = ServersRun { seed, length, bar: bar.clone() };
                run.run(binary, data.path()).await.map(|summary| summary.to_string())
            }
            ChaosRun::Patroni => {
                bar.set_length(plan.failovers as u64);
                let run = PatroniRun::drawn(seed, plan.failovers, bar.clone());
                run.run(binary, data.path()).await.map(|summary| summary.to_string())
            }
            ChaosRun::Devices(database) => {
                let run = DevicesRun { database, seed, length, bar: bar.clone() };
                run.run(binary, data.path()).await.map(|summary| summary.to_string())
            }
            ChaosRun::Tables(database) => {
                let run = TablesRun { database, seed, length, bar: bar.clone() };
                run.run(binary, data.path()).await.map(|summary| summary.to_string())
            }
            ChaosRun::Cluster(keeper) => {
                let run = ClusterRun { keeper, seed, length, bar: bar.clone() };
                run.run(&program("seqsvr")?, data.path()).await.map(|summary| summary.to_string())
            }
            #[cfg(feature = "simulation")]
            ChaosRun::Simulation => {
                let seeds = plan.seeds;
                bar.set_length(seeds.unwrap_or(length.as_secs()));
                let run = SimulationRun { seed, seeds, length, bar: bar.clone() };
                let folder = data.path().to_owned();
                let run = tokio::task::spawn_blocking(move || run.run(&folder));
                run.await?.map(|summary| summary.to_string())
            }
            #[cfg(feature = "simulation")]
            ChaosRun::Exploration => {
                let run = ExplorationRun { length, bar: bar.clone() };
                let folder = data.path().to_owned();
                let run = tokio::task::spawn_blocking(move || run.run(&folder));
                run.await?.map(|summary| summary.to_string())
            }
        };
        bar.finish_and_clear();
        match done {
            Ok(summary) => println!("{name}: every promise held: {summary}"),
            Err(failure) => {
                // The data tells what happened; whoever looks into it needs it.
                let kept = data.keep();
                let how_many = match run {
                    ChaosRun::Patroni => format!(" --failovers {}", plan.failovers),
                    _ => String::new(),
                };
                let again = format!("again with: cargo xtask chaos {name} --seed {}{how_many}", plan.seed);
                return Err(Failure::new(format!(
                    "{name}: {failure}\ndata kept in {}; {again}",
                    kept.display()
                )));
            }
        }
    }
    Ok(())
}

type Named = (&'static str, ChaosRun, &'static str);

fn choose(names: &[String]) -> Result<Vec<&'static Named>> {
    let find = |name: &String| {
        NAMES.iter().find(|known| known.0 == name.as_str()).ok_or_else(|| {
            let known: Vec<_> = NAMES.iter().map(|known| known.0).collect();
            Failure::new(format!("there is no fault {name}; there are: {}", known.join(", ")))
        })
    };
    if names.is_empty() { Ok(NAMES.iter().collect()) } else { names.iter().map(find).collect() }
}
