//! A whole cluster of real `seqsvr` processes on the loopback: stores, AllocSvrs, arbiters. Owns the processes, their
//! configuration files and data, all in one folder. Used by `cargo xtask cluster`, by the fault runs and by the
//! measurements.

mod config;
mod etcd;
mod links;
mod member;
mod shape;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::try_join_all;
use seqsvr_client::{Client, ClientConfig};
use seqsvr_core::Uid;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

pub use etcd::is_installed;
pub use links::ClusterLink;
pub use member::{ClusterMember, ProcessRole};
pub use shape::{Certificates, KeeperKind, Policy, Shape, Timing};

use crate::{Failure, Result};

/// How long the first numbers may take after the processes have started.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(50);

/// Running processes. Dropping it kills them.
#[derive(Debug)]
pub struct Cluster {
    /// The StoreSvrs.
    pub stores: Vec<ClusterMember>,
    /// The AllocSvrs.
    pub allocators: Vec<ClusterMember>,
    /// The arbiters.
    pub arbiters: Vec<ClusterMember>,
    /// The wires between them, when there are any.
    pub links: Vec<ClusterLink>,
    client_config: PathBuf,
    binary: PathBuf,
    /// The first and the last uid of each Set.
    ends: Vec<Uid>,
}

impl Cluster {
    /// Writes the files of `binary` in every role that `shape` asks for, with everything in `folder`, and starts nothing yet.
    pub async fn plan(binary: &Path, folder: &Path, shape: &Shape) -> Result<Cluster> {
        let plan = config::ClusterPlan::write(binary, folder, shape).await?;
        Ok(Cluster {
            stores: plan.stores,
            allocators: plan.allocators,
            arbiters: plan.arbiters,
            links: plan.links,
            client_config: plan.client_config,
            binary: binary.to_owned(),
            ends: shape
                .sets
                .iter()
                .flat_map(|(_, uids)| [*uids.start(), *uids.end()])
                .map(Uid::new)
                .collect(),
        })
    }

    /// Does the same, starts all, and waits until numbers are served.
    pub async fn start(binary: &Path, folder: &Path, shape: &Shape) -> Result<Cluster> {
        let mut cluster = Cluster::plan(binary, folder, shape).await?;
        let starting = cluster.stores.iter_mut().map(|store| {
            let words: &[&str] = if store.role() == ProcessRole::Store { &["--init"] } else { &[] };
            store.start_with(words)
        });
        try_join_all(starting).await?;
        for store in &cluster.stores {
            store.is_well().await?;
        }
        for member in cluster.allocators.iter_mut().chain(&mut cluster.arbiters) {
            member.start().await?;
        }
        if shape.allocators > 0 && shape.arbiters > 0 {
            cluster.serves().await?;
        }
        Ok(cluster)
    }

    /// The file with which clients find the cluster.
    pub fn client_config(&self) -> &Path {
        &self.client_config
    }

    /// A client of its own.
    pub fn client(&self) -> Result<Client> {
        Ok(Client::new(&ClientConfig::read(&self.client_config)?)?)
    }

    /// Runs a command for operators, such as `drain alloc1`, as they would.
    pub async fn operate(&self, words: &[&str]) -> Result<String> {
        self.run(words, &self.client_config).await
    }

    /// The same for one about the stores of the first Set, such as `store replace store1 http://127.0.0.1:7001`.
    /// It is run again, as an operator would, while stores are too slow for it.
    pub async fn operate_stores(&self, words: &[&str]) -> Result<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.run(words, &self.arbiters[0].config()).await {
                Err(why)
                    if why.to_string().ends_with("run the same command again") && Instant::now() < until =>
                {
                    sleep(AGAIN).await;
                }
                done => return done,
            }
        }
    }

    async fn run(&self, words: &[&str], config: &Path) -> Result<String> {
        let mut command = Command::new(&self.binary);
        command.args(words).arg("--config").arg(config).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await?;
        if !output.status.success() {
            let reported = String::from_utf8_lossy(&output.stderr);
            let last = reported.lines().last().unwrap_or("no word");
            return Err(Failure::new(format!("seqsvr {}: {last}", words.join(" "))));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// All processes, in the order in which they were started.
    pub fn members(&mut self) -> impl Iterator<Item = &mut ClusterMember> {
        self.stores.iter_mut().chain(&mut self.allocators).chain(&mut self.arbiters)
    }

    /// Waits until both ends of each Set are served, and everything between is given to somebody.
    pub async fn serves(&self) -> Result<()> {
        let client = self.client()?;
        let until = Instant::now() + PATIENCE;
        loop {
            let why = match client.next_each(&self.ends).await {
                Ok(_) => return Ok(()),
                Err(error) => error.to_string(),
            };
            if Instant::now() > until {
                return Err(Failure::new(format!("the cluster does not serve within {PATIENCE:?}: {why}")));
            }
            sleep(AGAIN).await;
        }
    }

    /// Stops everything in good order, the arbiters first, each role at once.
    pub async fn stop(mut self) -> Result<()> {
        for role in [&mut self.arbiters, &mut self.allocators, &mut self.stores] {
            for member in role.iter() {
                member.ask_to_stop()?;
            }
            for member in role {
                member.stopped().await?;
            }
        }
        Ok(())
    }
}
