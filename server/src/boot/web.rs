//! The last step of a start: the HTTP side, over everything.

use std::net::SocketAddr;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use tidemark_process::Version;
use tokio::task::JoinHandle;
use tracing::info;

use super::core::Core;
use super::error::BootError;
use super::listen::listen;
use super::storage::Bottom;
use crate::config::Config;
use crate::http::{Dependencies, Fitness, HttpServer, Tables};
use crate::seq::RequestIds;
use crate::telemetry::{
    IndexLag, Metrics, Overtaken, PushMetrics, QueueDepths, SequenceMetrics, StoreHealth,
};

/// The HTTP side at work.
pub(super) struct Web {
    pub(super) address: SocketAddr,
    /// Where the metrics are served, if they have an address of their own.
    pub(super) metrics_address: Option<SocketAddr>,
    pub(super) serving: JoinHandle<()>,
}

/// Listens and serves, also `tables`.
pub(super) async fn start(
    config: &Config,
    version: Version,
    bottom: &Bottom,
    core: &Core,
    tables: Option<Tables>,
) -> Result<Web, BootError> {
    let (listener, address) = listen(&config.server.listen, "choose another with --listen").await?;
    let of_metrics = match config.metrics.address()? {
        Some(own) => Some(listen(&own, "choose another in [metrics] listen").await?),
        None => None,
    };
    let (metrics_listener, metrics_address) = of_metrics.unzip();
    if let Some(address) = metrics_address {
        info!(%address, "metrics are served");
    }
    let collectors: Vec<Box<dyn Collector>> = vec![
        Box::new(QueueDepths(core.queues.clone())),
        Box::new(SequenceMetrics(bottom.sequences.clone())),
        Box::new(Overtaken(bottom.numbers.clone())),
        Box::new(StoreHealth(Arc::clone(&bottom.messages))),
        Box::new(IndexLag(Arc::clone(&core.due))),
        Box::new(PushMetrics(core.use_cases.push.clone())),
    ];
    let (request_ids, store) =
        (RequestIds::open(config.server.machine_id).await?, Arc::clone(&bottom.messages));
    let dependencies = Dependencies {
        version,
        new_request_id: Arc::new(move || request_ids.next().to_string()),
        readiness: Arc::new(move || {
            let health = store.health();
            Fitness { trouble: health.trouble, damaged: health.damaged }
        }),
        rates: Arc::clone(&core.rates),
        tables,
    };
    let server = HttpServer::new(
        (listener, metrics_listener),
        config,
        core.use_cases.clone(),
        Arc::new(Metrics::new(version, collectors)),
        bottom.clock.clone(),
        dependencies,
        core.stopping.clone(),
    );
    let serving = tokio::spawn(server.run());
    info!(%address, "listening");
    Ok(Web { address, metrics_address, serving })
}
