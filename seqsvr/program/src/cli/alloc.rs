//! `seqsvr alloc`: hands out numbers for the sections that the arbiters give it, in one Set or several.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use tidemark_process::Version;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tracing::info;

use super::{ExitError, Signals, load, resp};
use crate::counters::cluster::ClusterCounters;
use seqsvr_cluster::alloc::config::AllocConfig;
use seqsvr_cluster::alloc::page;
use seqsvr_cluster::alloc::probe_service::ProbeService;
use seqsvr_cluster::alloc::record::DataDir;
use seqsvr_cluster::alloc::sequence::{LARGEST_REQUEST, SequenceLimits, SequenceService};
use seqsvr_cluster::alloc::set_server::SetServer;
use seqsvr_cluster::alloc::shell::Shell;
use seqsvr_rpc::grpc_server::{GrpcServer, bind, serve_metrics};
use seqsvr_rpc::security::{Call, Listen};
use seqsvr_rpc::v1::allocator_server::AllocatorServer;
use seqsvr_rpc::v1::sequence_server::SequenceServer;

/// The flags of the role.
#[derive(Debug, Args)]
pub(super) struct AllocArgs {
    /// The node's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Serves until a signal ends it: then nothing more is admitted once the sections have moved, and served sections are released.
pub(super) async fn run(args: AllocArgs, version: Version) -> Result<(), ExitError> {
    let config: AllocConfig = load(&args.config)?;
    let settings = config.settings(rand::random()).map_err(ExitError::usage)?;
    config.connections.check().map_err(ExitError::usage)?;
    let listen = Listen::load(&config.security, config.listen, false).map_err(ExitError::usage)?;
    let mut stores = Vec::new();
    for set in &config.sets {
        stores.push(set.stores.open(&config.cluster, set.number).map_err(ExitError::usage)?);
    }
    let directory = DataDir::open(&config.directory).map_err(ExitError::failed)?;
    let (shells, sets): (Vec<_>, Vec<_>) = settings
        .into_iter()
        .zip(stores)
        .map(|(settings, stores)| {
            let record = directory.record(settings.set);
            Shell::new(settings, stores, record)
        })
        .unzip();
    let (leave, stop) = (CancellationToken::new(), CancellationToken::new());
    let sequence =
        SequenceServer::new(SequenceService::new(sets.clone(), SequenceLimits::default(), stop.clone()))
            .max_decoding_message_size(LARGEST_REQUEST);
    let probes = AllocatorServer::new(ProbeService::new(sets.clone()));
    let server =
        GrpcServer::open(config.listen, &listen, config.connections).await.map_err(ExitError::failed)?;
    let server = server.with(InterceptedService::new(sequence, listen.guard()));
    let server = server.with(InterceptedService::new(probes, listen.guard()));
    let metrics = match config.metrics_listen {
        Some(addr) => Some(bind(addr).await.map_err(ExitError::failed)?),
        None => None,
    };
    let resp = match config.resp {
        Some(resp) => {
            // Files that cannot be used are reported now, not at the first call.
            Call::load(&resp.call).map_err(ExitError::usage)?;
            let counters = Arc::new(ClusterCounters::new(&sets, resp.call));
            Some(resp::open(resp.listen, &config.security, server.limiter(), counters, stop.clone()).await?)
        }
        None => None,
    };

    let mut signals = Signals::listen()?;
    println!("listening on {}://{}", listen.scheme(), server.address().map_err(ExitError::failed)?);
    let resp = resp::serve(resp)?;
    let (health, limiter) = (server.health(SERVICE).await, server.limiter());
    let sets: Arc<[_]> = sets.into();
    let shown_health = show_health(health, Arc::clone(&sets), leave.clone());
    let page = async {
        let Some(listener) = metrics else { return Ok(()) };
        serve_metrics(
            listener,
            limiter,
            move || version.metrics("seqsvr") + &page::render(&sets),
            stop.clone(),
        )
        .await
    };
    let serve = async {
        let served = join_all(shells.into_iter().map(|shell| shell.run(leave.clone()))).await;
        info!(sets = served.len(), "everything is released");
        stop.cancel();
    };
    let halt = async {
        tokio::select! {
            () = signals.next() => info!("draining"),
            () = stop.cancelled() => {}
        }
        leave.cancel();
    };
    let server = async {
        let served = server.serve(stop.clone()).await;
        leave.cancel();
        stop.cancel();
        served
    };
    let (served, shown, (), (), (), ()) = tokio::join!(server, page, serve, halt, shown_health, resp);
    drop(directory);
    served.and(shown).map_err(ExitError::failed)
}

/// The service whose health is shown.
const SERVICE: &str = "seqsvr.v1.Sequence";

/// How often health is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Health of the Sequence service says whether callers are served: some Set has a lease here, and serves what it is given. Health of the
/// process only says that it is there, so that nobody restarts it because the stores are away.
async fn show_health(reporter: HealthReporter, sets: Arc<[Arc<SetServer>]>, leave: CancellationToken) {
    let show = async |serving: bool| {
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        reporter.set_service_status(SERVICE, status).await;
    };
    let mut looks = interval(LOOK_EVERY);
    let mut shown = None;
    loop {
        let serving = sets.iter().any(|set| set.is_serving());
        if shown.replace(serving) != Some(serving) {
            show(serving).await;
        }
        tokio::select! {
            () = leave.cancelled() => return show(false).await,
            _ = looks.tick() => {}
        }
    }
}
