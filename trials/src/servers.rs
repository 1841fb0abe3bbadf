//! Several real `tidemark serve` processes over one PostgreSQL, mostly of their own, or one over its files. Owns all of them: dropped,
//! they end. Used by `cargo xtask cluster --chat`, by the fault runs and by the measurements.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use tidemark_client::Http;
use tidemark_test_support::servers::postgres;

use crate::server::Server;
use crate::{Failure, Result};

/// See the module.
pub struct Servers {
    members: Vec<ServerSlot>,
    database: Option<postgres::Server>,
    /// Of PostgreSQL; `None`: a server over its files.
    url: Option<String>,
    binary: PathBuf,
    folder: PathBuf,
    settings: Vec<(&'static str, String)>,
}

/// One server, running or not.
struct ServerSlot {
    folder: PathBuf,
    port: u16,
    /// The port of its tables, if it serves any.
    tables: Option<u16>,
    process: Option<Server>,
}

impl Servers {
    /// Starts a PostgreSQL that syncs what it commits, and `count` servers of `binary` over it, whose logs go into `folder`.
    pub async fn start(binary: &Path, folder: &Path, count: usize) -> Result<Servers> {
        Servers::start_with(binary, folder, count, Vec::new()).await
    }

    /// The same with these settings of each server, named as in the environment.
    pub async fn start_with(
        binary: &Path,
        folder: &Path,
        count: usize,
        settings: Vec<(&'static str, String)>,
    ) -> Result<Servers> {
        let database = tokio::task::spawn_blocking(|| postgres::Server::start_with("-c fsync=on")).await?;
        Servers::start_over(database, binary, folder, count, settings).await
    }

    /// The same over a new database of `database`.
    pub async fn start_over(
        database: postgres::Server,
        binary: &Path,
        folder: &Path,
        count: usize,
        settings: Vec<(&'static str, String)>,
    ) -> Result<Servers> {
        let url = database.new_database().await;
        let mut servers = Servers::start_at(url, binary, folder, count, settings).await?;
        servers.database = Some(database);
        Ok(servers)
    }

    /// The same over the empty database at `url`, which is somebody else's.
    pub async fn start_at(
        url: String,
        binary: &Path,
        folder: &Path,
        count: usize,
        settings: Vec<(&'static str, String)>,
    ) -> Result<Servers> {
        let mut servers = Servers { url: Some(url), ..Servers::over_files(binary, folder, settings) };
        for _ in 0..count {
            servers.add(None).await?;
        }
        Ok(servers)
    }

    /// None so far, and one at most, over the files in `folder`.
    pub fn over_files(binary: &Path, folder: &Path, settings: Vec<(&'static str, String)>) -> Servers {
        let (binary, folder) = (binary.to_owned(), folder.to_owned());
        Servers { members: Vec::new(), database: None, url: None, binary, folder, settings }
    }

    /// Starts one more, which serves tables on this port if it is given.
    pub async fn add(&mut self, tables: Option<u16>) -> Result<()> {
        let at = self.members.len();
        let folder = if self.url.is_some() { self.folder.join(name(at)) } else { self.folder.clone() };
        std::fs::create_dir_all(&folder)?;
        self.members.push(ServerSlot { folder, port: 0, tables, process: None });
        self.run(at).await
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Where their PostgreSQL is, if they are over one.
    pub fn database_url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Their database.
    ///
    /// # Panics
    /// When it is somebody else's.
    pub fn database(&self) -> &postgres::Server {
        self.database.as_ref().expect("it is their own")
    }

    /// A server that runs.
    pub fn server(&self, at: usize) -> Result<&Server> {
        let process = self.members[at].process.as_ref();
        process.ok_or_else(|| Failure::new(format!("{} does not run", name(at))))
    }

    /// Calls to any of them, without a token. Those that do not run count as well: they come back at their address.
    pub fn http(&self) -> Result<Http> {
        let addresses: Vec<String> =
            self.members.iter().map(|member| format!("http://127.0.0.1:{}", member.port)).collect();
        Ok(Http::any_of(&addresses.iter().map(String::as_str).collect::<Vec<_>>())?)
    }

    /// The ports at which tables are served.
    pub fn tables(&self) -> impl Iterator<Item = u16> + '_ {
        self.members.iter().filter_map(|member| member.tables)
    }

    /// Starts a server, on the port that it had before.
    pub async fn run(&mut self, at: usize) -> Result<()> {
        let mut settings = self.settings.clone();
        if let Some(url) = &self.url {
            settings.push(("TIDEMARK_STORAGE__DATABASE_URL", url.clone()));
            settings.push(("TIDEMARK_SERVER__MACHINE_ID", at.to_string()));
        }
        let member = &mut self.members[at];
        settings.extend(member.tables.map(|port| ("TIDEMARK_TABLE__LISTEN", format!("127.0.0.1:{port}"))));
        let server = Server::start_with(&settings, member.port, &self.binary, &member.folder).await?;
        member.port = server.port()?;
        member.process = Some(server);
        Ok(())
    }

    /// Ends a server at once (SIGKILL).
    pub async fn kill(&mut self, at: usize) -> Result<()> {
        match self.members[at].process.take() {
            Some(server) => server.kill().await,
            None => Ok(()),
        }
    }

    /// Asks a server to stop, and waits until it has ended well.
    pub async fn stop(&mut self, at: usize) -> Result<()> {
        let Some(server) = self.members[at].process.take() else { return Ok(()) };
        let ended = server.stop().await?;
        match ended.success() {
            true => Ok(()),
            false => Err(Failure::new(format!("asked to stop, {} ended with {ended}", name(at)))),
        }
    }

    /// Stops all servers.
    pub async fn stop_all(&mut self) -> Result<()> {
        for at in 0..self.count() {
            self.stop(at).await?;
        }
        Ok(())
    }

    /// Starts all servers again.
    pub async fn run_all(&mut self) -> Result<()> {
        for at in 0..self.count() {
            self.run(at).await?;
        }
        Ok(())
    }

    /// Lets a server stand still (SIGSTOP), or go on.
    pub fn pause(&self, at: usize, stands: bool) -> Result<()> {
        let pid = self.server(at)?.pid()?;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::new("a process id out of range"))?;
        Ok(kill_process(pid, if stands { Signal::STOP } else { Signal::CONT })?)
    }
}

/// The name of a server.
pub fn name(at: usize) -> String {
    format!("server{}", at + 1)
}
