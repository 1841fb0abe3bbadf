//! The gRPC server of every role: health and reflection beside the role's own services, guarded by tokens and TLS as
//! configured. The page with metrics stands beside it. Both accept through the connection limiter. Owns the listeners;
//! the roles under `cli` open and serve it.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::service::interceptor::{InterceptedService, InterceptorLayer};
use tonic::service::{Interceptor, Routes};
use tonic::transport::Server;
use tonic::transport::server::TlsConnectInfo;
use tonic::{Request, Status};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::DESCRIPTORS;
use super::connections::{ConnectionLimiter, ConnectionsConfig, LimitedListener};
use super::security::Listen;
use crate::net::Arrival;

/// Connections to the page with metrics at a time.
const PAGE_READERS: usize = 64;

/// A bound listener and the services that it serves.
pub struct GrpcServer {
    listener: TcpListener,
    limiter: ConnectionLimiter,
    server: Server,
    routes: Routes,
    health: HealthReporter,
}

impl GrpcServer {
    /// Binds `addr`, for as many callers as `connections` says. Health and reflection are there, the latter for callers with the
    /// token.
    ///
    /// # Errors
    ///
    /// One line: the address cannot be bound, the certificates cannot be used.
    pub async fn open(
        addr: SocketAddr,
        listen: &Listen,
        connections: ConnectionsConfig,
    ) -> Result<Self, String> {
        let listener = bind(addr).await?;
        let (reporter, health) = tonic_health::server::health_reporter();
        let described = || {
            tonic_reflection::server::Builder::configure().register_encoded_file_descriptor_set(DESCRIPTORS)
        };
        let wrong = |error| format!("reflection: {error}");
        let reflection = described().build_v1().map_err(wrong)?;
        // Older callers use this version, Python's own among them.
        let reflection_before = described().build_v1alpha().map_err(wrong)?;
        let server = listen.server().map_err(|error| error.to_string())?;
        // The health service needs no token: health checkers have none, and learn only whether processes serve.
        let mut routes = Routes::new(health).add_service(InterceptedService::new(reflection, listen.guard()));
        routes = routes.add_service(InterceptedService::new(reflection_before, listen.guard()));
        let router = routes.axum_router_mut();
        *router = std::mem::take(router).fallback(|request| async move { unknown(&request) });
        Ok(Self { listener, limiter: ConnectionLimiter::new(connections), server, routes, health: reporter })
    }

    /// Where it listens, after port 0 too.
    ///
    /// # Errors
    ///
    /// One line.
    pub fn address(&self) -> Result<SocketAddr, String> {
        self.listener.local_addr().map_err(|error| error.to_string())
    }

    /// Its connection limiter, for the page with metrics.
    pub fn limiter(&self) -> ConnectionLimiter {
        self.limiter.clone()
    }

    /// Sets the states that health checks return. From now on `service` is known to them, and not serving before it is said to be.
    pub async fn health(&self, service: &str) -> HealthReporter {
        self.health.set_service_status(service, ServingStatus::NotServing).await;
        self.health.clone()
    }

    /// With one more service, already guarded.
    pub fn with<S>(mut self, service: S) -> Self
    where
        S: Service<http::Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        self.routes = self.routes.add_service(service);
        self
    }

    /// With pages beside the services, already guarded, for callers that speak plain HTTP.
    pub fn with_pages(mut self, pages: axum::Router) -> Self {
        let router = self.routes.axum_router_mut();
        *router = std::mem::take(router).merge(pages);
        self.server = self.server.accept_http1(true);
        self
    }

    /// Serves until `stop`; calls under way are finished.
    ///
    /// # Errors
    ///
    /// One line.
    pub async fn serve(self, stop: CancellationToken) -> Result<(), String> {
        let incoming = stream::unfold((self.listener, self.limiter), async |(listener, limiter)| {
            let (connection, _) = limiter.accept(&listener).await;
            Some((Ok::<_, Infallible>(connection), (listener, limiter)))
        });
        let served = self
            .server
            .layer(InterceptorLayer::new(Arrived))
            .add_routes(self.routes)
            .serve_with_incoming_shutdown(incoming, stop.cancelled_owned());
        served.await.map_err(|error| format!("the server ended: {error}"))
    }
}

/// The answer to a path without a service: for a gRPC caller a status, which travels under 200; for any other 404.
fn unknown(request: &axum::extract::Request) -> Response {
    let content = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content.is_some_and(|content| content.starts_with("application/grpc")) {
        return Status::unimplemented("this method does not exist").into_http();
    }
    problem(StatusCode::NOT_FOUND, "not_found", "this path does not exist", false)
}

/// A refusal as problem details (RFC 9457).
pub fn problem(status: StatusCode, code: &str, detail: &str, retryable: bool) -> Response {
    let body = json!({
        "type": "about:blank",
        "title": status.canonical_reason().unwrap_or_default(),
        "status": status.as_u16(),
        "code": code,
        "detail": detail,
        "retryable": retryable,
    });
    (status, [(CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
}

/// Binds `addr`, or says in one line why not.
pub async fn bind(addr: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(addr).await.map_err(|error| format!("cannot listen on {addr}: {error}"))
}

/// Notes that a connection has brought a request.
#[derive(Clone, Copy)]
struct Arrived;

impl Interceptor for Arrived {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let extensions = request.extensions();
        let over_tls = || extensions.get::<TlsConnectInfo<Arrival>>().map(TlsConnectInfo::get_ref);
        if let Some(arrival) = extensions.get::<Arrival>().or_else(over_tls) {
            arrival.tell();
        }
        Ok(request)
    }
}

/// Serves `GET /metrics` with the text that `render` returns at each call and the connections of `limiter`, until `stop`. Plain
/// HTTP: the page holds counts and names of nodes, nothing that a token would have to guard.
///
/// # Errors
///
/// One line.
pub async fn serve_metrics(
    tcp: TcpListener,
    limiter: ConnectionLimiter,
    render: impl Fn() -> String + Clone + Send + Sync + 'static,
    stop: CancellationToken,
) -> Result<(), String> {
    const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let page = get(move |ConnectInfo(arrival): ConnectInfo<Arrival>| {
        arrival.tell();
        let mut text = render();
        limiter.show(&mut text);
        async move { ([(CONTENT_TYPE, TEXT)], text) }
    });
    let pages = axum::Router::new().route("/metrics", page).into_make_service_with_connect_info::<Arrival>();
    let limiter =
        ConnectionLimiter::new(ConnectionsConfig { most: PAGE_READERS, ..ConnectionsConfig::default() });
    let served =
        axum::serve(LimitedListener { tcp, limiter }, pages).with_graceful_shutdown(stop.cancelled_owned());
    served.await.map_err(|error| format!("the page with metrics ended: {error}"))
}

#[cfg(test)]
mod tests;
