//! A fault run of tables: programs put rows whose numbers the server assigns, and read on from the last number, while servers are killed.
//!
//! Afterwards what was acknowledged, what was followed and what is stored must agree (`check`). On SQLite one server is killed and asked
//! to stop; on PostgreSQL what [`servers`](super::servers) breaks is broken here, too.

mod check;
mod client;
mod load;
mod rows;
mod system;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, sleep};

pub use check::TableLedger;
pub use load::{AccessKey, TableLoad};

use check::Fate;
use system::System;

use crate::{Failure, Result};

/// Where the tables lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// In the files of one server.
    Sqlite,
    /// In one PostgreSQL, with several servers.
    Postgres,
}

/// One fault run. `bar` shows seconds.
#[derive(Clone, Debug)]
pub struct TablesRun {
    /// Where the tables lie.
    pub database: Database,
    /// Decides the moments, the faults, and who puts what.
    pub seed: u64,
    /// How long rows are put.
    pub length: Duration,
    /// Where progress is shown; [`ProgressBar::hidden`] where nobody looks.
    pub bar: ProgressBar,
}

/// The counts of a fault run.
#[derive(Clone, Copy, Debug)]
pub struct TablesSummary {
    /// How often something was broken.
    pub faults: usize,
    /// Rows that were acknowledged.
    pub acknowledged: usize,
    /// Puts that were refused.
    pub refused: usize,
    /// Puts without an answer.
    pub unanswered: usize,
    /// How many of these are there.
    pub there: usize,
    /// Rows that were compared.
    pub rows: usize,
}

impl fmt::Display for TablesSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TablesSummary { faults, acknowledged, refused, unanswered, there, rows } = self;
        write!(
            f,
            "{faults} faults, {acknowledged} rows acknowledged, {refused} puts refused, {unanswered} without an answer, {there} of which \
             are there, {rows} rows compared"
        )
    }
}

impl TablesRun {
    /// Carries it out; data and logs go into `folder`.
    ///
    /// # Errors
    /// When a promise broke, with all that broke, or when the fault run itself could not go on.
    pub async fn run(&self, binary: &Path, folder: &Path) -> Result<TablesSummary> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let mut system = System::start(self.database, binary, folder).await?;
        let key = AccessKey::make(binary, &system.data(), &system.settings()).await?;
        let mut load = TableLoad::begin(&key, &system.addresses(), &mut random).await?;
        let faults = self.break_it(&mut system, &mut random, &load).await?;
        self.bar.set_message("comparing");
        let written = load.written().await?;
        // A server finishes all accepted work before it ends, so nothing is stored behind the readers.
        system.stop().await?;
        system.go_on().await?;
        let ledger = load.read(written).await?;
        system.stop().await?;
        self.judge(&ledger, faults)
    }

    /// Breaks something until the time is over; answers how often.
    async fn break_it(&self, system: &mut System, random: &mut StdRng, load: &TableLoad) -> Result<usize> {
        let began = Instant::now();
        let mut faults = 0;
        while began.elapsed() < self.length {
            sleep(Duration::from_millis(random.random_range(100..2_000))).await;
            let fault = system.break_something(random).await?;
            faults += 1;
            self.bar.set_position(began.elapsed().as_secs());
            let acknowledged = load.acknowledged();
            self.bar.set_message(format!("{faults} faults, the last {fault}; {acknowledged} acknowledged"));
        }
        Ok(faults)
    }

    fn judge(&self, ledger: &TableLedger, faults: usize) -> Result<TablesSummary> {
        let broken = ledger.broken_promises();
        if !broken.is_empty() {
            let shown = broken.iter().take(20).cloned().collect::<Vec<_>>().join("\n  ");
            return Err(Failure::new(format!("{} promises broke:\n  {shown}", broken.len())));
        }
        let with = |fate: fn(&Fate) -> bool| ledger.attempts.iter().filter(|a| fate(&a.fate)).count();
        let acknowledged = with(|fate| matches!(fate, Fate::Acknowledged { .. }));
        Ok(TablesSummary {
            faults,
            acknowledged,
            refused: with(|fate| matches!(fate, Fate::Refused)),
            unanswered: with(|fate| matches!(fate, Fate::Unknown)),
            there: ledger.rows() - acknowledged,
            rows: ledger.rows(),
        })
    }
}
