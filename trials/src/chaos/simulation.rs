//! The simulated cluster, seed after seed: no process is started, and time is virtual. One seed that breaks a promise
//! ends the run; the last events of its history are written down, and the seed alone repeats it.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{available_parallelism, scope};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::{Failure, Result};

/// How many events of a history are kept of a seed that breaks a promise.
const LINES: usize = 5_000;

/// A run over seeds of the simulation.
pub struct SimulationRun {
    /// The first seed; the next ones follow it.
    pub seed: u64,
    /// How many; not given, as many as `length` allows, and one at least.
    pub seeds: Option<u64>,
    /// For how long to go on.
    pub length: Duration,
    /// Shows how far it is.
    pub bar: ProgressBar,
}

/// The counts of a simulation run.
#[derive(Debug, Default)]
pub struct SimulationSummary {
    seeds: u64,
    events: u64,
    answers: u64,
}

impl fmt::Display for SimulationSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} seeds, {} events, {} answers", self.seeds, self.events, self.answers)
    }
}

impl SimulationRun {
    /// Runs on all processors; a broken promise leaves its history in `folder`.
    ///
    /// # Errors
    /// The broken promise, and its seed.
    pub fn run(&self, folder: &Path) -> Result<SimulationSummary> {
        let began = Instant::now();
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let one_by_one = || {
            let mut summary = SimulationSummary::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let over = match self.seeds {
                    Some(seeds) => number >= seeds,
                    None => number > 0 && began.elapsed() >= self.length,
                };
                if over || stop.load(Ordering::Relaxed) {
                    return Ok(summary);
                }
                let seed = self.seed.wrapping_add(number);
                let outcome = seqsvr_simulation::run(seed, 0);
                if let Some(broken) = outcome.broken {
                    stop.store(true, Ordering::Relaxed);
                    return Err((seed, broken));
                }
                summary.seeds += 1;
                summary.events += outcome.events;
                summary.answers += outcome.answers;
                self.bar.set_position(self.seeds.map_or_else(|| began.elapsed().as_secs(), |_| number));
                self.bar.set_message(format!("{number} seeds"));
            }
        };
        let threads = available_parallelism().map_or(1, usize::from);
        let done: Vec<_> = scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(one_by_one)).collect();
            running.into_iter().map(|thread| thread.join().expect("a world does not panic")).collect()
        });
        let mut all = SimulationSummary::default();
        for one in done {
            let summary = one.or_else(|(seed, broken)| tell(seed, &broken, folder))?;
            all.seeds += summary.seeds;
            all.events += summary.events;
            all.answers += summary.answers;
        }
        Ok(all)
    }
}

fn tell(seed: u64, broken: &str, folder: &Path) -> Result<SimulationSummary> {
    let history = folder.join("history");
    std::fs::write(&history, seqsvr_simulation::run(seed, LINES).lines.join("\n"))?;
    Err(Failure::new(format!(
        "seed {seed}: {broken}\nthe end of its history is in the file `history`; this seed alone with: \
         cargo xtask chaos sim --seed {seed} --seeds 1"
    )))
}
