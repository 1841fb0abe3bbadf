//! `send-search`: messages a second with the index and without it.

use std::time::Duration;

use tempfile::TempDir;
use tidemark_client::Account;
use tokio::time::sleep;

use super::super::Measured;
use super::super::send::keep_in_flight;
use super::texts::text;
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, rate};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::server::Server;
use crate::{Result, users};

/// Senders, how many messages each keeps in flight, and how many each sends.
const SENDERS: usize = 20;
const IN_FLIGHT: usize = 16;
const EACH: usize = 15_000;

/// With the index, and without: each has files of its own, so that the one has nothing to index of the other.
pub(in crate::bench::scenario) struct SendSearch {
    parts: [(Vec<Account>, TempDir); 2],
}

impl Measured for SendSearch {
    const NAME: &'static str = "send-search";
    const ABOUT: &'static str =
        "texts of words a second with the index of words, against without: 20 senders × 16 in flight";

    async fn prepare(context: &Context) -> Result<Self> {
        let [with, without] = [context.fresh()?, context.fresh()?];
        let of_with = users::installed(&context.binary, with.path(), "words", 2 * SENDERS).await?;
        let of_without = users::installed(&context.binary, without.path(), "words", 2 * SENDERS).await?;
        Ok(SendSearch { parts: [(of_with, with), (of_without, without)] })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let each = context.scaled(EACH);
        let without = self.part(context, each, false).await?.0;
        let (with, bytes) = self.part(context, each, true).await?;
        Ok(vec![
            Sample::new("with the index", with, "messages/s")
                .against("without", without)
                .target(Target::RatioAtLeast(0.9)),
            Sample::new("index on disk, when all is indexed", bytes, "B a copy"),
        ])
    }
}

impl SendSearch {
    /// Messages a second, and bytes of the index for each copy.
    async fn part(&self, context: &Context, each: usize, is_indexed: bool) -> Result<(f64, f64)> {
        let (accounts, data) = &self.parts[usize::from(!is_indexed)];
        let settings = [("TIDEMARK_SEARCH__INDEX", is_indexed.to_string())];
        let server = Server::start_with(&settings, 0, &context.binary, data.path()).await?;
        let (url, index) = (server.http()?.socket_url(), data.path().join("search.db"));
        let size = || std::fs::metadata(&index).map_or(0, |found| found.len());
        let before = size();
        let mut tasks = Vec::new();
        for pair in accounts.chunks_exact(2) {
            let connection = ClientConnection::open(&url, &pair[0].token).await?;
            tasks.push(send(connection, pair[1].uid, each));
        }
        let sent = rate(SENDERS * each, tasks).await?;
        while is_indexed && is_behind(&server).await? {
            sleep(Duration::from_millis(100)).await;
        }
        server.stop().await?;
        let bytes = size().saturating_sub(before) as f64 / (2 * SENDERS * each) as f64;
        Ok((sent, bytes))
    }
}

async fn is_behind(server: &Server) -> Result<bool> {
    let metrics = server.http()?.metrics().await?;
    Ok(!metrics.lines().any(|line| line == "tidemark_search_waiting 0"))
}

async fn send(connection: ClientConnection, to: u32, each: usize) -> Result<()> {
    let to = format!(r#"{{"user":{to}}}"#);
    keep_in_flight(connection, IN_FLIGHT, each, || send_frame(client_id(), &to, &text())).await
}
