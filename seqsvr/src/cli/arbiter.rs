//! `seqsvr arbiter`: decides who serves which sections of one Set, or stands by for the one that does.

use std::path::PathBuf;

use clap::Args;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::{Fault, Signals, load};
use crate::arbiter::admin::Office;
use crate::arbiter::config::ArbiterConfig;
use crate::arbiter::core::Arbiter;
use crate::arbiter::probe::Prober;
use crate::arbiter::run::{Handle, Shell};
use crate::rpc::door::{Door, bind, serve_metrics};
use crate::rpc::security::{Call, Listen};
use crate::rpc::v1::admin_server::AdminServer;

/// The flags of the role.
#[derive(Debug, Args)]
pub(super) struct ArbiterArgs {
    /// The arbiter's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Arbitrates until a signal ends it.
pub(super) async fn run(args: ArbiterArgs) -> Result<(), Fault> {
    let config: ArbiterConfig = load(&args.config)?;
    let rules = config.rules().map_err(Fault::usage)?;
    let set = rules.seed.set;
    config.connections.check().map_err(Fault::usage)?;
    let listen = Listen::load(&config.security, config.listen, true)?;
    let call = Call::load(&config.call)?;
    for one in &config.allocators {
        call.endpoint(&one.addr)?;
    }
    let stores = config.stores.open(&config.cluster, set).map_err(Fault::usage)?;
    let prober = Prober::new(call.clone(), set, config.probe_patience());
    let (shell, handle) = Shell::new(Arbiter::new(rules), stores.tables, prober);
    let door = Door::open(config.listen, &listen, config.connections).await.map_err(Fault::failed)?;
    let office = AdminServer::new(Office::new(handle.clone(), set, call));
    let door = door.with(InterceptedService::new(office, listen.admin_guard()));
    let metrics = match config.metrics_listen {
        Some(addr) => Some(bind(addr).await.map_err(Fault::failed)?),
        None => None,
    };

    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    println!("listening on {}://{}", listen.scheme(), door.address().map_err(Fault::failed)?);
    let seats = door.seats();
    let health = show_health(door.health(), handle.clone(), stop.clone());
    let page = async {
        let Some(listener) = metrics else { return Ok(()) };
        let view = handle.view();
        serve_metrics(listener, seats, move || view.borrow().render(), stop.clone()).await
    };
    let halt = async {
        tokio::select! {
            () = signals.next() => {}
            () = stop.cancelled() => {}
        }
        stop.cancel();
    };
    // Whichever ends first ends the others.
    let ended = |outcome| {
        stop.cancel();
        outcome
    };
    let (arbitrated, served, shown, (), ()) = tokio::join!(
        async { ended(shell.run(stop.clone()).await) },
        async { ended(door.serve(stop.clone()).await) },
        page,
        health,
        halt,
    );
    arbitrated.map_err(Fault::usage)?;
    served.and(shown).map_err(Fault::failed)
}

/// Health of the Admin service says whether this arbiter acts; health of the process, that it is there.
async fn show_health(reporter: HealthReporter, handle: Handle, stop: CancellationToken) {
    let mut view = handle.view();
    loop {
        let acting = view.borrow_and_update().acting.is_some();
        let status = if acting { ServingStatus::Serving } else { ServingStatus::NotServing };
        reporter.set_service_status("seqsvr.v1.Admin", status).await;
        tokio::select! {
            () = stop.cancelled() => return,
            changed = view.changed() => if changed.is_err() { return },
        }
    }
}
