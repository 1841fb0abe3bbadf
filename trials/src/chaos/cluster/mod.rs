//! A fault run of the sequence cluster: real processes over wires that can be cut, callers that all want the same uids,
//! faults at seeded moments, and the comparison of everything that the callers were told.

mod fault;
mod history;
mod load;

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use seqsvr_client::Client;
use tokio::time::Instant;

pub use self::history::AnswerHistory;
pub use self::load::Load;
use self::load::uids;
use crate::cluster::{Cluster, KeeperKind, Shape, Timing};
use crate::{Failure, Result};

/// The default of the programs.
const LEASE: Duration = Duration::from_secs(2);

/// How long all uids may take to be served again, once everything is mended: far more than a takeover, on a busy machine.
const RETURN: Duration = Duration::from_secs(60);

/// One fault run. `bar` shows seconds.
#[derive(Clone, Debug)]
pub struct ClusterRun {
    /// The stores of ceilings and tables.
    pub keeper: KeeperKind,
    /// Decides the faults and their moments, and the callers' requests.
    pub seed: u64,
    /// How long faults go on.
    pub length: Duration,
    /// Where progress is shown; [`ProgressBar::hidden`] where nobody looks.
    pub bar: ProgressBar,
}

/// The counts of a fault run.
#[derive(Clone, Copy, Debug)]
pub struct ClusterSummary {
    /// Faults that were carried out.
    pub faults: usize,
    /// Answers that were compared.
    pub answers: usize,
    /// The longest time until all uids were served again after everything was mended.
    pub longest_return: Duration,
}

impl fmt::Display for ClusterSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { faults, answers, longest_return } = self;
        let longest = longest_return.as_secs_f64();
        write!(f, "{faults} faults, {answers} answers compared, back after {longest:.2} s at most")
    }
}

impl ClusterRun {
    /// Carries it out with the program `binary` and everything in `folder`.
    ///
    /// # Errors
    /// When a promise broke, with all that broke, or when the fault run itself could not go on.
    pub async fn run(&self, binary: &Path, folder: &Path) -> Result<ClusterSummary> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let probe = Duration::from_millis(100);
        let timing = Timing { lease: LEASE, probe_every: probe, probe_patience: probe, dead_after: 3 };
        let shape = Shape { keeper: self.keeper, wired: true, timing, ..Shape::new(3, 2) };
        let mut cluster = Cluster::start(binary, folder, &shape).await?;
        // Two, since one alone would only ever compare with itself.
        let clients = [cluster.client()?, cluster.client()?];
        returned(&clients[0]).await?;
        let mut load = Load::begin(&clients, random.random());
        let began = Instant::now();
        let (mut faults, mut longest_return) = (0, Duration::ZERO);
        // For whoever looks into a broken run, beside the logs of the processes.
        let mut log = std::fs::File::create(folder.join("faults.log"))?;
        while began.elapsed() < self.length {
            let drawn = fault::draw(&mut cluster, &mut random);
            let words = drawn.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            self.bar.set_position(began.elapsed().as_secs());
            self.bar.set_message(words.clone());
            let hold = random.random_range(Duration::from_millis(20)..LEASE * 3);
            writeln!(log, "{:8.3} s: {words} for {hold:?}", began.elapsed().as_secs_f64())?;
            fault::carry_out(&mut cluster, &drawn, hold).await?;
            faults += drawn.len();
            let mended = Instant::now();
            let reported = |failure| Failure::new(format!("after {words} for {hold:?}: {failure}"));
            returned(&clients[faults % 2]).await.map_err(reported)?;
            writeln!(
                log,
                "{:8.3} s: served again after {:?}",
                began.elapsed().as_secs_f64(),
                mended.elapsed()
            )?;
            longest_return = longest_return.max(mended.elapsed());
            if let Some(failure) = load.broken() {
                return Err(reported(failure));
            }
        }
        let history = load.end().await?;
        let broken = history.broken_promises();
        if !broken.is_empty() {
            return Err(Failure::of(&broken, "promises broke"));
        }
        drop(clients);
        cluster.stop().await?;
        Ok(ClusterSummary { faults, answers: history.answers(), longest_return })
    }
}

/// Waits until every uid is served.
async fn returned(client: &Client) -> Result<()> {
    let served = client.within(RETURN).next_each(&uids()).await;
    served.map(drop).map_err(|error| Failure::new(format!("not served again within {RETURN:?}: {error}")))
}
