//! A fault run of several servers over one PostgreSQL: servers are killed and stand still, the database crashes and cuts connections,
//! while users write to each other over all servers.

use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, sleep};

use super::crowd::{Crowd, Summary};
use crate::Result;
use crate::servers::Servers;

/// How many there are.
pub(super) const SERVERS: usize = 3;
/// The longest that a server stands still: longer than a transaction may be idle, shorter than a client waits for a heartbeat.
const LONGEST_STAND: Duration = Duration::from_secs(6);

/// One fault run. `bar` shows seconds.
#[derive(Clone, Debug)]
pub struct ServersRun {
    /// Decides the moments, the faults, and who writes to whom.
    pub seed: u64,
    /// How long users write.
    pub length: Duration,
    /// Where progress is shown; [`ProgressBar::hidden`] where nobody looks.
    pub bar: ProgressBar,
}

/// A fault of a server or of the database.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServersFault {
    /// A server is killed and comes back.
    Kill(usize),
    /// A server is asked to stop and comes back.
    Stop(usize),
    /// A server stands still for a while.
    Stand(usize, Duration),
    /// The database crashes and comes back.
    Crash,
    /// The database cuts every connection.
    Cut,
}

impl ServersFault {
    /// One of them, to one of the servers.
    pub(super) fn draw(random: &mut StdRng) -> ServersFault {
        let at = random.random_range(0..SERVERS);
        match random.random_range(0..10) {
            0..4 => ServersFault::Kill(at),
            4 => ServersFault::Stop(at),
            5..8 => ServersFault::Stand(at, LONGEST_STAND.mul_f64(random.random_range(0.1..1.0))),
            8 => ServersFault::Crash,
            _ => ServersFault::Cut,
        }
    }
}

impl ServersRun {
    /// Carries it out; logs go into `folder`.
    ///
    /// # Errors
    /// When a promise broke, with all that broke, or when the fault run itself could not go on.
    pub async fn run(&self, binary: &Path, folder: &Path) -> Result<Summary> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let mut servers = Servers::start(binary, folder, SERVERS).await?;
        let first = servers.server(0)?.http()?;
        // Some go on with another server when theirs is gone, some wait until it is back.
        let reach =
            |n: usize| if n.is_multiple_of(2) { servers.http() } else { servers.server(n % SERVERS)?.http() };
        let crowd = Crowd::begin(&first, &mut random, reach).await?;
        let faults = self.break_them(&mut servers, &mut random, &crowd).await?;
        let summary = crowd.end(faults, &self.bar).await?;
        servers.stop_all().await?;
        Ok(summary)
    }

    async fn break_them(&self, servers: &mut Servers, random: &mut StdRng, crowd: &Crowd) -> Result<usize> {
        let began = Instant::now();
        let mut faults = 0;
        while began.elapsed() < self.length {
            sleep(Duration::from_millis(random.random_range(100..2_000))).await;
            let fault = ServersFault::draw(random);
            self.bar.set_message(format!("{fault:?}; {} acknowledged", crowd.acknowledged()));
            carry_out(fault, servers, random.random_range(0..1_500)).await?;
            faults += 1;
            self.bar.set_position(began.elapsed().as_secs());
        }
        Ok(faults)
    }
}

/// Carries it out. `away`: how long what ended stays away, in milliseconds.
pub(super) async fn carry_out(fault: ServersFault, servers: &mut Servers, away: u64) -> Result<()> {
    let away = Duration::from_millis(away);
    match fault {
        ServersFault::Kill(at) => {
            servers.kill(at).await?;
            sleep(away).await;
            servers.run(at).await
        }
        ServersFault::Stop(at) => {
            servers.stop(at).await?;
            servers.run(at).await
        }
        ServersFault::Stand(at, how_long) => {
            servers.pause(at, true)?;
            sleep(how_long).await;
            servers.pause(at, false)
        }
        ServersFault::Crash => {
            servers.database().kill();
            sleep(away).await;
            servers.database().run();
            Ok(())
        }
        ServersFault::Cut => {
            servers.database().cut_connections().await;
            Ok(())
        }
    }
}
