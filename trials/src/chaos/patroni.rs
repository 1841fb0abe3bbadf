//! A fault run of servers over PostgreSQL under Patroni: the primary is lost in one way after the other while users write to each other,
//! and a standby takes over. Replication is synchronous, so nothing that was answered or shown may be missing afterwards.

use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt, SeedableRng};
use tidemark_test_support::servers::patroni::{NODES, PatroniCluster};
use tidemark_test_support::until::until;
use tokio::time::sleep;

use super::crowd::{Crowd, Summary};
use crate::Result;
use crate::servers::Servers;

const SERVERS: usize = 2;
/// So many messages are not on their way when the primary is lost: they were sent afterwards.
const ENOUGH: usize = 200;

/// How the primary is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// Its machine dies.
    Node,
    /// PostgreSQL dies on it; Patroni starts it again.
    Postmaster,
    /// Its machine stands still, and goes on when another one has taken over.
    Stand,
    /// An operator asks for another one.
    Switchover,
    /// Its standbys are away, so commits wait, when it dies; and either comes back first.
    Alone,
}

const ALL: [Failover; 5] =
    [Failover::Node, Failover::Postmaster, Failover::Stand, Failover::Switchover, Failover::Alone];

/// One fault run. `bar` shows failovers.
#[derive(Clone, Debug)]
pub struct PatroniRun {
    /// Decides the moments, and the writers and receivers.
    pub seed: u64,
    /// The failovers, one after the other.
    pub failovers: Vec<Failover>,
    /// Where progress is shown; [`ProgressBar::hidden`] where nobody looks.
    pub bar: ProgressBar,
}

impl PatroniRun {
    /// A run of `count` failovers, of each kind as many as of the others.
    pub fn drawn(seed: u64, count: usize, bar: ProgressBar) -> PatroniRun {
        let mut failovers: Vec<Failover> = ALL.into_iter().cycle().take(count).collect();
        failovers.shuffle(&mut StdRng::seed_from_u64(seed));
        PatroniRun { seed, failovers, bar }
    }

    /// Carries it out; logs go into `folder`.
    ///
    /// # Errors
    /// When a promise broke, with all that broke, or when the fault run itself could not go on.
    ///
    /// # Panics
    /// When the cluster or the servers do not come back in time.
    pub async fn run(&self, binary: &Path, folder: &Path) -> Result<Summary> {
        let cluster = PatroniCluster::start().await;
        let done = self.run_over(&cluster, binary, folder).await;
        if done.is_err() {
            cluster.keep_logs(folder)?;
        }
        done
    }

    async fn run_over(&self, cluster: &PatroniCluster, binary: &Path, folder: &Path) -> Result<Summary> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let url = cluster.new_database().await;
        let settings = vec![("TIDEMARK_STORAGE__REPLICATION", "synchronous".to_owned())];
        let mut servers = Servers::start_at(url, binary, folder, SERVERS, settings).await?;
        let http = servers.http()?;
        let crowd = Crowd::begin(&http, &mut random, |_| Ok(http.clone())).await?;
        for (at, failover) in self.failovers.iter().enumerate() {
            cluster.revive();
            cluster.until_whole().await;
            more(&crowd).await;
            self.bar.set_message(format!("{failover:?}; {} acknowledged", crowd.acknowledged()));
            failover.carry_out(cluster, &mut random).await;
            more(&crowd).await;
            self.bar.set_position(at as u64 + 1);
        }
        let summary = crowd.end(self.failovers.len(), &self.bar).await?;
        servers.stop_all().await?;
        Ok(summary)
    }
}

/// Waits until messages are acknowledged that were sent after now.
async fn more(crowd: &Crowd) {
    let before = crowd.acknowledged();
    until("messages are acknowledged", async || crowd.acknowledged() > before + ENOUGH).await;
}

impl Failover {
    /// Carries it out, until there is a primary again.
    async fn carry_out(self, cluster: &PatroniCluster, random: &mut StdRng) {
        let primary = cluster.until_primary().await;
        match self {
            Failover::Node => {
                cluster.kill(primary);
                cluster.until_moved(primary).await;
            }
            Failover::Postmaster => cluster.crash(primary),
            Failover::Stand => {
                cluster.stop(primary);
                cluster.until_moved(primary).await;
            }
            Failover::Switchover => cluster.switch_over().await,
            Failover::Alone => {
                let standbys: Vec<usize> = (0..NODES).filter(|at| *at != primary).collect();
                standbys.iter().for_each(|at| cluster.kill(*at));
                cluster.until_a_commit_waits(primary).await;
                // Patroni may have noticed by then, or not.
                sleep(Duration::from_millis(random.random_range(0..4_000))).await;
                let is_whole_node = random.random_bool(0.5);
                let is_last = is_whole_node && random.random_bool(0.5);
                match is_whole_node {
                    true => cluster.kill(primary),
                    false => cluster.crash(primary),
                }
                if is_last {
                    standbys.iter().for_each(|at| cluster.run(*at));
                } else {
                    cluster.run(primary);
                }
                // If they know that one of them was synchronous, that one takes over after 20 seconds.
                let away = if is_last { 40_000 } else { 10_000 };
                sleep(Duration::from_millis(random.random_range(0..away))).await;
                cluster.revive();
            }
        }
    }
}
