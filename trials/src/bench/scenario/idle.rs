//! `idle`: what ten thousand users cost who are logged in and connected, and say nothing but heartbeats.

use tempfile::TempDir;

use super::Measured;
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, mib};
use crate::connection::ClientConnection;
use crate::server::Server;
use crate::{Result, users};

const CONNECTIONS: usize = 10_000;
/// Users behind them; each has several devices, since passwords take long to hash.
const USERS: usize = 500;

pub(super) struct Idle {
    data: TempDir,
    tokens: Vec<String>,
}

impl Measured for Idle {
    const NAME: &'static str = "idle";
    const ABOUT: &'static str = "memory of 10,000 logged-in idle connections";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let users = context.scaled(USERS);
        let accounts = users::installed(&context.binary, data.path(), "idle", users).await?;
        Ok(Idle { data, tokens: accounts.into_iter().map(|account| account.token).collect() })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let server = Server::start(&context.binary, self.data.path()).await?;
        let url = server.http()?.socket_url();
        // A first one pays for what all share.
        let _first = connect(&url, &self.tokens[0]).await?;
        let before = server.memory()?;
        let count = context.scaled(CONNECTIONS);
        let mut connections = Vec::with_capacity(count);
        for n in 0..count {
            connections.push(connect(&url, &self.tokens[n % self.tokens.len()]).await?);
        }
        let after = server.memory()?;
        let each = after.saturating_sub(before) as f64 / 1024.0 / count as f64;
        drop(connections);
        server.stop().await?;
        Ok(vec![
            Sample::new("server memory of a connection", each, "KiB").target(Target::AtMost(8.0)),
            Sample::new("server memory with all", mib(after), "MiB"),
        ])
    }
}

async fn connect(url: &str, token: &str) -> Result<ClientConnection> {
    let mut connection = ClientConnection::open(url, token).await?;
    connection.heartbeat(0).await?;
    connection.hear().await?;
    Ok(connection)
}
