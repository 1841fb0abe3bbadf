//! `flood`: one client floods in one way after another while another sends 50 messages a second. How much longer do
//! those take, and how much memory does the server take?
//!
//! The flood comes from a process of its own at the lowest priority, since on a real network its work would be done
//! elsewhere, and from an address of its own. The server runs with its defaults.

mod raw;
mod ways;

use std::process::Stdio;
use std::time::Duration;

use hdrhistogram::Histogram;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::Measured;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::server::Server;
use crate::{Failure, Result, users};

use ways::WAYS;
pub(crate) use ways::flood;

/// Between two messages of the one who is measured.
const PACE: Duration = Duration::from_millis(20);

/// How long each part lasts in milliseconds: undisturbed, then beside a flood.
const PART: usize = 6_000;

/// How long a flood is given to begin.
const BEGIN: Duration = Duration::from_millis(1_000);

/// Rows of the one who floods, of 8,000 characters each: more than one answer holds.
const ROWS: usize = 700;

/// By how many MiB the server may grow.
const GROWTH: f64 = 128.0;

pub(super) struct Flood {
    server: Server,
    sender: String,
    receiver: u32,
    flooder: String,
    _data: TempDir,
}

impl Measured for Flood {
    const NAME: &'static str = "flood";
    const ABOUT: &'static str = "50 messages/s of one client while another floods";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let mut accounts = users::installed(&context.binary, data.path(), "flood", 3).await?;
        let (Some(flooder), Some(receiver), Some(sender)) = (accounts.pop(), accounts.pop(), accounts.pop())
        else {
            return Err(Failure::new("three accounts were asked for"));
        };
        let lifted = Server::start(&context.binary, data.path()).await?;
        fill(&lifted, &flooder.token, flooder.uid).await?;
        lifted.stop().await?;
        let server = Server::start_as_shipped(&context.binary, data.path()).await?;
        let receiver = receiver.uid;
        Ok(Flood { server, sender: sender.token, receiver, flooder: flooder.token, _data: data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let count = context.scaled(PART) / PACE.as_millis() as usize;
        let mut samples = Vec::new();
        for way in WAYS {
            let (quiet, _) = self.send(count.max(50)).await?;
            let before = mib(self.server.memory()?);
            let mut flood = self.begin(way.name)?;
            sleep(BEGIN).await;
            let (beside, most) = self.send(count.max(50)).await?;
            if let Some(ended) = flood.try_wait()? {
                return Err(Failure::new(format!("the flood of {} ended by itself: {ended}", way.name)));
            }
            flood.kill().await?;
            let p99 = |times: &Histogram<u64>| times.value_at_quantile(0.99) as f64 / 1e3;
            samples.push(
                Sample::new(format!("{}: to sent, p99", way.name), p99(&beside), "µs")
                    .against("quiet", p99(&quiet))
                    .target(Target::RatioAtMost(2.0)),
            );
            samples.push(
                Sample::new(format!("{}: memory", way.name), mib(most), "MiB")
                    .against("before", before)
                    .target(Target::MoreByAtMost(GROWTH)),
            );
        }
        Ok(samples)
    }
}

impl Flood {
    /// Starts the flood, which ends when it is dropped.
    fn begin(&self, way: &str) -> Result<Child> {
        let address = self.server.address().trim_start_matches("http://");
        Ok(Command::new("nice")
            .args(["-n", "19"])
            .arg(std::env::current_exe()?)
            .args(["--flood", way, address, &self.flooder])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()?)
    }

    /// Sends `count` messages at the pace: nanoseconds from each send to its answer, and the most memory that the server had.
    async fn send(&self, count: usize) -> Result<(Histogram<u64>, u64)> {
        let url = self.server.http()?.socket_url();
        let mut connection = ClientConnection::open(&url, &self.sender).await?;
        let to = format!(r#"{{"user":{}}}"#, self.receiver);
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut times, mut most) = (Histogram::new(3)?, 0);
        for _ in 0..count {
            pace.tick().await;
            let began = Instant::now();
            connection.say(send_frame(client_id(), &to, &"x".repeat(200))).await?;
            connection.expect("sent").await?;
            times.record(began.elapsed().as_nanos() as u64)?;
            most = most.max(self.server.memory()?);
        }
        Ok((times, most))
    }
}

/// Gives the one who floods an inbox.
async fn fill(server: &Server, token: &str, uid: u32) -> Result<()> {
    let mut connection = ClientConnection::open(&server.http()?.socket_url(), token).await?;
    let to = format!(r#"{{"user":{uid}}}"#);
    for _ in 0..ROWS {
        connection.say(send_frame(client_id(), &to, &"x".repeat(8_000))).await?;
        connection.expect("sent").await?;
    }
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
