//! Tables in the wire protocol of Tablestore: `POST /Operation`, protobuf in and out, both signed.
//!
//! [`head`] checks the caller, by the headers alone; only then does [`body`] read the body. [`answer`] makes signed answers.
//! [`TableService`] carries out the operations. Connections, their limits and their ends are the same as on the other listeners
//! ([`serve`](mod@super::serve)).
//!
//! Once an operation was begun its answer goes out, also while the server stops: some clients repeat a write whose connection broke.

mod answer;
mod body;
mod head;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use axum::http::{Request, Response};
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use tidemark_table::{ErrorCode, TableError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::budget::{Budget, Charge};
use super::concurrency::ConcurrencyLimiter;
use super::listen::LimitedListener;
use super::state::NewRequestId;
use crate::app::RememberedKeys;
use crate::config::Config;
use crate::domain::Clock;
use crate::table::{Caller, TableService};
use crate::telemetry::Metrics;
use crate::workers::watched;

use answer::Named;
use head::{CheckedHead, Received};

/// The operations that there are; any other is counted as `other`.
const OPERATIONS: [&str; 14] = [
    "CreateTable",
    "ListTable",
    "DescribeTable",
    "UpdateTable",
    "DeleteTable",
    "ComputeSplitPointsBySize",
    "GetRow",
    "PutRow",
    "UpdateRow",
    "DeleteRow",
    "BatchGetRow",
    "BatchWriteRow",
    "GetRange",
    "ListSearchIndex",
];

/// How long the head of a request may take, from the opening of its connection or from the answer before it: so an idle connection is
/// closed after this time.
pub(super) const HEAD: Duration = Duration::from_secs(60);

/// Bytes of bodies and answers that are held in memory at the same time.
const BUFFERED_BYTES: usize = 128 << 20;

/// The operations that change something. Their results are answered, however little memory there is.
const WRITES: [&str; 7] =
    ["CreateTable", "UpdateTable", "DeleteTable", "PutRow", "UpdateRow", "DeleteRow", "BatchWriteRow"];

/// The parts that the composition root opens for tables.
pub struct Tables {
    /// Where they are served.
    pub listener: TcpListener,
    /// Carries out operations.
    pub service: TableService,
    /// The access keys of callers; asked for each request.
    pub keys: Arc<RememberedKeys>,
}

/// Answers requests; a cheap clone is the same one. It is no router, since all addresses are answered alike: the layers of one took 3 of
/// the 49 µs of a PutRow.
#[derive(Clone)]
pub(super) struct Exchange(Arc<ExchangeParts>);

/// The parts that a request needs.
struct ExchangeParts {
    service: TableService,
    keys: Arc<RememberedKeys>,
    /// How long a body may take.
    body: Duration,
    budget: Budget,
    new_request_id: NewRequestId,
    metrics: Arc<Metrics>,
    clock: Clock,
    stopping: CancellationToken,
}

/// The listener and what answers on it.
pub(super) fn listener(
    tables: Tables,
    config: &Config,
    clock: Clock,
    metrics: Arc<Metrics>,
    new_request_id: NewRequestId,
    stopping: CancellationToken,
) -> (LimitedListener, Exchange) {
    let Tables { listener, service, keys } = tables;
    let (most, body) = (config.table.connections, Duration::from_secs(config.server.request_seconds.into()));
    let listener = LimitedListener {
        tcp: listener,
        // Programs of one machine share its address.
        limiter: ConcurrencyLimiter::new(most, most),
        trusted: Vec::new(),
        patience: HEAD + body,
        writing: Duration::from_secs(config.server.write_seconds.into()),
        full: answer::full().into(),
    };
    let exchange = Exchange(Arc::new(ExchangeParts {
        service,
        keys,
        budget: Budget::new(BUFFERED_BYTES, BUFFERED_BYTES),
        body,
        new_request_id,
        metrics,
        clock,
        stopping,
    }));
    (listener, exchange)
}

impl Service<Request<Incoming>> for Exchange {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let parts = Arc::clone(&self.0);
        Box::pin(async move {
            let answer = AssertUnwindSafe(parts.exchange(request)).catch_unwind().await;
            Ok(answer.unwrap_or_else(|_| {
                tracing::error!("a request to a table panicked");
                let error = TableError::new(ErrorCode::InternalServerError, "Internal server error.");
                answer::refusal(&parts.named(), None, &error)
            }))
        })
    }
}

impl ExchangeParts {
    /// A request and its answer.
    async fn exchange(&self, request: Request<Incoming>) -> Response<Body> {
        let began = Instant::now();
        let named = self.named();
        let (parts, body) = request.into_parts();
        let operation =
            OPERATIONS.into_iter().find(|known| parts.uri.path().strip_prefix('/') == Some(known));
        let operation = operation.unwrap_or("other");
        let received = Received { method: &parts.method, uri: &parts.uri, headers: &parts.headers };
        let (head, done) = match head::check(self, &received).await {
            Err(refused) => (None, Err(refused)),
            Ok(head) => {
                let done = watched(operation, self.operate(&head, body)).await;
                (Some(head), done)
            }
        };
        let result = done.as_ref().map_or_else(|refused| refused.code.as_str(), |_| "ok");
        let response = match done {
            Ok((bytes, charge)) => answer::success(&named, head.as_ref(), bytes, charge).await,
            Err(refused) => answer::refusal(&named, head.as_ref(), &refused),
        };
        let took = began.elapsed();
        self.metrics.tables.answered(operation, result, took);
        tracing::debug!(id = named.id, operation, result, elapsed = ?took, "answered");
        response
    }

    /// A name and a time for an answer.
    fn named(&self) -> Named {
        Named::new(self.clock.now(), &(self.new_request_id)())
    }

    /// Reads the body and does what it asks; the answer's message, and what is charged for it.
    async fn operate(&self, head: &CheckedHead, body: Incoming) -> Result<(Vec<u8>, Charge), TableError> {
        let (key, claimed) = (&head.key, body::claimed(&body, head)?);
        let known =
            body.size_hint().exact().map_or(0, |length| usize::try_from(length).unwrap_or(usize::MAX));
        // A request that waits for its key's turn takes no room.
        let _turn = self.service.enter(&key.id, &head.operation, known).await?;
        let mut charge = self.charge(claimed).await?;
        let body = body::read(body, head, self.body, &self.stopping).await?;
        // The rest of a body that came in pieces, or packed.
        self.service.count(&key.id, body.len().saturating_sub(known));
        let (id, instance) = (key.id.clone(), key.instance.clone());
        let caller = Caller { key: id, instance, may_write: key.may_write, inbox: key.inbox };
        let answer = self.service.call(&caller, &head.operation, &body).await?;
        drop(body);
        if charge.settle(answer.len()).is_err() && !WRITES.contains(&head.operation.as_str()) {
            return Err(busy());
        }
        Ok((answer, charge))
    }

    /// Room for so many bytes.
    async fn charge(&self, bytes: usize) -> Result<Charge, TableError> {
        // Programs of one machine share its address, so it counts for nobody.
        self.budget.take_soon(None, bytes).await.map_err(|_| busy())
    }
}

/// Nothing was applied, and trying again helps.
fn busy() -> TableError {
    TableError::new(ErrorCode::ServerBusy, "Server is busy.")
}
