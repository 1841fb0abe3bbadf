//! Short forms of fault runs, over real processes: `cargo xtask chaos servers`, `devices-servers`, `tables-servers`, `cluster` and
//! `cluster-etcd` run for minutes under a seed of their own. Beside them a rolling restart.

use std::fmt::Display;
use std::time::Duration;

use indicatif::ProgressBar;
use tempfile::TempDir;
use tidemark_trials::chaos::{ClusterRun, Database, DevicesRun, RollingRun, ServersRun, TablesRun};
use tidemark_trials::cluster::KeeperKind;
use tidemark_trials::{Result, program};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// The summary of a run under this seed in which every promise held, and enough happened.
fn held<S: Display>(seed: u64, summary: Result<S>, is_enough: impl FnOnce(&S) -> bool) -> S {
    let summary = summary.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    assert!(is_enough(&summary), "too little happened: {summary}");
    summary
}

async fn survive(keeper: KeeperKind, seed: u64) {
    let (binary, folder) = (program("seqsvr").expect("built"), folder());
    let run = ClusterRun { keeper, seed, length: Duration::from_secs(10), bar: ProgressBar::hidden() };
    held(seed, run.run(&binary, folder.path()).await, |it| it.faults >= 2 && it.answers > 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_comes_twice_or_goes_back_over_store_processes() {
    survive(KeeperKind::Quorum, 20_261_121).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_comes_twice_or_goes_back_over_etcd() {
    survive(KeeperKind::Etcd, 20_261_122).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_promise_holds_over_several_servers_whatever_ends() {
    let (seed, binary, folder) = (20_261_123, program("tidemark").expect("built"), folder());
    let run = ServersRun { seed, length: Duration::from_secs(20), bar: ProgressBar::hidden() };
    let summary = run.run(&binary, folder.path()).await;
    let summary = held(seed, summary, |it| it.faults >= 2 && it.acknowledged > 50);
    assert!(summary.never_done().is_empty(), "{:?} was never done: {summary}", summary.never_done());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_people_with_ten_devices_over_several_servers_end_with_the_same_view() {
    let (seed, binary, folder) = (20_261_126, program("tidemark").expect("built"), folder());
    let (database, length, bar) = (Database::Postgres, Duration::from_secs(10), ProgressBar::hidden());
    let run = DevicesRun { database, seed, length, bar };
    held(seed, run.run(&binary, folder.path()).await, |it| it.done.len() == 16);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_keep_every_row_and_its_number_over_several_servers_whatever_ends() {
    let (seed, binary, folder) = (20_261_124, program("tidemark").expect("built"), folder());
    let (database, length, bar) = (Database::Postgres, Duration::from_secs(20), ProgressBar::hidden());
    let run = TablesRun { database, seed, length, bar };
    held(seed, run.run(&binary, folder.path()).await, |it| it.faults >= 2 && it.acknowledged > 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_refuses_nothing_but_for_the_moment_and_loses_nothing() {
    let (seed, binary, folder) = (20_261_122, program("tidemark").expect("built"), folder());
    let summary = RollingRun { seed, rounds: 1 }.run(&binary, folder.path()).await;
    let summary = held(seed, summary, |it| it.acknowledged > 50 && it.called > 50);
    println!("{summary}");
}
