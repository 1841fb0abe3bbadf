//! `tidemark serve`: until a signal, then down in good order.

use std::time::Duration;

use super::Fault;
use crate::config::Config;
use crate::domain::Clock;
use crate::{boot, lifecycle};

pub(super) async fn run(config: &Config) -> Result<(), Fault> {
    let mut signals = lifecycle::Signals::listen()?;
    let running = boot::start(config, Clock::system()).await?;
    let files = lifecycle::allow_many_files();
    if files.is_some_and(|files| files < config.limits.connections as u64) {
        tracing::warn!(
            files,
            connections = config.limits.connections,
            "the system allows fewer open files than connections"
        );
    }
    println!("listening on http://{}", running.address());
    signals.next().await;
    let limit = Duration::from_secs(config.server.shutdown_seconds.into());
    tokio::select! {
        stopped = running.stop(limit) => stopped.map_err(Fault::failed),
        () = signals.next() => Err(Fault::failed("stopped at once by a second signal; what was accepted is stored")),
    }
}
