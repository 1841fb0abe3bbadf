//! For operators and load balancers: is it up, can it serve, how is it doing.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::error::Problem;
use super::state::Readiness;
use crate::telemetry::Metrics;

/// The process is up.
pub(super) async fn health() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], "{\"status\":\"up\"}").into_response()
}

/// It can serve now.
pub(super) async fn ready(State(ready): State<Readiness>) -> Result<Response, Problem> {
    if ready() {
        return Ok(([(header::CONTENT_TYPE, "application/json")], "{\"status\":\"ready\"}").into_response());
    }
    let detail = "it cannot store anything right now; try again in a moment";
    Err(Problem::passing(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail))
}

/// What Prometheus reads.
pub(super) async fn metrics(State(metrics): State<Arc<Metrics>>) -> Response {
    const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, TEXT)], metrics.to_text()).into_response()
}
