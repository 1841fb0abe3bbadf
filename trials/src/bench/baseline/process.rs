//! A baseline that is a server: this very program in a process of its own, as the measured server is, so that both share
//! the processor with the load in the same way.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::{Failure, Result};

/// A running baseline. Dropping it kills it.
pub(crate) struct BareProcess {
    _process: Child,
    address: String,
}

impl BareProcess {
    /// Starts this very program as a part of the measurement, which prints its address first.
    pub(crate) async fn start(part: &[&str]) -> Result<BareProcess> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("--be")
            .args(part)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = process.stdout.take().ok_or_else(|| Failure::new("the bare server has no output"))?;
        let line = BufReader::new(output).lines().next_line().await?;
        let address = line.ok_or_else(|| Failure::new("the bare server ended before it listened"))?;
        Ok(BareProcess { _process: process, address })
    }

    /// `HOST:PORT`
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}
