//! Servers over PostgreSQL under Patroni, set up as docs/OPERATING.md says.
//!
//! A short form of `cargo xtask chaos patroni`; the long form goes through ten failovers, whose primaries end in five ways.

use std::path::Path;

use indicatif::ProgressBar;
use tidemark_trials::chaos::{Failover, PatroniRun};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_dies_under_patroni_takes_nothing_with_it() {
    let (seed, folder) = (20_261_128, tempfile::tempdir().expect("a folder"));
    let run = PatroniRun { seed, failovers: vec![Failover::Node], bar: ProgressBar::hidden() };
    let summary = run.run(Path::new(env!("CARGO_BIN_EXE_tidemark")), folder.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    println!("{summary}");
}
