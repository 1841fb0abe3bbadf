//! Redis as people would use it for numbers: INCR, under its own load program.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tidemark_test_support::ports::free_port;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::{Failure, Result};

const PATIENCE: Duration = Duration::from_secs(10);

/// A running Redis. Dropping it kills it.
pub(crate) struct Redis {
    _process: Child,
    port: u16,
}

impl Redis {
    /// Starts `redis-server`, which keeps nothing on disk, in `folder`.
    pub(crate) async fn start(folder: &Path) -> Result<Redis> {
        let port = free_port();
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
            .args(["--appendonly", "no", "--dir"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| {
                Failure::new(format!("redis-server (Debian package redis-server) does not start: {e}"))
            })?;
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            if Instant::now() > deadline {
                return Err(Failure::new("redis-server did not listen"));
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(Redis { _process: process, port })
    }

    /// `redis://…`
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// INCRs a second of one key, one at a time on each of 50 connections.
    pub(crate) async fn increments(&self, requests: usize) -> Result<f64> {
        let mut process = Command::new("redis-benchmark")
            .args(["-p", &self.port.to_string(), "-P", "1", "-c", "50"])
            .args(["-n", &requests.to_string(), "--csv", "incr", "counter"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut text = String::new();
        let mut output =
            process.stdout.take().ok_or_else(|| Failure::new("redis-benchmark has no output"))?;
        output.read_to_string(&mut text).await?;
        rate(&text).ok_or_else(|| Failure::new(format!("redis-benchmark said something else: {text}")))
    }
}

/// The second column of the last line.
fn rate(csv: &str) -> Option<f64> {
    let line = csv.lines().rfind(|line| !line.trim().is_empty())?;
    line.split("\",\"").nth(1)?.trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read_from_the_table() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"incr counter\",\"810000.00\",\"3.1\"\n";
        assert_eq!(rate(csv), Some(810_000.0));
        assert_eq!(rate("WARNING"), None);
    }
}
