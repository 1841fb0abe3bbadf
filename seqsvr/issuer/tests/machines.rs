//! Processes that share one registry and are killed at any moment: no two alive have the same machine id, and no
//! snowflake is made twice, across all of them and all of their runs.
//!
//! Has its own `main`, since it starts itself again: with `issue`, it is one of the processes.
#![expect(clippy::unwrap_used, reason = "a test, though none of the harness")]

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use seqsvr_issuer::Strategy;
use seqsvr_issuer::clock::{Clock, ClockOptions, Guard};
use seqsvr_issuer::machine::{Holder, HolderOptions, Instance, Registry, SqliteRegistry};
use seqsvr_issuer::snowflake::{Bits, DEFAULT_EPOCH, Layout, MachineId, Snowflake, SnowflakeOptions};

const PROCESSES: usize = 4;
const RUNS: usize = 3;
const BATCHES: usize = 5;
/// More than a millisecond holds, so that every batch waits for the clock.
const BATCH: u32 = 5_000;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "issue", folder, name] => issue(Path::new(folder), name),
        _ => {
            killed_processes_never_share_an_id();
            println!("killed_processes_never_share_an_id ... ok");
        }
    }
}

/// One process: claims a machine id and prints `machine first last` for every range, until it is killed.
#[tokio::main(flavor = "current_thread")]
async fn issue(folder: &Path, name: &str) {
    let clock = Clock::system();
    // As short as can be, so that a run that was killed does not keep the next one waiting for long.
    let options = ClockOptions { ahead: Duration::from_millis(100), ..ClockOptions::default() };
    let file = folder.join(format!("{name}.clock"));
    let guard = Guard::open(options, clock.clone(), Some(&file)).await.unwrap();
    let layout = Layout::new(Bits::default(), DEFAULT_EPOCH, clock.wall()).unwrap();
    let registry: Arc<dyn Registry> =
        Arc::new(SqliteRegistry::open(folder.join("machines.db"), "test").await.unwrap());
    let instance = Instance::named(name).unwrap();
    let options = HolderOptions::new(instance, 0..PROCESSES as u32, Some(folder.to_owned()));
    let holder = Holder::open(options, clock.clone(), registry).await.unwrap();
    let machine = holder.at(clock.wall()).unwrap();
    let snowflakes = Snowflake::new(layout, SnowflakeOptions::default(), guard, holder);
    snowflakes.init().await.unwrap();
    loop {
        let issued = snowflakes.issue(BATCH).await.unwrap();
        let lines: String = issued
            .ranges()
            .iter()
            .map(|range| format!("{machine} {} {}\n", range.first, range.last))
            .collect();
        if stdout().write_all(lines.as_bytes()).is_err() {
            return;
        }
    }
}

struct Process {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Process {
    fn start(folder: &Path, number: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("issue")
            .arg(folder)
            .arg(format!("sequence-client:8112:{number}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next range: machine, first, last. `None` for a line that the kill cut short, and after the last.
    fn range(&mut self) -> Option<(u32, u64, u64)> {
        let line = self.lines.next()?.ok()?;
        let mut words = line.split(' ');
        let machine = words.next()?.parse().ok()?;
        let (first, last) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        // Digits may be missing at the end; then the last is smaller, or of another millisecond.
        (first <= last && last - first < 4_096).then_some((machine, first, last))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn killed_processes_never_share_an_id() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = HashSet::new();
    let mut newest: BTreeMap<usize, u64> = BTreeMap::new();
    let mut machines: BTreeMap<usize, u32> = BTreeMap::new();
    for run in 0..RUNS {
        // All at once, so that they race for the registry.
        let mut processes: Vec<_> =
            (0..PROCESSES).map(|number| Process::start(folder.path(), number)).collect();
        for (number, process) in processes.iter_mut().enumerate() {
            let mut take = |(machine, first, last): (u32, u64, u64)| {
                assert_eq!(
                    *machines.entry(number).or_insert(machine),
                    machine,
                    "the id is stable over restarts"
                );
                let before = newest.insert(number, last).unwrap_or_default();
                assert!(first > before, "run {run} of {number} went back: {first} after {before}");
                (first..=last).for_each(|id| assert!(seen.insert(id), "{id} was made twice"));
            };
            for _ in 0..BATCHES {
                take(process.range().expect("the process issues"));
            }
            process.child.kill().unwrap();
            while let Some(range) = process.range() {
                take(range);
            }
        }
    }
    let different: HashSet<_> = machines.values().collect();
    assert_eq!(different.len(), PROCESSES, "{machines:?}");
    assert!(seen.len() >= PROCESSES * RUNS * BATCHES);
}
