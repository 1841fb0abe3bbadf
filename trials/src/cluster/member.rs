//! One process of a cluster: started on its own port, found by the line that it prints, told to stop, killed, paused.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::{Failure, Result};

/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a process does in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Keeps ceilings and tables.
    Store,
    /// Hands out numbers.
    Alloc,
    /// Decides who serves what.
    Arbiter,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Role::Store => "store",
            Role::Alloc => "alloc",
            Role::Arbiter => "arbiter",
        }
    }
}

/// A process of the cluster, running or not. Dropping it kills it.
#[derive(Debug)]
pub struct Member {
    name: String,
    role: Role,
    addr: String,
    binary: PathBuf,
    config: PathBuf,
    metrics: Option<String>,
    process: Option<Child>,
}

impl Member {
    pub(super) fn new(name: String, role: Role, addr: String, binary: &Path, config: PathBuf) -> Member {
        Member { name, role, addr, binary: binary.to_owned(), config, metrics: None, process: None }
    }

    pub(super) fn with_metrics(self, addr: String) -> Member {
        Member { metrics: Some(addr), ..self }
    }

    /// What the configuration calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `host:port`
    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// `http://host:port`
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Its process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().and_then(Child::id)
    }

    /// Starts it and waits until it listens.
    pub async fn start(&mut self) -> Result<()> {
        self.start_with(&[]).await
    }

    /// The same with more words on the command line.
    pub async fn start_with(&mut self, words: &[&str]) -> Result<()> {
        let log_path = self.config.with_extension("log");
        let log = std::fs::File::options().create(true).append(true).open(&log_path)?;
        let mut process = Command::new(&self.binary)
            .arg(self.role.word())
            .arg("--config")
            .arg(&self.config)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| Failure::new(format!("{} does not start: {e}", self.binary.display())))?;
        let output = process.stdout.take().ok_or_else(|| Failure::new("the process has no output"))?;
        let mut lines = BufReader::new(output).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                if line.contains("listening on") {
                    return Ok(());
                }
            }
            let log = std::fs::read_to_string(&log_path).unwrap_or_default();
            let last = log.lines().last().unwrap_or("no word").to_owned();
            Err(Failure::new(format!("{} ended before it listened: {last}", self.name)))
        };
        let late = |_| Failure::new(format!("{} does not listen within {PATIENCE:?}", self.name));
        timeout(PATIENCE, listening).await.map_err(late)??;
        // A full pipe would stop the process, so somebody has to go on reading.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        self.process = Some(process);
        Ok(())
    }

    /// Ends it as a power cut would end the process: SIGKILL.
    pub async fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill().await?;
        }
        Ok(())
    }

    /// Asks it to stop, SIGTERM, and waits until it has.
    pub async fn stop(&mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let Some(mut process) = self.process.take() else { return Ok(()) };
        let late = |_| Failure::new(format!("{} does not stop within {PATIENCE:?}", self.name));
        let status = timeout(PATIENCE, process.wait()).await.map_err(late)??;
        if !status.success() {
            return Err(Failure::new(format!("{} did not stop in good order: {status}", self.name)));
        }
        Ok(())
    }

    /// Holds it, SIGSTOP: it neither runs nor notices.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on, SIGCONT.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// The sum over all labels of one of its metrics.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let addr =
            self.metrics.as_ref().ok_or_else(|| Failure::new(format!("{} has no metrics", self.name)))?;
        let mut stream = TcpStream::connect(addr).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let values = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{']))?;
            rest.rsplit(' ').next()?.parse::<f64>().ok()
        });
        values
            .reduce(|sum, value| sum + value)
            .ok_or_else(|| Failure::new(format!("there is no metric {name}")))
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let Some(pid) = self.pid().and_then(|pid| Pid::from_raw(pid as i32)) else { return Ok(()) };
        Ok(kill_process(pid, signal)?)
    }
}
