//! `retention`: what the removal of old rows costs those who send meanwhile. `retention-periods`: whether the disk stays as full as it is.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;
use tidemark_client::Account;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use super::Measured;
use super::send::deliver;
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, mib};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::server::Server;
use crate::{Failure, Result, users};

/// Senders, and how many messages each keeps in flight.
const SENDERS: (usize, usize) = (20, 16);
/// Messages of each that have expired when the measurement begins: their removal takes longer than that.
const OLD: usize = 30_000;
/// Messages of each that are measured.
const EACH: usize = 5_000;
/// The shortest time for which a server keeps rows.
const KEPT: Duration = Duration::from_secs(60);

/// A server that keeps rows for so long.
async fn forgetful(context: &Context, data: &Path, kept: Duration) -> Result<Server> {
    let settings = [("TIDEMARK_RETENTION__SECONDS", kept.as_secs().to_string())];
    Server::start_with(&settings, 0, &context.binary, data).await
}

pub(super) struct Retention {
    accounts: Vec<Account>,
    data: TempDir,
}

impl Measured for Retention {
    const NAME: &'static str = "retention";
    const ABOUT: &'static str =
        "the time to sent while old rows are removed at full speed, 20 senders × 16 in flight";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let accounts = users::installed(&context.binary, data.path(), "old", 2 * SENDERS.0).await?;
        Ok(Retention { accounts, data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let each = context.scaled(EACH);
        let server = Server::start(&context.binary, self.data.path()).await?;
        deliver(&server, &self.accounts, SENDERS.1, context.scaled(OLD)).await?;
        let old = tokio::time::Instant::now() + KEPT;
        let alone = times(&server, &self.accounts, each).await?;
        sleep_until(old).await;
        server.stop().await?;
        let server = forgetful(context, self.data.path(), KEPT).await?;
        let beside = times(&server, &self.accounts, each).await?;
        let gone = expired(self.data.path())?;
        server.stop().await?;
        let all = self.accounts.len() as i64;
        if !(1..all).contains(&gone) {
            return Err(Failure::new(format!(
                "{gone} of {all} inboxes have expired: nothing was removed all the time"
            )));
        }
        let of = |times: &Histogram<u64>, quantile| times.value_at_quantile(quantile) as f64 / 1e6;
        let sample = |metric, quantile| {
            Sample::new(metric, of(&beside, quantile), "ms").against("send alone", of(&alone, quantile))
        };
        Ok(vec![
            sample("to sent, p50", 0.5),
            sample("to sent, p99", 0.99).target(Target::RatioAtMost(2.0)),
            sample("to sent, the longest", 1.0),
        ])
    }
}

/// Nanoseconds from each send to its answer, 20 senders × 16 in flight.
pub(super) async fn times(server: &Server, accounts: &[Account], each: usize) -> Result<Histogram<u64>> {
    let url = server.http()?.socket_url();
    let sending = accounts.chunks_exact(2).map(|pair| {
        let (url, sender, to) = (url.clone(), pair[0].token.clone(), pair[1].uid);
        tokio::spawn(async move {
            let mut connection = ClientConnection::open(&url, &sender).await?;
            let (to, text) = (format!(r#"{{"user":{to}}}"#), "x".repeat(200));
            let (mut times, mut in_flight) = (Histogram::<u64>::new(3)?, VecDeque::new());
            let mut left = each;
            while left > 0 || !in_flight.is_empty() {
                if left > 0 && in_flight.len() < SENDERS.1 {
                    in_flight.push_back(Instant::now());
                    connection.say(send_frame(client_id(), &to, &text)).await?;
                    left -= 1;
                    continue;
                }
                connection.expect("sent").await?;
                if let Some(sent) = in_flight.pop_front() {
                    times.record(sent.elapsed().as_nanos() as u64)?;
                }
            }
            Ok::<_, Failure>(times)
        })
    });
    let mut all = Histogram::new(3)?;
    for times in try_join_all(sending).await? {
        all.add(times?)?;
    }
    Ok(all)
}

/// Inboxes of which rows have expired.
fn expired(data: &Path) -> Result<i64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(data.join("tidemark.db"), flags)?;
    Ok(connection.query_row("SELECT count(*) FROM heads WHERE expired_to > 0", [], |row| row.get(0))?)
}

/// For how long rows are kept.
const PERIOD: Duration = Duration::from_secs(120);
const PERIODS: u32 = 30;
/// Each of the senders sends one, and waits for its answer: 1,000 a second from all of them.
const EVERY: Duration = Duration::from_millis(20);

pub(super) struct RetentionPeriods {
    accounts: Vec<Account>,
    data: TempDir,
}

impl Measured for RetentionPeriods {
    const NAME: &'static str = "retention-periods";
    const ABOUT: &'static str =
        "rows kept for two minutes, 1,000 messages/s for an hour: the files, and the longest wait";
    const TAKES_HOURS: bool = true;

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let accounts = users::installed(&context.binary, data.path(), "period", 2 * SENDERS.0).await?;
        Ok(RetentionPeriods { accounts, data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let data = self.data.path();
        let server = forgetful(context, data, PERIOD).await?;
        let periods = if context.quick { 3 } else { PERIODS };
        let end = Instant::now() + PERIOD * periods;
        let url = server.http()?.socket_url();
        let sending: Vec<_> = self
            .accounts
            .chunks_exact(2)
            .map(|pair| tokio::spawn(paced(url.clone(), pair[0].token.clone(), pair[1].uid, end)))
            .collect();
        let (mut ticks, mut sizes) = (interval(PERIOD), Vec::new());
        for _ in 0..=periods {
            ticks.tick().await;
            sizes.push(bytes(data)? as f64);
        }
        let mut times = Histogram::<u64>::new(3)?;
        for each in try_join_all(sending).await? {
            times.add(each?)?;
        }
        server.stop().await?;
        // The second period is the first in which something goes.
        let largest = sizes.iter().skip(3).copied().fold(0.0, f64::max);
        let of = |quantile| times.value_at_quantile(quantile) as f64 / 1e6;
        Ok(vec![
            Sample::new("files, the largest after a later period", mib(largest as u64), "MiB")
                .against("after the second", mib(sizes[2] as u64))
                .target(Target::RatioAtMost(1.05)),
            Sample::new("to sent, p99", of(0.99), "ms"),
            Sample::new("to sent, the longest", of(1.0), "ms").target(Target::AtMost(20.0)).at_worst(),
        ])
    }
}

/// Sends one message after the other in this pace until `end`. Answers nanoseconds from each to its answer.
async fn paced(url: String, token: String, to: u32, end: Instant) -> Result<Histogram<u64>> {
    let mut connection = ClientConnection::open(&url, &token).await?;
    let (to, text) = (format!(r#"{{"user":{to}}}"#), "x".repeat(100));
    let (mut times, mut ticks) = (Histogram::new(3)?, interval(EVERY));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    while Instant::now() < end {
        ticks.tick().await;
        let began = Instant::now();
        connection.say(send_frame(client_id(), &to, &text)).await?;
        connection.expect("sent").await?;
        times.record(began.elapsed().as_nanos() as u64)?;
    }
    Ok(times)
}

/// All that a server's files take.
fn bytes(data: &Path) -> Result<u64> {
    std::fs::read_dir(data)?.map(|file| Ok(file?.metadata()?.len())).sum()
}
