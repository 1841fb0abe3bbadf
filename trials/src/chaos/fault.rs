//! A fault run: users under load, a server that ends again and again at seeded moments, and the comparison afterwards.

use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, sleep};

use super::ChatFault;
use super::crowd::{Crowd, Summary};
use crate::server::Server;
use crate::{Failure, Result};

/// One fault run. `bar` shows seconds.
#[derive(Clone, Debug)]
pub struct FaultRun {
    /// How the server ends.
    pub fault: ChatFault,
    /// Decides the moments, and who writes to whom.
    pub seed: u64,
    /// How long users write.
    pub length: Duration,
    /// Where progress is shown; [`ProgressBar::hidden`] where nobody looks.
    pub bar: ProgressBar,
}

impl FaultRun {
    /// Carries it out over fresh data in `data`.
    ///
    /// # Errors
    /// When a promise broke, with all that broke, or when the fault run itself could not go on.
    pub async fn run(&self, binary: &Path, data: &Path) -> Result<Summary> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let server = start(0, binary, data, &mut random).await?;
        let http = server.http()?;
        let crowd = Crowd::begin(&http, &mut random, |_| Ok(http.clone())).await?;
        let (server, faults) = self.break_it(server, binary, data, &mut random, &crowd).await?;
        let summary = crowd.end(faults, &self.bar).await?;
        let ended = server.stop().await?;
        if !ended.success() {
            return Err(Failure::new(format!("asked to stop, the server ended with {ended}")));
        }
        Ok(summary)
    }

    /// Ends and restarts the server until the time is over; answers the one that runs then.
    async fn break_it(
        &self,
        mut server: Server,
        binary: &Path,
        data: &Path,
        random: &mut StdRng,
        crowd: &Crowd,
    ) -> Result<(Server, usize)> {
        let began = Instant::now();
        let mut faults = 0;
        while began.elapsed() < self.length {
            sleep(Duration::from_millis(random.random_range(100..2_000))).await;
            let port = server.port()?;
            match self.fault {
                ChatFault::Kill => server.kill().await?,
                ChatFault::Stop => {
                    let ended = server.stop().await?;
                    if !ended.success() {
                        return Err(Failure::new(format!("asked to stop, the server ended with {ended}")));
                    }
                }
            }
            faults += 1;
            server = start(port, binary, data, random).await?;
            self.bar.set_position(began.elapsed().as_secs());
            self.bar.set_message(format!("{faults} faults, {} acknowledged", crowd.acknowledged()));
        }
        Ok((server, faults))
    }
}

/// Starts the server, each time with another number of queues: what one start leaves owed, the next must find.
async fn start(port: u16, binary: &Path, data: &Path, random: &mut StdRng) -> Result<Server> {
    let queues = random.random_range(1..=4_u8).to_string();
    Server::start_with(&[("TIDEMARK_QUEUES__COUNT", queues)], port, binary, data).await
}
