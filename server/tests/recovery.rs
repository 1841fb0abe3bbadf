//! The real process, killed in the middle of things: what was acknowledged is there, once, in order (I1 to I6, I12).
//!
//! A short form of `cargo xtask chaos`; the long form runs for minutes under a seed of its own.

use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use tidemark_trials::chaos::{Database, Fault, FaultRun, TablesRun};

async fn survive(fault: Fault, seed: u64) {
    let data = tempfile::tempdir().expect("a folder");
    let run = FaultRun { fault, seed, length: Duration::from_secs(8), bar: ProgressBar::hidden() };
    let summary = run.run(Path::new(env!("CARGO_BIN_EXE_tidemark")), data.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("{fault:?} with seed {seed}: {broken}"));
    assert!(summary.faults >= 2 && summary.acknowledged > 100, "too little happened: {summary}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_sigkill_at_any_moment() {
    survive(Fault::Kill, 20_261_121).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn being_asked_to_stop_loses_nothing_and_ends_with_0() {
    survive(Fault::Stop, 20_261_122).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_tables_survive_kills_in_the_order_of_their_numbers() {
    let (seed, data) = (20_261_123, tempfile::tempdir().expect("a folder"));
    let length = Duration::from_secs(8);
    let run = TablesRun { database: Database::Sqlite, seed, length, bar: ProgressBar::hidden() };
    let summary = run.run(Path::new(env!("CARGO_BIN_EXE_tidemark")), data.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    assert!(summary.faults >= 2 && summary.acknowledged > 100, "too little happened: {summary}");
}
