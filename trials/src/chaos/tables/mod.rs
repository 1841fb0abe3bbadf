//! A fault run of tables: programs put rows whose numbers the server assigns, and read on from the last number, while servers are killed.
//!
//! Afterwards what was acknowledged, what was followed and what is stored must agree (`check`). On SQLite one server is killed and asked
//! to stop; on PostgreSQL what [`servers`](super::servers) breaks is broken here, too.

mod check;
mod client;
mod load;
mod rows;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tidemark_test_support::ports::free_port;
use tokio::time::{Instant, sleep};

pub use check::TableLedger;
pub use load::{AccessKey, TableLoad};

use check::Fate;

use super::servers::{SERVERS, ServersFault, carry_out};
use crate::servers::Servers;
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
        let (mut servers, count) = match self.database {
            Database::Sqlite => (Servers::over_files(binary, folder, Vec::new()), 1),
            Database::Postgres => (Servers::start(binary, folder, 0).await?, SERVERS),
        };
        for _ in 0..count {
            servers.add(Some(free_port())).await?;
        }
        let url = servers.database_url().map(|url| ("TIDEMARK_STORAGE__DATABASE_URL", url.to_owned()));
        let key = AccessKey::make(binary, folder, url.as_slice()).await?;
        let addresses: Vec<String> = servers.tables().map(|port| format!("127.0.0.1:{port}")).collect();
        let mut load = TableLoad::begin(&key, &addresses, &mut random).await?;
        let faults = self.break_it(&mut servers, &mut random, &load).await?;
        self.bar.set_message("comparing");
        let written = load.written().await?;
        // A server finishes all accepted work before it ends, so nothing is stored behind the readers.
        servers.stop_all().await?;
        servers.run_all().await?;
        let ledger = load.read(written).await?;
        servers.stop_all().await?;
        self.judge(&ledger, faults)
    }

    /// Breaks something until the time is over; answers how often.
    async fn break_it(&self, servers: &mut Servers, random: &mut StdRng, load: &TableLoad) -> Result<usize> {
        let began = Instant::now();
        let mut faults = 0;
        while began.elapsed() < self.length {
            sleep(Duration::from_millis(random.random_range(100..2_000))).await;
            let (fault, away) = match self.database {
                Database::Sqlite if random.random_ratio(4, 5) => (ServersFault::Kill(0), 300),
                Database::Sqlite => (ServersFault::Stop(0), 300),
                Database::Postgres => (ServersFault::draw(random), 1_500),
            };
            carry_out(fault, servers, random.random_range(0..away)).await?;
            faults += 1;
            self.bar.set_position(began.elapsed().as_secs());
            let acknowledged = load.acknowledged();
            self.bar.set_message(format!("{faults} faults, the last {fault:?}; {acknowledged} acknowledged"));
        }
        Ok(faults)
    }

    fn judge(&self, ledger: &TableLedger, faults: usize) -> Result<TablesSummary> {
        let broken = ledger.broken_promises();
        if !broken.is_empty() {
            return Err(Failure::of(&broken, "promises broke"));
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
