//! `flood`: one client floods in one way after another while another sends 50 messages a second. How much longer do
//! those take, how much memory does the server take, and how long is a worker of its runtime kept? At last ten
//! addresses flood the log-in of one person, who logs in all the same.
//!
//! The flood comes from a process of its own at the lowest priority, since on a real network its work would be done
//! elsewhere, and from an address of its own. The server runs with its defaults.

mod polls;
mod raw;
mod setup;
mod ways;

use std::process::Stdio;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::process::{Child, Command};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::Measured;
use super::table::TableWorld;
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, mib};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::http::KeptAlive;
use crate::server::Server;
use crate::{Failure, Result};

use polls::Polls;
use raw::{QUIET, Victim};
pub(crate) use ways::flood;
use ways::{AT_ONE_LOG_IN, FloodWay, WAYS};

/// Between two messages of the one who is measured.
const PACE: Duration = Duration::from_millis(20);

/// How long each part lasts in milliseconds: undisturbed, then beside a flood.
const PART: usize = 6_000;

/// How long a flood is given to begin.
const BEGIN: Duration = Duration::from_millis(1_000);

/// By how many MiB the server may grow.
const GROWTH: f64 = 128.0;

/// For how many milliseconds one poll may keep a worker.
const LONGEST_POLL: f64 = 2.0;

/// How often the person logs in whose log-in is flooded, and the pause between two log-ins.
const LOG_INS: usize = 10;
const LOG_IN_PAUSE: Duration = Duration::from_millis(500);

/// How many milliseconds such a log-in may take.
const LONGEST_LOG_IN: f64 = 1_000.0;

pub(super) struct Flood {
    server: Server,
    sender: String,
    receiver: u32,
    victim: Victim,
    world: TableWorld,
}

impl Measured for Flood {
    const NAME: &'static str = "flood";
    const ABOUT: &'static str = "50 messages/s of one client while another floods";

    async fn prepare(context: &Context) -> Result<Self> {
        setup::prepare(context).await
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let count = context.scaled(PART) / PACE.as_millis() as usize;
        let mut samples = Vec::new();
        for way in WAYS {
            let (quiet, _) = self.send(count.max(50)).await?;
            let before = mib(self.server.memory()?);
            let polls = Polls::of(&self.server).await?;
            let flood = self.begin(way)?;
            sleep(BEGIN).await;
            let (beside, most) = self.send(count.max(50)).await?;
            end(way, flood).await?;
            let after = Polls::of(&self.server).await?;
            let (longest, of) = after.longest_since(&polls);
            if longest > LONGEST_POLL {
                let (above, all) = after.above_since(&polls, LONGEST_POLL);
                eprintln!(
                    "{}: {above} of {all} polls took longer than {LONGEST_POLL} ms, the longest, of {of}, up to {longest} ms",
                    way.name
                );
            }
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
            samples.push(
                Sample::new(format!("{}: longest poll, up to", way.name), longest, "ms")
                    .target(Target::AtMost(LONGEST_POLL))
                    .at_worst(),
            );
        }
        samples.push(self.log_in_beside_others().await?);
        Ok(samples)
    }
}

impl Flood {
    /// Starts the flood, which ends when it is dropped.
    fn begin(&self, way: &FloodWay) -> Result<Child> {
        Ok(Command::new("nice")
            .args(["-n", "19"])
            .arg(std::env::current_exe()?)
            .args(["--be", "flood", way.name])
            .arg(setup::victim_file(&self.world))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()?)
    }

    /// Floods the log-in of one person from ten addresses: the longest of that person's own, on a known device.
    async fn log_in_beside_others(&self) -> Result<Sample> {
        let flood = self.begin(&AT_ONE_LOG_IN)?;
        sleep(BEGIN).await;
        let person = &self.victim.person;
        let quiet = Victim { from: QUIET, ..self.victim.clone() };
        let request = quiet.post("/api/v1/sessions", &person.body(&person.password));
        let mut longest = Duration::ZERO;
        for _ in 0..LOG_INS {
            sleep(LOG_IN_PAUSE).await;
            let began = Instant::now();
            let mut connection = KeptAlive::over(quiet.dial().await?);
            let said = connection.answer(request.as_bytes()).await?;
            longest = longest.max(began.elapsed());
            if said.status != 201 {
                return Err(Failure::new(format!("a log-in was refused: {}", said.head)));
            }
        }
        end(&AT_ONE_LOG_IN, flood).await?;
        let sample = Sample::new(
            format!("{}: one person's, longest", AT_ONE_LOG_IN.name),
            longest.as_secs_f64() * 1e3,
            "ms",
        );
        Ok(sample.target(Target::AtMost(LONGEST_LOG_IN)).at_worst())
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

/// Ends a flood, which must not have ended by itself.
async fn end(way: &FloodWay, mut flood: Child) -> Result<()> {
    if let Some(ended) = flood.try_wait()? {
        return Err(Failure::new(format!("the flood of {} ended by itself: {ended}", way.name)));
    }
    Ok(flood.kill().await?)
}
