//! `seqsvr issuer`: numbers for other processes, over gRPC and HTTP on one port.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use tidemark_process::Version;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::{ExitError, Signals, load, resp};
use crate::counters::tags::TagCounters;
use seqsvr_issuer::clock::Clock;
use seqsvr_issuer::rpc::{IssuerService, pages};
use seqsvr_issuer::{Issuer, IssuerConfig};
use seqsvr_rpc::connections::ConnectionsConfig;
use seqsvr_rpc::grpc_server::{GrpcServer, bind, serve_metrics};
use seqsvr_rpc::issuer_v1::issuer_server::IssuerServer;
use seqsvr_rpc::security::{Listen, ListenConfig};

/// The service whose health is shown.
const SERVICE: &str = "issuer.v1.Issuer";

/// How often the health that gRPC shows is brought up to date.
const HEALTH_EVERY: Duration = Duration::from_secs(1);

const EXAMPLE: &str = "\
Example:
  seqsvr issuer --config issuer.toml

  # issuer.toml
  listen = \"127.0.0.1:7430\"
  [issuer]
  database = \"sqlite:issuer.db\"
  [issuer.tags.order]
  start = 100";

/// The flags of the role.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct IssuerArgs {
    /// The issuer's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// The configuration file of the role.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleConfig {
    /// Where to listen for calls; port 0 picks a free one.
    listen: SocketAddr,
    /// Where to show metrics.
    metrics_listen: Option<SocketAddr>,
    #[serde(default)]
    security: ListenConfig,
    /// How many callers at a time.
    #[serde(default)]
    connections: ConnectionsConfig,
    /// Where clients of Redis are served. Default: nowhere.
    resp: Option<RespConfig>,
    issuer: IssuerConfig,
}

/// The section `[resp]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RespConfig {
    /// Where clients of the Redis protocol connect.
    listen: SocketAddr,
}

/// Issues until a signal ends it.
pub(super) async fn run(args: IssuerArgs, version: Version) -> Result<(), ExitError> {
    let config: RoleConfig = load(&args.config)?;
    config.connections.check().map_err(ExitError::usage)?;
    let listen = Listen::load(&config.security, config.listen, false).map_err(ExitError::usage)?;
    let mut signals = Signals::listen()?;
    let running =
        config.issuer.open(Clock::system(), &place(&args.config)).await.map_err(ExitError::usage)?;
    let service = IssuerServer::new(IssuerService::new(running.issuer.clone()));
    let server =
        GrpcServer::open(config.listen, &listen, config.connections).await.map_err(ExitError::failed)?;
    let server = server
        .with(InterceptedService::new(service, listen.guard()))
        .with_pages(pages::pages(running.issuer.clone(), listen.guard()));
    let health = server.health(SERVICE).await;
    let metrics = match config.metrics_listen {
        Some(addr) => Some(bind(addr).await.map_err(ExitError::failed)?),
        None => None,
    };
    let (stop, limiter) = (CancellationToken::new(), server.limiter());
    let resp = match config.resp {
        Some(RespConfig { listen }) => {
            let counters = Arc::new(TagCounters::new(running.issuer.clone()));
            Some(resp::open(listen, &config.security, server.limiter(), counters, stop.clone()).await?)
        }
        None => None,
    };
    println!("listening on {}://{}", listen.scheme(), server.address().map_err(ExitError::failed)?);
    let resp = resp::serve(resp)?;
    let page = async {
        let Some(listener) = metrics else { return Ok(()) };
        let issuer = running.issuer.clone();
        serve_metrics(listener, limiter, move || version.metrics("seqsvr") + &render(&issuer), stop.clone())
            .await
    };
    let halt = async {
        tokio::select! {
            () = signals.next() => {}
            () = stop.cancelled() => {}
        }
        stop.cancel();
    };
    let serve = async {
        let served = server.serve(stop.clone()).await;
        stop.cancel();
        served
    };
    let watch = show_health(health, running.issuer.clone(), stop.clone());
    let (served, shown, (), (), ()) = tokio::join!(serve, page, halt, watch, resp);
    running.shutdown().await;
    served.and(shown).map_err(ExitError::failed)
}

/// Where what names no folder lies, wherever the process is started: where systemd lets its unit write, else beside the configuration.
fn place(config: &Path) -> PathBuf {
    let given = std::env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    given.unwrap_or_else(|| config.parent().unwrap_or(Path::new("")).to_owned())
}

/// Reports the state of `/ready` to health checks over gRPC, at most a second later, until `stop`.
async fn show_health(reporter: HealthReporter, issuer: Issuer, stop: CancellationToken) {
    let mut ticks = interval(HEALTH_EVERY);
    loop {
        let ready = !issuer.tags().iter().any(|tag| tag.status.cannot_issue());
        let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        reporter.set_service_status(SERVICE, status).await;
        tokio::select! {
            () = stop.cancelled() => break,
            _ = ticks.tick() => {}
        }
    }
    reporter.set_service_status(SERVICE, ServingStatus::NotServing).await;
}

/// The metrics: tags are few and their names need no escapes.
fn render(issuer: &Issuer) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, values: Vec<(String, u64)>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        let suffix = if kind == "counter" { "_total" } else { "" };
        for (tag, value) in values {
            let _ = writeln!(text, "{name}{suffix}{{biz_tag=\"{tag}\"}} {value}");
        }
    };
    let tags = issuer.tags();
    let of = |value: &dyn Fn(&seqsvr_issuer::Status) -> Option<u64>| {
        let values = tags.iter().map(|info| (info.tag.to_string(), value(&info.status)));
        values.filter_map(|(tag, value)| value.map(|value| (tag, value))).collect::<Vec<_>>()
    };
    metric("issuer_issued", "counter", "Numbers issued or passed over.", of(&|status| Some(status.issued)));
    metric("issuer_left", "gauge", "Numbers that can be issued without storage.", of(&|status| status.left));
    let minutes = of(&|status| status.lasts.map(|lasts| lasts.as_secs() / 60));
    metric(
        "issuer_left_minutes",
        "gauge",
        "How long these numbers last at the current rate, in minutes.",
        minutes,
    );
    let trouble = of(&|status| Some(u64::from(status.trouble.is_some())));
    metric("issuer_trouble", "gauge", "1 while something is wrong; the log says what.", trouble);
    text.push_str("# EOF\n");
    text
}
