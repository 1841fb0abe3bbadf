//! A fault run of servers over PostgreSQL under Patroni: the primary is lost in one way after the other while users write to each other,
//! and a standby takes over. Replication is synchronous, so nothing that was answered or shown may be missing afterwards.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt, SeedableRng};
use tidemark_test_support::servers::patroni::{NODES, PatroniCluster};
use tidemark_test_support::until::until;
use tokio::sync::watch;
use tokio::time::sleep;

use super::fault::{Summary, compare};
use super::person::Participant;
use super::stage::{Stage, USERS};
use crate::servers::Servers;
use crate::{Result, users};

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
        let servers = Servers::start_at(url, binary, folder, SERVERS, settings).await?;
        let http = servers.http()?;
        let accounts = users::sign_up(&http, "person", USERS).await?;
        let stage = Stage::set(&http, &accounts, &mut random).await?;
        let (stop, stopped) = watch::channel(false);
        let count = Arc::new(AtomicUsize::new(0));
        let mut people = Vec::new();
        for account in &accounts {
            let known = stage.known(account.uid, &accounts);
            let (stopped, count) = (stopped.clone(), Arc::clone(&count));
            people.push(Participant::begin(&http, account, known, random.random(), stopped, count));
        }
        for (at, failover) in self.failovers.iter().enumerate() {
            cluster.revive();
            cluster.until_whole().await;
            more(&count).await;
            self.bar.set_message(format!("{failover:?}; {} acknowledged", count.load(Ordering::Relaxed)));
            failover.carry_out(cluster, &mut random).await;
            more(&count).await;
            self.bar.set_position(at as u64 + 1);
        }
        stop.send_replace(true);
        self.bar.set_message("waiting until everything has arrived");
        let (done, rows) = compare(people, &stage).await?;
        servers.stop_all().await?;
        Ok(Summary { faults: self.failovers.len(), acknowledged: count.load(Ordering::Relaxed), done, rows })
    }
}

/// Waits until messages are acknowledged that were sent after now.
async fn more(count: &AtomicUsize) {
    let before = count.load(Ordering::Relaxed);
    until("messages are acknowledged", async || count.load(Ordering::Relaxed) > before + ENOUGH).await;
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
