//! The sequence cluster as real processes, broken on purpose: every number once, and never back.
//!
//! A short form of `cargo xtask chaos cluster`; the long form runs for minutes under a seed of its own.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::ProgressBar;
use tidemark_trials::chaos::ClusterRun;
use tidemark_trials::cluster::KeeperKind;

async fn survive(keeper: KeeperKind, seed: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = ClusterRun { keeper, seed, length: Duration::from_secs(10), bar: ProgressBar::hidden() };
    let summary = run.run(&binary(), folder.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("{keeper:?} with seed {seed}: {broken}"));
    assert!(summary.faults >= 2 && summary.answers > 100, "too little happened: {summary}");
}

/// The program that the workspace's build leaves beside its tests.
fn binary() -> PathBuf {
    let own = std::env::current_exe().expect("a test is a program");
    let folder = own.parent().and_then(|deps| deps.parent()).expect("tests lie in target/PROFILE/deps");
    let binary = folder.join("seqsvr");
    assert!(
        binary.is_file(),
        "{} is missing; build it first: cargo build --package seqsvr",
        binary.display()
    );
    binary
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_comes_twice_or_goes_back_over_store_processes() {
    survive(KeeperKind::Quorum, 20_261_121).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_comes_twice_or_goes_back_over_etcd() {
    survive(KeeperKind::Etcd, 20_261_122).await;
}
