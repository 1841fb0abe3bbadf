//! `seqsvr arbiter`: assigns the sections of one Set to AllocSvrs, or stands by for the arbiter that does.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tidemark_process::Version;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::{ExitError, Signals, load};
use seqsvr_cluster::arbiter::admin::AdminService;
use seqsvr_cluster::arbiter::config::ArbiterConfig;
use seqsvr_cluster::arbiter::core::Arbiter;
use seqsvr_cluster::arbiter::monitor::Lookout;
use seqsvr_cluster::arbiter::probe::Prober;
use seqsvr_cluster::arbiter::run::{Handle, Shell, establish};
use seqsvr_core::store::tables::StoreHealth;
use seqsvr_rpc::grpc_server::{GrpcServer, bind, serve_metrics};
use seqsvr_rpc::security::{Call, Listen};
use seqsvr_rpc::v1::admin_server::AdminServer;
use seqsvr_rpc::v1::monitor_server::MonitorServer;

/// The flags of the role.
#[derive(Debug, Args)]
pub(super) struct ArbiterArgs {
    /// The arbiter's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Arbitrates until a signal ends it.
pub(super) async fn run(args: ArbiterArgs, version: Version) -> Result<(), ExitError> {
    let config: ArbiterConfig = load(&args.config)?;
    let rules = config.rules().map_err(ExitError::usage)?;
    let set = rules.seed.set;
    config.connections.check().map_err(ExitError::usage)?;
    let listen = Listen::load(&config.security, config.listen, true).map_err(ExitError::usage)?;
    let call = Call::load(&config.call).map_err(ExitError::usage)?;
    for one in &config.allocators {
        call.endpoint(&one.addr).map_err(ExitError::usage)?;
    }
    let stores = config.stores.open(&config.cluster, set).map_err(ExitError::usage)?;
    let prober = Prober::new(call.clone(), set, config.probe_patience());
    let number = rules.number;
    let terms = config.terms().map_err(ExitError::usage)?;
    let quorum = stores.quorum.clone();
    let (shell, handle) = Shell::new(Arbiter::new(rules), Arc::clone(&stores.tables), prober);
    let lookout = Lookout::new(handle.clone(), set, number, Arc::clone(&stores.tables));
    let server =
        GrpcServer::open(config.listen, &listen, config.connections).await.map_err(ExitError::failed)?;
    let admin = AdminServer::new(AdminService::new(handle.clone(), set, call));
    let server = server.with(InterceptedService::new(admin, listen.admin_guard()));
    let monitor = MonitorServer::new(lookout.clone());
    let server = server.with(InterceptedService::new(monitor, listen.guard()));
    let metrics = match config.metrics_listen {
        Some(addr) => Some(bind(addr).await.map_err(ExitError::failed)?),
        None => None,
    };

    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    println!("listening on {}://{}", listen.scheme(), server.address().map_err(ExitError::failed)?);
    let limiter = server.limiter();
    let health = show_health(server.health(SERVICE).await, handle.clone(), stop.clone());
    let page = async {
        let Some(listener) = metrics else { return Ok(()) };
        let view = handle.view();
        let stores = watch::Sender::new(Arc::<[StoreHealth]>::default());
        let shown = stores.subscribe();
        let render = move || version.metrics("seqsvr") + &view.borrow().render(&shown.borrow());
        let served = serve_metrics(listener, limiter, render, stop.clone());
        let looked = look_at_stores(lookout, handle.clone(), stores);
        tokio::select! {
            served = served => served,
            never = looked => match never {},
        }
    };
    let halt = async {
        tokio::select! {
            () = signals.next() => {}
            () = stop.cancelled() => {}
        }
        stop.cancel();
    };
    let kept = async {
        let Some(quorum) = quorum else { return };
        tokio::select! {
            () = stop.cancelled() => {}
            never = quorum.keep_complete() => match never {},
        }
    };
    // The task that ends first ends the others.
    let ended = |outcome| {
        stop.cancel();
        outcome
    };
    let (arbitrated, served, shown, (), (), ()) = tokio::join!(
        async {
            tokio::select! {
                () = establish(&stores, &terms) => {}
                () = stop.cancelled() => {}
            }
            ended(shell.run(stop.clone()).await)
        },
        async { ended(server.serve(stop.clone()).await) },
        page,
        health,
        halt,
        kept,
    );
    arbitrated.map_err(ExitError::usage)?;
    served.and(shown).map_err(ExitError::failed)
}

/// The service whose health is shown.
const SERVICE: &str = "seqsvr.v1.Admin";

/// How often an acting arbiter looks at the stores for its metrics.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Keeps the metrics of the stores as new as [`LOOK_EVERY`], while this arbiter acts.
async fn look_at_stores(
    lookout: Lookout,
    handle: Handle,
    to: watch::Sender<Arc<[StoreHealth]>>,
) -> Infallible {
    loop {
        let acts = handle.view().borrow().acting.is_some();
        let stores = if acts { lookout.stores().await } else { Arc::default() };
        to.send_replace(stores);
        sleep(LOOK_EVERY).await;
    }
}

/// Health of the Admin service says whether this arbiter acts; health of the process, that it is there.
async fn show_health(reporter: HealthReporter, handle: Handle, stop: CancellationToken) {
    let mut view = handle.view();
    loop {
        let acting = view.borrow_and_update().acting.is_some();
        let status = if acting { ServingStatus::Serving } else { ServingStatus::NotServing };
        reporter.set_service_status(SERVICE, status).await;
        tokio::select! {
            () = stop.cancelled() => return,
            changed = view.changed() => if changed.is_err() { return },
        }
    }
}
