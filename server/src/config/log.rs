//! `[log]`: how much is said on standard error, and in what form.

use serde::{Deserialize, Serialize};
use tracing_subscriber::filter::Targets;

use super::ConfigError;
use super::names::did_you_mean;

/// The crates of this project: their lines are kept free of what must not be in a log, at every level.
pub const OWN_CRATES: [&str; 9] = [
    "tidemark",
    "tidemark_web",
    "tidemark_client",
    "tidemark_process",
    "seqsvr",
    "seqsvr_core",
    "seqsvr_rpc",
    "seqsvr_client",
    "seqsvr_issuer",
];

/// Libraries that write lines, too. Below `info` they print whatever passes through them, so that is never shown.
const LIBRARIES: [&str; 14] = [
    "axum",
    "h2",
    "hyper",
    "hyper_util",
    "mio",
    "reqwest",
    "rustls",
    "sqlx",
    "tokio",
    "tokio_tungstenite",
    "tonic",
    "tower",
    "tower_http",
    "tungstenite",
];

/// The parts of the server, which stand behind `tidemark::`.
const PARTS: [&str; 19] = [
    "app",
    "boot",
    "cli",
    "config",
    "domain",
    "files",
    "http",
    "lifecycle",
    "log_limit",
    "notify",
    "push",
    "queue",
    "seq",
    "store",
    "table",
    "telemetry",
    "tls_roots",
    "transfer",
    "workers",
];

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The lines on standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// The form of a line.
    pub format: LogFormat,
    /// The filter of events, in the notation of `tracing`: `info`, or `info,tidemark::queue=debug`.
    pub filter: String,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for programs.
    Json,
}

impl Default for LogSection {
    fn default() -> Self {
        LogSection { format: LogFormat::Text, filter: "info".into() }
    }
}

impl LogSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |why| ConfigError::Value { section: "log", key: "filter", why };
        // A bare word is a level or a target to `tracing`; a mistyped level is then a target that nothing has.
        self.filter.split(',').try_for_each(check_directive).map_err(wrong)?;
        self.filter.parse::<Targets>().map(drop).map_err(|error| wrong(format!("`{}`: {error}", self.filter)))
    }
}

/// Refuses a part of a filter that would select nothing.
fn check_directive(text: &str) -> Result<(), String> {
    let (target, level) = match text.rsplit_once('=') {
        Some((target, level)) => (target, Some(level)),
        None => (text, None),
    };
    if text.contains('[') {
        return Err(format!(
            "`{text}` names a span; name a part of the program, as in `tidemark::http=debug`"
        ));
    }
    let is_level = |word: &str| LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
    if let Some(level) = level.filter(|level| !is_level(level)) {
        return Err(format!("`{level}` in `{text}` is no level{}", did_you_mean(level, LEVELS)));
    }
    if level.is_none() && is_level(target) {
        return Ok(());
    }
    let mut path = target.split("::");
    let first = path.next().unwrap_or_default();
    let known = OWN_CRATES.into_iter().chain(LIBRARIES);
    if !known.clone().any(|name| name == first) {
        let meant = did_you_mean(first, LEVELS.into_iter().chain(known));
        let hint = if meant.is_empty() { "; try `info,tidemark::queue=debug`" } else { "" };
        return Err(format!("`{first}` is neither a level nor a part of the program{meant}{hint}"));
    }
    match path.next() {
        Some(part) if first == "tidemark" && !PARTS.contains(&part) => {
            Err(format!("tidemark has no part `{part}`{}", did_you_mean(part, PARTS)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(filter: &str) -> Result<(), String> {
        let section = LogSection { filter: filter.into(), ..LogSection::default() };
        section.check().map_err(|error| error.to_string())
    }

    #[test]
    fn filters_that_select_something_pass() {
        for good in [
            "info",
            "TRACE",
            "off",
            "info,tidemark::queue=debug",
            "warn,sqlx=error",
            "tidemark",
            "seqsvr_client=debug,info",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn a_typo_is_refused_with_what_was_probably_meant() {
        for (bad, part) in [
            ("inof", "did you mean `info`?"),
            ("info,tidemrak=debug", "did you mean `tidemark`?"),
            ("info,tidemark::qeue=debug", "did you mean `queue`?"),
            ("tidemark=debgu", "did you mean `debug`?"),
            ("frobnicate", "neither a level nor a part of the program"),
            ("tidemark::http[request]=trace", "names a span; name a part of the program"),
            ("", "neither a level nor a part of the program"),
        ] {
            let reported = check(bad).expect_err(bad);
            assert!(reported.starts_with("[log] filter: ") && reported.contains(part), "{bad}: {reported}");
            assert!(!reported.contains('\n'), "{reported}");
        }
    }

    #[test]
    fn every_part_of_the_server_is_known() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for entry in std::fs::read_dir(source).expect("the sources") {
            let name = entry.expect("readable").file_name().to_string_lossy().replace(".rs", "");
            assert!(PARTS.contains(&name.as_str()) || ["lib", "main"].contains(&name.as_str()), "{name}");
        }
    }
}
