//! The real process, killed in the middle of things: what was acknowledged is there, once, in order (I1 to I6, I12).
//!
//! A short form of `cargo xtask chaos`; the long form runs for minutes under a seed of its own.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use indicatif::ProgressBar;
use tidemark::domain::Kind;
use tidemark_test_support::ports::free_port;
use tidemark_test_support::until::until;
use tidemark_trials::chaos::{Database, Fault, FaultRun, KINDS, OF_PROGRAMS, TablesRun};
use tokio::process::Command;

async fn survive(fault: Fault, seed: u64) {
    let data = tempfile::tempdir().expect("a folder");
    let run = FaultRun { fault, seed, length: Duration::from_secs(8), bar: ProgressBar::hidden() };
    let summary = run.run(Path::new(env!("CARGO_BIN_EXE_tidemark")), data.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("{fault:?} with seed {seed}: {broken}"));
    assert!(summary.faults >= 2 && summary.acknowledged > 100, "too little happened: {summary}");
    assert!(summary.never_done().is_empty(), "{:?} was never done: {summary}", summary.never_done());
}

/// A kind of row that is new belongs into the fault runs, if people make it.
#[test]
fn the_fault_runs_know_every_kind_of_row() {
    for kind in Kind::ALL {
        let known = KINDS.iter().any(|(listed, _)| listed.as_str() == kind.as_str());
        let word = kind.as_str();
        assert!(known || word == OF_PROGRAMS.0, "{word} is missing in `KINDS` of trials/src/chaos/action.rs");
    }
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

#[tokio::test]
async fn a_standard_output_that_nobody_reads_ends_nothing() {
    let (data, port) = (tempfile::tempdir().expect("a folder"), free_port());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(data.path());
    command.env("TIDEMARK_TABLE__LISTEN", format!("127.0.0.1:{}", free_port()));
    let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("started");
    drop(process.stdout.take());
    let ready = format!("http://127.0.0.1:{port}/ready");
    until("it serves", async || reqwest::get(&ready).await.is_ok_and(|ready| ready.status() == 200)).await;
    // It ends only when it is asked to, and well.
    let pid = process.id().expect("it has not ended").to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.expect("run").success());
    assert!(process.wait().await.expect("waited").success());
}
