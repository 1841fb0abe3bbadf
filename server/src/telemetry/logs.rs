//! Starts `tracing` as configured.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSection};

/// Sends log lines to standard error from now on. Standard output stays free for answers.
pub fn start(section: &LogSection) {
    let filter = EnvFilter::new(&section.filter);
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start, as in tests, keeps the first one's choice.
    let _ = match section.format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
