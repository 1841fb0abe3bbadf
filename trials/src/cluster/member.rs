//! One process of a cluster: started on its own port, found by the line that it prints, told to stop, killed, paused.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tidemark_client::Http;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::{Failure, Result};

/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The role of a process in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessRole {
    /// Keeps ceilings and tables.
    Store,
    /// The same, a member of an etcd cluster.
    Etcd,
    /// Hands out numbers.
    Alloc,
    /// Decides who serves what.
    Arbiter,
}

impl ProcessRole {
    /// The program's word for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            ProcessRole::Store => "store",
            ProcessRole::Etcd => "etcd",
            ProcessRole::Alloc => "alloc",
            ProcessRole::Arbiter => "arbiter",
        }
    }
}

/// A process of the cluster, running or not. Dropping it kills it.
#[derive(Debug)]
pub struct ClusterMember {
    name: String,
    role: ProcessRole,
    addr: String,
    binary: PathBuf,
    words: Vec<String>,
    log: PathBuf,
    metrics: Option<String>,
    process: Option<Child>,
}

impl ClusterMember {
    /// A process that runs `seqsvr` with this configuration file.
    pub(super) fn new(
        name: String,
        role: ProcessRole,
        addr: String,
        binary: &Path,
        config: PathBuf,
    ) -> ClusterMember {
        let words = [role.word(), "--config", &config.display().to_string()].map(str::to_owned).to_vec();
        let log = config.with_extension("log");
        ClusterMember {
            name,
            role,
            addr,
            binary: binary.to_owned(),
            words,
            log,
            metrics: None,
            process: None,
        }
    }

    /// A process that runs `etcd` with these words.
    pub(super) fn etcd(name: String, addr: String, words: Vec<String>, folder: &Path) -> ClusterMember {
        let log = folder.join(format!("{name}.log"));
        ClusterMember {
            name,
            role: ProcessRole::Etcd,
            addr,
            binary: "etcd".into(),
            words,
            log,
            metrics: None,
            process: None,
        }
    }

    /// Its role.
    pub fn role(&self) -> ProcessRole {
        self.role
    }

    pub(super) fn with_metrics(self, addr: String) -> ClusterMember {
        ClusterMember { metrics: Some(addr), ..self }
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its configuration file, which stands beside its log.
    pub fn config(&self) -> PathBuf {
        self.log.with_extension("toml")
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
        let log = std::fs::File::options().create(true).append(true).open(&self.log)?;
        let mut process = Command::new(&self.binary)
            .args(&self.words)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            // Ctrl-C is for whoever started the cluster, who stops it in good order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| Failure::new(format!("{} does not start: {e}", self.binary.display())))?;
        let output = process.stdout.take().ok_or_else(|| Failure::new("the process has no output"))?;
        let mut lines = BufReader::new(output).lines();
        let late = |_| Failure::new(format!("{} does not listen within {PATIENCE:?}", self.name));
        if self.role == ProcessRole::Etcd {
            // It is well only when most members are there; the caller waits for that.
            self.process = Some(process);
        } else {
            let listening = async {
                while let Some(line) = lines.next_line().await? {
                    if line.contains("listening on") {
                        return Ok(());
                    }
                }
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                let last = log.lines().last().unwrap_or("no word").to_owned();
                Err(Failure::new(format!("{} ended before it listened: {last}", self.name)))
            };
            timeout(PATIENCE, listening).await.map_err(late)??;
            self.process = Some(process);
        }
        // A full pipe would stop the process, so somebody has to go on reading.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(())
    }

    /// Waits until it is well, which StoreSvrs and the others are as soon as they listen.
    pub(super) async fn is_well(&self) -> Result<()> {
        if self.role != ProcessRole::Etcd {
            return Ok(());
        }
        let well = async {
            // One without a leader says so by its status.
            while Http::new(&self.url())?.health().await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        let late = |_| Failure::new(format!("{} is not well within {PATIENCE:?}", self.name));
        timeout(PATIENCE, well).await.map_err(late)?
    }

    /// Ends it as a power cut would end the process: SIGKILL.
    pub async fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill().await?;
        }
        Ok(())
    }

    /// Kills it, and takes away what it had on disk.
    pub async fn lose_disk(&mut self) -> Result<()> {
        self.kill().await?;
        // Its directory stands beside its log, under its name.
        Ok(std::fs::remove_dir_all(self.log.with_extension(""))?)
    }

    /// Asks it to stop, SIGTERM, and waits until it has.
    pub async fn stop(&mut self) -> Result<()> {
        self.ask_to_stop()?;
        self.stopped().await
    }

    pub(super) fn ask_to_stop(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Waits until it has stopped in good order.
    pub(super) async fn stopped(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        let late = |_| Failure::new(format!("{} does not stop within {PATIENCE:?}", self.name));
        let status = timeout(PATIENCE, process.wait()).await.map_err(late)??;
        // etcd ends in good order by the signal that asked it to.
        let asked = self.role == ProcessRole::Etcd && status.signal() == Some(Signal::TERM.as_raw());
        if !status.success() && !asked {
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
        let text = Http::new(&format!("http://{addr}"))?.metrics().await?;
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
