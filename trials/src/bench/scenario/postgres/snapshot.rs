//! `snapshot`: sends while somebody holds a snapshot of the database, as a backup or a long report does, and none of the old
//! versions of the heads may go.

use std::time::Duration;

use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;
use tidemark_client::Account;
use tokio::time::Instant;

use super::{database, within_patience};
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::bench::scenario::send_latency::micros;
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::servers::Servers;
use crate::{Result, users};

const SENDERS: usize = 10;
/// Between two messages of a sender.
const EVERY: Duration = Duration::from_millis(50);

pub(in crate::bench::scenario) struct Snapshot {
    servers: Servers,
    accounts: Vec<Account>,
    _logs: TempDir,
}

impl Measured for Snapshot {
    const NAME: &'static str = "snapshot";
    const ABOUT: &'static str =
        "200 messages/s over PostgreSQL while a snapshot is held (--hold), and without it";

    async fn prepare(context: &Context) -> Result<Self> {
        let logs = context.fresh()?;
        let servers = Servers::start_over(database().await?, &context.binary, logs.path(), 1, vec![]).await?;
        let accounts = users::sign_up(&servers.server(0)?.http()?, "snapshot", SENDERS * 2).await?;
        Ok(Snapshot { servers, accounts, _logs: logs })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let lasting = if context.quick { context.hold / 10 } else { context.hold };
        let mut watch = PgConnection::connect(self.servers.database_url()).await?;
        let free = within_patience(self.load(lasting)).await?;

        let mut holder = PgConnection::connect(self.servers.database_url()).await?;
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
        holder.execute("SELECT count(*) FROM heads").await?;
        let before = updates(&mut watch).await?;
        let held = within_patience(self.load(lasting)).await?;
        let (all, hot, dead) = updates(&mut watch).await?;
        holder.execute("ROLLBACK").await?;
        watch.execute("VACUUM heads, conversations").await?;

        let quantile = |name: &str, quantile| {
            Sample::new(format!("to sent, {name}"), micros(&held, quantile), "µs")
                .against("without it", micros(&free, quantile))
        };
        Ok(vec![
            quantile("p50", 0.5),
            quantile("p99", 0.99).target(Target::RatioAtMost(2.0)),
            Sample::new("for how long it is held", lasting.as_secs_f64(), "s"),
            Sample::new("dead versions of heads then", dead, "rows"),
            Sample::new(
                "updates of heads within their page (HOT)",
                (hot - before.1) / (all - before.0) * 100.0,
                "%",
            ),
        ])
    }
}

/// Updates of heads so far, those within their page, and dead versions.
async fn updates(watch: &mut PgConnection) -> Result<(f64, f64, f64)> {
    let asked = "SELECT n_tup_upd::float8, n_tup_hot_upd::float8, n_dead_tup::float8 FROM pg_stat_user_tables WHERE relname = 'heads'";
    Ok(sqlx::query_as(asked).fetch_one(watch).await?)
}

impl Snapshot {
    /// Sends at an even pace, each sender to a receiver of its own; nanoseconds to `sent`.
    async fn load(&self, lasting: Duration) -> Result<Histogram<u64>> {
        let url = self.servers.server(0)?.http()?.socket_url();
        let mut senders = Vec::new();
        for pair in self.accounts.chunks_exact(2) {
            let connection = ClientConnection::open(&url, &pair[0].token).await?;
            senders.push((connection, format!(r#"{{"user":{}}}"#, pair[1].uid)));
        }
        let tasks = senders.into_iter().enumerate().map(|(at, (connection, to))| {
            let offset = EVERY * at as u32 / SENDERS as u32;
            tokio::spawn(paced(connection, to, offset, lasting))
        });
        let mut all = Histogram::new(3)?;
        for times in try_join_all(tasks).await? {
            all.add(times?)?;
        }
        Ok(all)
    }
}

/// One sender. A message that is late for its time counts from then.
async fn paced(
    mut connection: ClientConnection,
    to: String,
    offset: Duration,
    lasting: Duration,
) -> Result<Histogram<u64>> {
    let (mut times, begun) = (Histogram::new(3)?, Instant::now() + offset);
    let text = "x".repeat(200);
    for turn in 0..(lasting.as_nanos() / EVERY.as_nanos()) as u32 {
        let due = begun + EVERY * turn;
        tokio::time::sleep_until(due).await;
        connection.say(send_frame(client_id(), &to, &text)).await?;
        connection.expect("sent").await?;
        times.record(due.elapsed().as_nanos() as u64)?;
    }
    Ok(times)
}
