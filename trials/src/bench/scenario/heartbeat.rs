//! `heartbeat`: up-to-date clients asking "anything new?", against an echo of the same frames; and no storage read.

use tempfile::TempDir;
use tidemark_client::{Socket, SocketOptions};

use super::Measured;
use crate::bench::baseline::process::BareProcess;
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, peak_memory, rate};
use crate::connection::{ClientConnection, heartbeat};
use crate::server::Server;
use crate::{Result, users};

const CONNECTIONS: usize = 50;
const IN_FLIGHT: usize = 16;
/// Heartbeats of each connection in a run.
const EACH: usize = 20_000;

pub(super) struct Heartbeat {
    server: Server,
    echo: BareProcess,
    /// Tokens, and the newest number of each.
    users: Vec<(String, u64)>,
    _data: TempDir,
}

impl Measured for Heartbeat {
    const NAME: &'static str = "heartbeat";
    const ABOUT: &'static str = "up-to-date heartbeats, 50 connections with 16 in flight";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let accounts = users::installed(&context.binary, data.path(), "beat", CONNECTIONS).await?;
        let server = Server::start(&context.binary, data.path()).await?;
        let http = server.http()?;
        let mut users = Vec::new();
        for account in accounts {
            let seq = http.with_token(&account.token).seq().await?.seq;
            users.push((account.token, seq));
        }
        let echo = BareProcess::start(&["echo"]).await?;
        Ok(Heartbeat { server, echo, users, _data: data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let each = context.scaled(EACH);
        let mut echoed = Vec::new();
        for _ in 0..CONNECTIONS {
            let url = format!("ws://{}/ws", self.echo.address());
            let socket = Socket::connect(&url, "none", &SocketOptions::default()).await?;
            echoed.push((ClientConnection::over(socket.into_stream()), 0));
        }
        let bare = beats(echoed, each).await?;

        let url = self.server.http()?.socket_url();
        let mut connections = Vec::new();
        for (token, seq) in &self.users {
            let mut connection = ClientConnection::open(&url, token).await?;
            connection.begin_at(*seq).await?;
            connections.push((connection, *seq));
        }
        let reads = self.server.file_reads()?;
        let ours = beats(connections, each).await?;
        let reads = self.server.file_reads()? - reads;
        Ok(vec![
            Sample::new("up to date, 50 × 16 in flight", ours, "heartbeats/s")
                .against("axum echo", bare)
                .target(Target::RatioAtLeast(0.7)),
            Sample::new("file reads meanwhile", reads as f64, "reads").target(Target::AtMost(0.0)),
            peak_memory("peak server memory", &self.server)?,
        ])
    }
}

/// Heartbeats a second, over all connections.
async fn beats(connections: Vec<(ClientConnection, u64)>, each: usize) -> Result<f64> {
    let total = connections.len() * each;
    rate(total, connections.into_iter().map(|(connection, seq)| beat(connection, seq, each))).await
}

/// Keeps 16 heartbeats in flight: as many go out as answers came in.
async fn beat(mut connection: ClientConnection, seq: u64, each: usize) -> Result<()> {
    let frame = tokio_tungstenite::tungstenite::Utf8Bytes::from(heartbeat(seq));
    let mut asked = 0;
    for _ in 0..IN_FLIGHT.min(each) {
        connection.feed(frame.clone()).await?;
        asked += 1;
    }
    connection.flush().await?;
    for _ in 0..each {
        connection.hear().await?;
        if asked < each {
            connection.say(frame.clone()).await?;
            asked += 1;
        }
    }
    Ok(())
}
