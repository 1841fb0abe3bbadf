//! `search` and `search-postgres`: the time of a search in small and large inboxes among ten million messages, and what the index takes.
//! `send-search`: what the index costs those who send.

mod fill;
mod send;
mod texts;

pub(super) use send::SendSearch;

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use tidemark_client::{Account, Http, SearchQuery};
use tokio::process::Command;
use tokio::time::sleep;

use super::Measured;
use super::postgres::database;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::server::Server;
use crate::servers::Servers;
use crate::{Failure, Result, users};

/// The inboxes that are searched: their messages, and milliseconds that half of the searches may take.
const INBOXES: [(usize, f64); 3] = [(1_000, 20.0), (100_000, 50.0), (1_000_000, 150.0)];
/// All messages.
const MESSAGES: usize = 10_000_000;
/// Those of each other inbox, and the first of their owners, who have no account.
const OTHERS: usize = 1_000;
const FIRST_OTHER: u32 = 2_000_000;
/// How often each search is made.
const ROUNDS: usize = 5;
/// Of all searches one in a hundred may take so many times as long as half of them.
const SLOWEST: f64 = 5.0;
/// For how long an index may be built.
const PATIENCE: Duration = Duration::from_secs(7_200);

/// All inboxes, those of the accounts first.
fn inboxes(context: &Context, accounts: &[Account]) -> Vec<(u32, usize)> {
    let own = accounts.iter().zip(INBOXES).map(|(account, (rows, _))| (account.uid, context.scaled(rows)));
    let mut all: Vec<(u32, usize)> = own.collect();
    let rest = context.scaled(MESSAGES).saturating_sub(all.iter().map(|(_, rows)| rows).sum());
    all.extend((0..rest / OTHERS).map(|n| (FIRST_OTHER + n as u32, OTHERS)));
    all
}

/// Waits until all inboxes are indexed.
async fn indexed(http: &Http) -> Result<()> {
    let began = Instant::now();
    loop {
        let metrics = http.metrics().await?;
        if metrics.lines().any(|line| line == "tidemark_search_walked 1.0") {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(Failure::new("the index was not built in time"));
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// The times of all searches in each inbox.
async fn searches(context: &Context, http: &Http, accounts: &[Account]) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for (account, (rows, most)) in accounts.iter().zip(INBOXES) {
        let http = http.with_token(&account.token);
        let (mut all, mut slowest) = (Histogram::<u64>::new(3)?, (0.0, ""));
        for (nature, searches) in texts::searches() {
            let mut own = Histogram::<u64>::new(3)?;
            for _ in 0..ROUNDS {
                for words in &searches {
                    let query = SearchQuery { words: Some(words.clone()), ..SearchQuery::default() };
                    let began = Instant::now();
                    http.search(&query).await?;
                    own.record(began.elapsed().as_nanos() as u64)?;
                }
            }
            let median = own.value_at_quantile(0.5) as f64 / 1e6;
            if median > slowest.0 {
                slowest = (median, nature);
            }
            all.add(own)?;
        }
        let of = |quantile| all.value_at_quantile(quantile) as f64 / 1e6;
        let name = format!("inbox of {} messages", context.scaled(rows));
        samples.push(Sample::new(format!("{name}, p50"), of(0.5), "ms").target(Target::AtMost(most)));
        samples
            .push(Sample::new(format!("{name}, p99"), of(0.99), "ms").target(Target::AtMost(SLOWEST * most)));
        samples.push(Sample::new(
            format!("{name}, p50 of the slowest kind ({})", slowest.1),
            slowest.0,
            "ms",
        ));
    }
    Ok(samples)
}

pub(super) struct Search {
    accounts: Vec<Account>,
    messages: usize,
    data: TempDir,
}

impl Measured for Search {
    const NAME: &'static str = "search";
    const ABOUT: &'static str = "searches in inboxes of 1,000, 100,000 and 1,000,000 among 10 million messages, words and parts, English and Chinese";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let accounts = users::installed(&context.binary, data.path(), "search", INBOXES.len()).await?;
        let inboxes = inboxes(context, &accounts);
        fill::sqlite(data.path(), &inboxes)?;
        // The sequences know nothing of these rows: this leads them past all of them.
        let restored =
            Command::new(&context.binary).arg("restored").arg("--data-dir").arg(data.path()).output().await?;
        if !restored.status.success() {
            return Err(Failure::new(String::from_utf8_lossy(&restored.stderr)));
        }
        Ok(Search { accounts, messages: inboxes.iter().map(|(_, rows)| rows).sum(), data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let index = self.data.path().join("search.db");
        // That of the run before.
        _ = std::fs::remove_file(&index);
        let server = Server::start(&context.binary, self.data.path()).await?;
        let http = server.http()?;
        let began = Instant::now();
        indexed(&http).await?;
        let seconds = began.elapsed().as_secs_f64();
        let mut samples = searches(context, &http, &self.accounts).await?;
        server.stop().await?;
        let bytes = std::fs::metadata(&index)?.len() as f64;
        samples.push(Sample::new(
            "messages indexed beside the server",
            self.messages as f64 / seconds,
            "messages/s",
        ));
        samples.push(Sample::new(
            "index on disk, of all messages",
            bytes / self.messages as f64,
            "B a message",
        ));
        Ok(samples)
    }
}

pub(super) struct SearchPostgres {
    servers: Servers,
    accounts: Vec<Account>,
    messages: usize,
    _logs: TempDir,
}

impl Measured for SearchPostgres {
    const NAME: &'static str = "search-postgres";
    const ABOUT: &'static str = "the same over PostgreSQL";

    async fn prepare(context: &Context) -> Result<Self> {
        let logs = context.fresh()?;
        let mut servers =
            Servers::start_over(database().await?, &context.binary, logs.path(), 1, vec![]).await?;
        let accounts = users::sign_up(&servers.server(0)?.http()?, "search", INBOXES.len()).await?;
        servers.stop(0).await?;
        let inboxes = inboxes(context, &accounts);
        fill::postgres(url_of(&servers)?, &inboxes).await?;
        servers.run(0).await?;
        indexed(&servers.server(0)?.http()?).await?;
        let messages = inboxes.iter().map(|(_, rows)| rows).sum();
        Ok(SearchPostgres { servers, accounts, messages, _logs: logs })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = searches(context, &self.servers.server(0)?.http()?, &self.accounts).await?;
        let mut connection = PgConnection::connect(url_of(&self.servers)?).await?;
        let bytes: i64 = sqlx::query_scalar(
            "SELECT pg_total_relation_size('search_segments') + pg_total_relation_size('search_parts')",
        )
        .fetch_one(&mut connection)
        .await?;
        let each = bytes as f64 / self.messages as f64;
        samples.push(Sample::new("index on disk, of all messages", each, "B a message"));
        Ok(samples)
    }
}

fn url_of(servers: &Servers) -> Result<&str> {
    servers.database_url().ok_or_else(|| Failure::new("the servers have no database"))
}
