//! `backup`: sends while `tidemark backup` runs again and again, beside sends alone.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tempfile::TempDir;
use tidemark_client::Account;
use tokio::process::Command;

use super::Measured;
use super::send::deliver;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::server::Server;
use crate::{Failure, Result, users};

/// Senders, how many messages each keeps in flight, and how many each sends.
const SHAPE: (usize, usize, usize) = (20, 16, 15_000);

/// Messages that are sent one after the other.
const EACH: usize = 2_000;

pub(super) struct Backup {
    server: Server,
    data: TempDir,
    backups: TempDir,
    accounts: Vec<Account>,
}

impl Measured for Backup {
    const NAME: &'static str = "backup";
    const ABOUT: &'static str = "full backups one after the other during `send`, against `send` alone";

    async fn prepare(context: &Context) -> Result<Self> {
        let (data, backups) = (context.fresh()?, context.fresh()?);
        let accounts = users::installed(&context.binary, data.path(), "save", 2 * SHAPE.0).await?;
        let server = Server::start(&context.binary, data.path()).await?;
        let scenario = Backup { server, data, backups, accounts };
        // There is something to copy.
        scenario.rate(context).await?;
        Ok(scenario)
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let (alone, latency) = (self.rate(context).await?, self.latency(context).await?);
        let backing_up = back_up(&context.binary, self.data.path(), self.backups.path());
        let measuring = async { Ok::<_, Failure>((self.rate(context).await?, self.latency(context).await?)) };
        let (beside, latency_beside) = tokio::select! {
            measured = measuring => measured?,
            failed = backing_up => return Err(failed),
        };
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        Ok(vec![
            Sample::new("20 × 16 in flight", beside, "messages/s")
                .against("without a backup", alone)
                .target(Target::RatioAtLeast(0.7)),
            Sample::new("one at a time, p99", micros(latency_beside), "µs")
                .against("without a backup", micros(latency))
                .target(Target::RatioAtMost(2.0)),
        ])
    }
}

impl Backup {
    /// Messages a second.
    async fn rate(&self, context: &Context) -> Result<f64> {
        let (_, in_flight, each) = SHAPE;
        deliver(&self.server, &self.accounts, in_flight, context.scaled(each)).await
    }

    /// Of a hundred messages one at a time, the time until `sent` of the slowest but one.
    async fn latency(&self, context: &Context) -> Result<Duration> {
        let [sender, receiver, ..] = &self.accounts[..] else { return Err(Failure::new("two are needed")) };
        let mut connection = ClientConnection::open(&self.server.http()?.socket_url(), &sender.token).await?;
        let to = format!(r#"{{"user":{}}}"#, receiver.uid);
        let mut times: Histogram<u64> = Histogram::new(3)?;
        for _ in 0..context.scaled(EACH) {
            let frame = send_frame(client_id(), &to, &"x".repeat(200));
            let began = Instant::now();
            connection.say(frame).await?;
            connection.expect("sent").await?;
            times.record(began.elapsed().as_nanos() as u64)?;
        }
        Ok(Duration::from_nanos(times.value_at_quantile(0.99)))
    }
}

/// Makes full backups, one after the other, until it is dropped. Returns why one failed.
async fn back_up(binary: &Path, data: &Path, backups: &Path) -> Failure {
    loop {
        let mut command = Command::new(binary);
        command.arg("backup").arg(backups).arg("--full").arg("--data-dir").arg(data);
        command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        match command.status().await {
            Ok(status) if status.success() => {}
            ended => return Failure::new(format!("`tidemark backup` failed: {ended:?}")),
        }
        // Only the newest is needed.
        let all = std::fs::read_dir(backups).into_iter().flatten().flatten().map(|entry| entry.path());
        let backups = all.filter(|path| path.extension().is_some_and(|ending| ending == "tidemark-backup"));
        backups.for_each(|path| _ = std::fs::remove_file(path));
    }
}
