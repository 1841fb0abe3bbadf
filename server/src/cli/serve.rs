//! `tidemark serve`: until a signal, then down in good order.

use std::io::Write as _;
use std::time::Duration;

use tidemark_process::Version;

use super::ExitError;
use crate::boot::{self, BootError, Storage};
use crate::config::{Config, LimitsSection};
use crate::domain::Clock;
use crate::http::REFUSED_AT_A_TIME;
use crate::lifecycle;

/// Files that the process opens beside its connections: databases with their logs, for each reader; clients of other services; and
/// connections that are refused.
const OWN_FILES: u64 = 160 + REFUSED_AT_A_TIME as u64;

/// The connections that are served when the system allows `files` open files: a connection too many must not take the file that a
/// read of the database needs.
fn connections(wanted: usize, files: Option<u64>) -> Result<usize, ExitError> {
    let Some(files) = files else { return Ok(wanted) };
    let most = usize::try_from(files.saturating_sub(OWN_FILES)).unwrap_or(usize::MAX);
    match most {
        0 => Err(ExitError::failed(format!(
            "the system allows {files} open files, and the server needs {OWN_FILES} beside its connections; allow \
             more with `ulimit -n` or LimitNOFILE="
        ))),
        most => Ok(wanted.min(most)),
    }
}

/// Cuts the connections down to `most`, and in the same measure how many of them one address may have.
fn cut(limits: &mut LimitsSection, most: usize) {
    let of_an_address = limits.connections_per_address.min(limits.connections) as u128 * most as u128;
    let of_an_address = of_an_address / limits.connections.max(1) as u128;
    limits.connections_per_address = usize::try_from(of_an_address).unwrap_or(most).max(1);
    limits.connections = most;
}

pub(super) async fn run(config: &Config, version: Version) -> Result<(), ExitError> {
    tracing::info!(%version, "tidemark starts");
    let mut signals = lifecycle::Signals::listen()?;
    let mut config = config.clone();
    let of_tables =
        if config.table.address().map_err(BootError::from)?.is_some() { config.table.connections } else { 0 };
    let (wanted, files) = (config.limits.connections + of_tables, lifecycle::allow_many_files());
    let allowed = connections(wanted, files)?;
    if allowed < wanted {
        config.table.connections = of_tables.min(allowed / 2).max(1);
        cut(&mut config.limits, (allowed - of_tables.min(allowed / 2)).max(1));
    }
    tokio::select! {
        there = Storage::wait_for(&config) => there?,
        () = signals.next() => return Err(ExitError::failed("stopped by a signal before the database answered")),
    }
    let running = boot::start(&config, Clock::system(), version).await?;
    if allowed < wanted {
        tracing::warn!(
            files,
            wanted,
            connections = allowed,
            "the system allows too few open files: fewer connections are served; raise `ulimit -n` or LimitNOFILE="
        );
    }
    // Nobody may read it any more; the server serves on.
    let mut out = std::io::stdout();
    _ = writeln!(out, "listening on http://{}", running.address());
    if let Some(address) = running.table_address() {
        _ = writeln!(out, "table listening on http://{address}");
    }
    let must_end = tokio::select! {
        () = signals.next() => None,
        why = running.must_end() => Some(why),
    };
    let limit = Duration::from_secs(config.server.shutdown_seconds.into());
    tokio::select! {
        stopped = running.stop(limit) => match must_end {
            Some(why) => Err(ExitError::failed(why)),
            None => stopped.map_err(ExitError::failed),
        },
        () = signals.next() => Err(ExitError::failed("stopped at once by a second signal; what was accepted is stored")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_connections_are_cut_one_address_still_takes_not_all() {
        let mut limits = LimitsSection::default();
        let (all, of_an_address) = (limits.connections, limits.connections_per_address);
        assert!(of_an_address < all);
        cut(&mut limits, 800);
        assert_eq!((limits.connections, limits.connections_per_address), (800, 800 * of_an_address / all));
        cut(&mut limits, 1);
        assert_eq!((limits.connections, limits.connections_per_address), (1, 1));
    }
}
