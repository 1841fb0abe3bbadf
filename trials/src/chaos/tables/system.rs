//! The system that is broken: one server over its files, or several over one PostgreSQL.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tidemark_test_support::ports::free_port;
use tokio::time::sleep;

use super::Database;
use crate::chaos::servers;
use crate::server::Server;
use crate::servers::Servers;
use crate::{Failure, Result};

/// See the module.
pub(super) enum System {
    One(One),
    Several(Servers, PathBuf),
}

/// A server over its files.
pub(super) struct One {
    binary: PathBuf,
    data: PathBuf,
    tables: u16,
    process: Option<Server>,
}

impl System {
    /// Starts it; data and logs go into `folder`.
    pub(super) async fn start(database: Database, binary: &Path, folder: &Path) -> Result<System> {
        if database == Database::Postgres {
            let servers = Servers::start_with_tables(binary, folder, servers::SERVERS).await?;
            return Ok(System::Several(servers, folder.to_owned()));
        }
        let (binary, data) = (binary.to_owned(), folder.to_owned());
        let mut one = One { binary, data, tables: free_port(), process: None };
        one.run().await?;
        Ok(System::One(one))
    }

    /// Where tables are served.
    pub(super) fn addresses(&self) -> Vec<String> {
        match self {
            System::One(one) => vec![address(one.tables)],
            System::Several(servers, _) => servers.tables().map(address).collect(),
        }
    }

    /// The directory of the data.
    pub(super) fn data(&self) -> PathBuf {
        match self {
            System::One(one) => one.data.clone(),
            System::Several(_, folder) => folder.clone(),
        }
    }

    /// The settings by which commands find the database, named as in the environment.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        match self {
            System::One(_) => Vec::new(),
            System::Several(servers, _) => {
                vec![("TIDEMARK_STORAGE__DATABASE_URL", servers.database_url().to_owned())]
            }
        }
    }

    /// Breaks something, and mends it; says what it was.
    pub(super) async fn break_something(&mut self, random: &mut StdRng) -> Result<String> {
        match self {
            System::One(one) => {
                let is_kill = random.random_ratio(4, 5);
                if is_kill {
                    one.kill().await?;
                    sleep(Duration::from_millis(random.random_range(0..300))).await;
                } else {
                    one.stop().await?;
                }
                one.run().await?;
                Ok(if is_kill { "Kill" } else { "Stop" }.to_owned())
            }
            System::Several(servers, _) => {
                let fault = servers::ServersFault::draw(random);
                servers::carry_out(fault, servers, random.random_range(0..1_500)).await?;
                Ok(format!("{fault:?}"))
            }
        }
    }

    /// Asks every server to stop, and waits until all have ended well.
    pub(super) async fn stop(&mut self) -> Result<()> {
        match self {
            System::One(one) => one.stop().await,
            System::Several(servers, _) => {
                for at in 0..servers.count() {
                    servers.stop(at).await?;
                }
                Ok(())
            }
        }
    }

    /// Starts every server again.
    pub(super) async fn go_on(&mut self) -> Result<()> {
        match self {
            System::One(one) => one.run().await,
            System::Several(servers, _) => {
                for at in 0..servers.count() {
                    servers.run(at).await?;
                }
                Ok(())
            }
        }
    }
}

impl One {
    async fn run(&mut self) -> Result<()> {
        let settings = [("TIDEMARK_TABLE__LISTEN", address(self.tables))];
        let server = Server::start_with(&settings, 0, &self.binary, &self.data).await?;
        self.process = Some(server);
        Ok(())
    }

    async fn kill(&mut self) -> Result<()> {
        match self.process.take() {
            Some(server) => server.kill().await,
            None => Ok(()),
        }
    }

    async fn stop(&mut self) -> Result<()> {
        let Some(server) = self.process.take() else { return Ok(()) };
        let ended = server.stop().await?;
        match ended.success() {
            true => Ok(()),
            false => Err(Failure::new(format!("asked to stop, the server ended with {ended}"))),
        }
    }
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}
