//! The common part of the commands for people and scripts: the client configuration, how long to try, and answers as
//! text or JSON on standard output.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::ExitError;
use seqsvr_client::{CallError, Client, ClientConfig};

/// The flags of every command that calls a cluster.
#[derive(Debug, Args)]
pub(super) struct CallerArgs {
    /// The client configuration
    #[arg(long, env = "SEQSVR_CONFIG", default_value = "client.toml", value_name = "FILE")]
    config: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Give up after this many seconds [default: call_ms of the configuration]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3_600))]
    within: Option<u32>,
}

impl CallerArgs {
    /// The client that the configuration describes.
    pub(super) fn client(&self) -> Result<Client, ExitError> {
        let config = ClientConfig::read(&self.config).map_err(ExitError::usage)?;
        let client = Client::new(&config).map_err(ExitError::usage)?;
        Ok(match self.within {
            Some(seconds) => client.within(Duration::from_secs(seconds.into())),
            None => client,
        })
    }

    /// Prints an answer.
    pub(super) fn answer(&self, text: &str, json: &Value) -> Result<(), ExitError> {
        let line = if self.json { json.to_string() } else { text.trim_end().to_owned() };
        match writeln!(io::stdout().lock(), "{line}") {
            // The reader has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }
}

/// Why a call got no numbers, as the end of a command.
pub(super) fn not_answered(error: CallError) -> ExitError {
    match error {
        CallError::NoSet(_) | CallError::BadCount { .. } => ExitError::usage(error),
        _ => ExitError::failed(error),
    }
}
