//! What every role does the same way: read its one configuration file, and stop when it is told to.

use std::fs;
use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Fault;

/// Reads a TOML file. Unknown keys and wrong values are refused in one line that names the place.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<T, Fault> {
    let text = fs::read_to_string(path)
        .map_err(|why| Fault::usage(format!("cannot read the configuration {}: {why}", path.display())))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        let what = error.message().lines().next().unwrap_or("wrong value").to_owned();
        Fault::usage(format!("{}, line {line}: {what}", path.display()))
    })
}

/// SIGTERM and SIGINT: both ask for a stop in good order.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes the signals from the system: from now on they no longer end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for one of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
