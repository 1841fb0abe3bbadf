//! A real `tidemark serve` process: started on a free port, found by the line that it prints, ended when dropped.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tidemark_client::Http;
use tidemark_test_support::ports::free_port;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use crate::{Failure, Result, cpu};

/// How long a start may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Limits of the server that a benchmark or fault run lifts: here one address signs up, connects and sends for everybody.
const LIFTED: &[(&str, &str)] = &[
    ("TIDEMARK_LIMITS__SIGN_UPS_PER_ADDRESS_PER_MINUTE", "0"),
    ("TIDEMARK_LIMITS__LOG_INS_PER_ADDRESS_PER_MINUTE", "0"),
    ("TIDEMARK_LIMITS__LOG_INS_PER_NAME_PER_MINUTE", "0"),
    ("TIDEMARK_LIMITS__SENDS_PER_ACCOUNT_PER_SECOND", "0"),
    ("TIDEMARK_LIMITS__FAN_OUT_KIB_PER_ACCOUNT_PER_SECOND", "0"),
    ("TIDEMARK_LIMITS__STRANGERS_PER_ACCOUNT_PER_DAY", "0"),
    ("TIDEMARK_LIMITS__FIRST_MESSAGES_PER_ACCOUNT_PER_DAY", "0"),
    ("TIDEMARK_LIMITS__STORED_KIB_PER_ACCOUNT_PER_DAY", "0"),
    ("TIDEMARK_LIMITS__FRAMES_PER_CONNECTION_PER_SECOND", "0"),
    ("TIDEMARK_LIMITS__READ_KIB_PER_ACCOUNT_PER_SECOND", "0"),
    ("TIDEMARK_LIMITS__CONNECTIONS_PER_ADDRESS", "100000"),
    ("TIDEMARK_TABLE__KIB_PER_KEY_PER_SECOND", "0"),
];

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    process: Child,
    address: String,
    started_in: Duration,
}

impl Server {
    /// Starts `binary` over the data in `data`, on a free port, and waits until it listens.
    pub async fn start(binary: &Path, data: &Path) -> Result<Server> {
        Server::start_at(0, binary, data).await
    }

    /// The same on this port: that of a server that has ended.
    pub async fn start_at(port: u16, binary: &Path, data: &Path) -> Result<Server> {
        Server::start_with(&[], port, binary, data).await
    }

    /// The same with these settings, named as in the environment.
    pub async fn start_with(
        settings: &[(&str, String)],
        port: u16,
        binary: &Path,
        data: &Path,
    ) -> Result<Server> {
        Server::launch(LIFTED, settings, port, binary, data).await
    }

    /// The same with the limits that the program has by itself.
    pub async fn start_as_shipped(binary: &Path, data: &Path) -> Result<Server> {
        Server::start_as_shipped_with(&[], binary, data).await
    }

    /// The same with these settings.
    pub async fn start_as_shipped_with(
        settings: &[(&str, String)],
        binary: &Path,
        data: &Path,
    ) -> Result<Server> {
        Server::launch(&[], settings, 0, binary, data).await
    }

    async fn launch(
        lifted: &[(&str, &str)],
        settings: &[(&str, String)],
        port: u16,
        binary: &Path,
        data: &Path,
    ) -> Result<Server> {
        // It comes back to this port after a kill, so no connection may take it meanwhile.
        let port = if port == 0 { free_port() } else { port };
        let log = std::fs::File::options().create(true).append(true).open(data.join("trial.log"))?;
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(data);
        command.envs(lifted.iter().copied()).envs(settings.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let began = Instant::now();
        let mut process =
            command.spawn().map_err(|e| Failure::new(format!("{} did not start: {e}", binary.display())))?;
        let output = process.stdout.take().ok_or_else(|| Failure::new("the server has no output"))?;
        let mut lines = BufReader::new(output).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                if let Some((_, address)) = line.split_once("listening on ") {
                    return Ok(address.trim().to_owned());
                }
            }
            let log = std::fs::read_to_string(data.join("trial.log")).unwrap_or_default();
            let last = log.lines().last().unwrap_or("no word").to_owned();
            Err(Failure::new(format!("the server ended before it listened: {last}")))
        };
        let late = |_| Failure::new(format!("the server did not listen within {PATIENCE:?}"));
        let address = timeout(PATIENCE, listening).await.map_err(late)??;
        let started_in = began.elapsed();
        // A full pipe would stop the server, so somebody has to go on reading.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Server { process, address, started_in })
    }

    /// Its address, `http://…`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The same as `HOST:PORT`.
    pub fn host(&self) -> &str {
        self.address.trim_start_matches("http://").trim_end_matches('/')
    }

    /// The port of its address.
    pub fn port(&self) -> Result<u16> {
        let port = self.address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        port.ok_or_else(|| Failure::new(format!("{} has no port", self.address)))
    }

    /// From the start of the process to the line that tells the address.
    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// Calls to it, without a token.
    pub fn http(&self) -> Result<Http> {
        Ok(Http::new(&self.address)?)
    }

    /// Its process id.
    pub fn pid(&self) -> Result<u32> {
        self.process
            .id()
            .ok_or_else(|| Failure::new("the server has ended by itself: see trial.log in its data folder"))
    }

    /// Ends it as a power cut would end the process: SIGKILL, no goodbye.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.process.kill().await?)
    }

    /// Asks it to stop (SIGTERM) and waits for the end.
    pub async fn stop(mut self) -> Result<ExitStatus> {
        let pid = self.pid()?.to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().await?;
        if !asked.success() {
            return Err(Failure::new("the server could not be asked to stop"));
        }
        let late = |_| Failure::new("the server did not stop within a minute of SIGTERM");
        Ok(timeout(Duration::from_secs(60), self.process.wait()).await.map_err(late)??)
    }

    /// Bytes of memory that are its own, now.
    pub fn memory(&self) -> Result<u64> {
        memory_line(self.pid()?, "VmRSS:")
    }

    /// The most bytes of memory that it ever had.
    pub fn peak_memory(&self) -> Result<u64> {
        memory_line(self.pid()?, "VmHWM:")
    }

    /// Seconds that it had the processor so far.
    pub fn processor_seconds(&self) -> Result<f64> {
        Ok(cpu::of_process(self.pid()?)?.own)
    }

    /// System calls that read files so far; sockets are not among them, databases are.
    pub fn file_reads(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.pid()?))?;
        number_after(&text, "syscr:")
    }
}

/// Bytes that this process, and those for whose end it waited, have written to the disk.
pub fn written_bytes() -> Result<u64> {
    number_after(&std::fs::read_to_string("/proc/self/io")?, "write_bytes:")
}

fn memory_line(pid: u32, key: &str) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(number_after(&text, key)? * 1024)
}

fn number_after(text: &str, key: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    word.and_then(|word| word.parse().ok())
        .ok_or_else(|| Failure::new(format!("the system does not tell {key}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_line_is_found() {
        let text = "Name:\ttidemark\nVmHWM:\t   12345 kB\nVmRSS:\t    9876 kB\n";
        assert_eq!(number_after(text, "VmRSS:").expect("there"), 9876);
        assert!(number_after(text, "VmSwap:").is_err());
    }

    #[test]
    fn this_process_has_memory() {
        assert!(memory_line(std::process::id(), "VmRSS:").expect("there") > 100 * 1024);
    }
}
