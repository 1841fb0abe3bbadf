//! The sequence cluster's protocol state by state: every row of docs/SIMULATION.md to its last state. Rows without a
//! broken rule must hold, those with one must break. Nothing is started, and memory is bounded by the states that are
//! looked at.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use seqsvr_simulation::{Exploration, ExplorationVerdict, explorations};

use crate::{Failure, Result};

/// States of one row at most: some 50 bytes stay of each.
const MOST: usize = 40_000_000;

/// A run over all explorations.
pub struct ExplorationRun {
    /// How long all rows may take together; those that are not done by then are told as bounded.
    pub length: Duration,
    /// Shows how far it is.
    pub bar: ProgressBar,
}

/// The counts of an exploration run.
#[derive(Debug, Default)]
pub struct ExplorationSummary {
    whole: usize,
    bounded: usize,
    broken: usize,
    states: usize,
}

impl fmt::Display for ExplorationSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { whole, bounded, broken, states } = self;
        write!(f, "{states} states; {whole} rows hold in every state, ")?;
        write!(f, "{bounded} in those that were looked at, {broken} broken rules are found out")
    }
}

impl ExplorationRun {
    /// Explores row after row and prints the verdict of each. A broken promise leaves its shortest history in `folder`.
    ///
    /// # Errors
    /// A row that breaks a promise although it must not, or the reverse.
    pub fn run(&self, folder: &Path) -> Result<ExplorationSummary> {
        let mut summary = ExplorationSummary::default();
        let mut rows = explorations();
        // The quick ones first: each of the others gets an equal part of what is left.
        rows.sort_by_key(|row| !row.must_break());
        let began = Instant::now();
        for (index, row) in rows.iter().enumerate() {
            let left = self.length.saturating_sub(began.elapsed());
            let until = Instant::now() + left / u32::try_from(rows.len() - index)?;
            self.bar.set_message(format!("{row}"));
            let goes_on = |states: usize| {
                if states % 1_024 < 8 {
                    self.bar.set_position(began.elapsed().as_secs());
                }
                Instant::now() < until
            };
            let this = Instant::now();
            let found = row.explore(MOST, goes_on);
            let verdict = summary.count(row, found, folder)?;
            self.bar.suspend(|| println!("  {row}: {verdict}, {:.1} s", this.elapsed().as_secs_f64()));
        }
        Ok(summary)
    }
}

impl ExplorationSummary {
    fn count(&mut self, row: &Exploration, found: ExplorationVerdict, folder: &Path) -> Result<String> {
        let (ExplorationVerdict::Holds(states)
        | ExplorationVerdict::HoldsSoFar(states)
        | ExplorationVerdict::Breaks { states, .. }) = found;
        self.states += states;
        Ok(match (row.must_break(), found) {
            (false, ExplorationVerdict::Holds(_)) => {
                self.whole += 1;
                format!("all {states} states hold")
            }
            (false, ExplorationVerdict::HoldsSoFar(_)) => {
                self.bounded += 1;
                format!("{states} states hold, there are more")
            }
            (true, ExplorationVerdict::Breaks { history, .. }) => {
                self.broken += 1;
                format!("broken, as it must be, after {} steps and {states} states", history.len())
            }
            (false, ExplorationVerdict::Breaks { history, .. }) => {
                std::fs::write(folder.join("history"), history.join("\n"))?;
                return Err(Failure::new(format!(
                    "{row}: a promise breaks after {} steps; the shortest history is in the file `history`:\n{}",
                    history.len(),
                    history.join("\n")
                )));
            }
            (true, ExplorationVerdict::Holds(_) | ExplorationVerdict::HoldsSoFar(_)) => {
                return Err(Failure::new(format!(
                    "{row}: no promise breaks in {states} states, although the rule is broken"
                )));
            }
        })
    }
}
