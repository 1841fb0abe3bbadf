//! Several chat servers over one PostgreSQL, broken on purpose: nothing acknowledged is lost, nothing comes twice.
//!
//! Short forms of `cargo xtask chaos servers`, `devices-servers` and `tables-servers`; the long forms run for minutes under a seed of its own.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::ProgressBar;
use tidemark_trials::chaos::{Database, DevicesRun, RollingRun, ServersRun, TablesRun};

/// The program that the workspace's build leaves beside its tests.
fn binary() -> PathBuf {
    let own = std::env::current_exe().expect("a test is a program");
    let folder = own.parent().and_then(|deps| deps.parent()).expect("tests lie in target/PROFILE/deps");
    let binary = folder.join("tidemark");
    let advice = "build it first: cargo build --package tidemark-server";
    assert!(binary.is_file(), "{} is missing; {advice}", binary.display());
    binary
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_promise_holds_over_several_servers_whatever_ends() {
    let seed = 20_261_123;
    let folder = tempfile::tempdir().expect("a folder");
    let run = ServersRun { seed, length: Duration::from_secs(20), bar: ProgressBar::hidden() };
    let summary = run.run(&binary(), folder.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    assert!(summary.faults >= 3 && summary.acknowledged > 50, "too little happened: {summary}");
    assert!(summary.never_done().is_empty(), "{:?} was never done: {summary}", summary.never_done());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_people_with_ten_devices_over_several_servers_end_with_the_same_view() {
    let (seed, folder) = (20_261_126, tempfile::tempdir().expect("a folder"));
    let length = Duration::from_secs(10);
    let run = DevicesRun { database: Database::Postgres, seed, length, bar: ProgressBar::hidden() };
    let summary = run.run(&binary(), folder.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    assert_eq!(summary.done.len(), 15, "too little happened: {summary}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_keep_every_row_and_its_number_over_several_servers_whatever_ends() {
    let (seed, folder) = (20_261_124, tempfile::tempdir().expect("a folder"));
    let length = Duration::from_secs(20);
    let run = TablesRun { database: Database::Postgres, seed, length, bar: ProgressBar::hidden() };
    let summary = run.run(&binary(), folder.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    assert!(summary.faults >= 3 && summary.acknowledged > 50, "too little happened: {summary}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_refuses_nothing_but_for_the_moment_and_loses_nothing() {
    let seed = 20_261_122;
    let folder = tempfile::tempdir().expect("a folder");
    let summary = RollingRun { seed, rounds: 1 }.run(&binary(), folder.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    assert!(summary.acknowledged > 50 && summary.called > 50, "too little happened: {summary}");
    println!("{summary}");
}
