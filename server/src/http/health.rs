//! For operators and load balancers: is it up, can it serve, how is it doing.

use std::sync::Arc;

use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tidemark_process::Version;
use utoipa::ToSchema;

use super::error::Problem;
use super::listen::Peer;
use super::state::{Fitness, Readiness, Settings};
use crate::telemetry::Metrics;
use crate::workers::aside;

/// The process is up.
#[derive(Serialize, ToSchema)]
pub(super) struct Up {
    /// `up`.
    status: &'static str,
    /// The version of the server.
    version: &'static str,
    /// The commit that it was built from: the short hash, or `unknown`.
    commit: &'static str,
}

/// The process can serve.
#[derive(Serialize, ToSchema)]
pub(super) struct Condition {
    /// `ready`.
    status: &'static str,
    /// Pages of the database that are not as they were written, up to ten. Reads of them are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<String>,
}

/// The most damaged pages that are named.
const MOST_DAMAGED: usize = 10;

/// Is the process up?
#[utoipa::path(
    get, path = "/health", operation_id = "health", tag = "Operation", security(),
    responses((status = 200, body = Up, description = "It is up")),
)]
pub(super) async fn health(State(version): State<Version>) -> Json<Up> {
    Json(Up { status: "up", version: version.number(), commit: version.commit() })
}

/// Can it serve now?
#[utoipa::path(
    get, path = "/ready", operation_id = "ready", tag = "Operation", security(),
    responses((status = 200, body = Condition, description = "It can")),
    extensions(("x-codes" = json!(["not_ready"]))),
)]
pub(super) async fn ready(State(ready): State<Readiness>) -> Result<Json<Condition>, Problem> {
    let Fitness { trouble, mut damaged } = ready();
    let Some(trouble) = trouble else {
        damaged.truncate(MOST_DAMAGED);
        return Ok(Json(Condition { status: "ready", damaged }));
    };
    let detail = format!("nothing can be stored right now ({trouble}); try again in a moment");
    Err(Problem::passing(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail))
}

/// Get the metrics, as Prometheus reads them.
///
/// Only callers on the same machine may, and nobody while the configuration tells of a proxy. `[metrics]` opens them, or gives
/// them an address of their own.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "Operation", security(),
    responses((
        status = 200, body = String, content_type = "application/openmetrics-text", description = "OpenMetrics 1.0",
    )),
    extensions(("x-codes" = json!(["metrics_private"]))),
)]
pub(super) async fn metrics(
    State(metrics): State<Arc<Metrics>>,
    State(settings): State<Arc<Settings>>,
    ConnectInfo(Peer(peer)): ConnectInfo<Peer>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // A proxy on this machine would make everybody a caller on it, and not each adds a header.
    let direct = settings.no_proxy && !FORWARDING.iter().any(|name| headers.contains_key(*name));
    if settings.public_metrics || (peer.ip().to_canonical().is_loopback() && direct) {
        return Ok(exposition(&metrics).await);
    }
    let detail = "metrics answer only callers on this machine, and none through a proxy; give them their own address \
                  with [metrics] listen, or open them with [metrics] public";
    Err(Problem::new(StatusCode::FORBIDDEN, "metrics_private", detail))
}

/// The address of its own that the metrics may have.
pub(super) fn metrics_router(metrics: Arc<Metrics>) -> Router {
    Router::new().route("/metrics", get(async move || exposition(&metrics).await))
}

/// Headers that tell of a proxy.
const FORWARDING: [&str; 5] = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

async fn exposition(metrics: &Metrics) -> Response {
    const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    // Thousands of lines, and the system is asked for each open file.
    let text = aside(usize::MAX, || metrics.to_text()).await;
    ([(header::CONTENT_TYPE, TEXT)], text).into_response()
}
