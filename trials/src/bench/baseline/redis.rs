//! Redis as people would use it for numbers: INCR, under its own load program.

use tidemark_test_support::servers::redis::RedisServer;
use tokio::process::Command;

use crate::{Failure, Result};

/// INCRs a second of one key, one at a time on each of 50 connections.
pub(crate) async fn increments(redis: &RedisServer, requests: usize) -> Result<f64> {
    let output = Command::new("redis-benchmark")
        .args(["-p", &redis.port().to_string(), "-P", "1", "-c", "50"])
        .args(["-n", &requests.to_string(), "--csv", "incr", "counter"])
        .kill_on_drop(true)
        .output()
        .await?;
    let text = String::from_utf8_lossy(&output.stdout);
    rate(&text).ok_or_else(|| Failure::new(format!("redis-benchmark said something else: {text}")))
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
