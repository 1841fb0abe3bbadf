//! Starts `tracing` as configured.

use std::io::IsTerminal as _;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{LogFormat, LogSection, OWN_CRATES};

/// Sends log lines to standard error from now on. Standard output stays free for answers.
pub fn start(section: &LogSection) {
    // Checked with the other settings.
    let chosen: Targets = section.filter.parse().unwrap_or_default();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let all = tracing_subscriber::registry().with(chosen).with(filter_fn(may_be_shown));
    // A second start, as in tests, keeps the first one's choice.
    let _ = match section.format {
        LogFormat::Text => all.with(lines.with_ansi(std::io::stderr().is_terminal())).try_init(),
        LogFormat::Json => all.with(lines.json().flatten_event(true)).try_init(),
    };
}

/// Libraries print frames, headers and statements below `info`, with the texts and tokens in them: whatever the filter says, those
/// lines are not shown.
fn may_be_shown(line: &Metadata<'_>) -> bool {
    let krate = line.target().split("::").next().unwrap_or_default();
    // A connection to the database that is not taken is an error to the pool; whoever needed one says what it means.
    let is_refused_connection = line.target() == "sqlx_core::pool::inner" && *line.level() == Level::ERROR;
    !is_refused_connection && (*line.level() <= Level::INFO || OWN_CRATES.contains(&krate))
}
