//! Limits the connections of a process: how many are open at a time, and for how long one may stay open without a
//! request. This is the section `[connections]` of every role. Owns the connection limiter of each listener;
//! `grpc_server` accepts through it.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::connect_info;
use axum::serve::{IncomingStream, Listener};
use serde::Deserialize;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};
use tonic::transport::server::Connected;
use tracing::warn;

use crate::net::{Arrival, Attended};

/// After an accept that failed, for want of file descriptors say: trying again at once would spin.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a connection may be silent: callers over HTTP/2 are asked for a sign of life every 5 seconds.
const SILENCE: Duration = Duration::from_secs(60);
/// The log reports connections turned away at most so often.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The section `[connections]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectionsConfig {
    /// Open at a time; more are closed at once. 1 to 1,000,000. Default 4,096.
    pub most: usize,
    /// How long one may take from its opening to its first request, TLS and HTTP handshakes and all.
    #[serde(skip)]
    pub first_request: Duration,
}

impl Default for ConnectionsConfig {
    fn default() -> Self {
        Self { most: 4_096, first_request: Duration::from_secs(10) }
    }
}

impl ConnectionsConfig {
    /// Whether it is within its range.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn check(&self) -> Result<(), ConnectionsError> {
        match self.most {
            1..=1_000_000 => Ok(()),
            most => Err(ConnectionsError { most }),
        }
    }
}

/// The key of `[connections]` is out of its range.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("[connections]: most = {most} is not between 1 and 1000000")]
pub struct ConnectionsError {
    most: usize,
}

/// Gives out the connection permits of one listener. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ConnectionLimiter(Arc<LimiterState>);

#[derive(Debug)]
struct LimiterState {
    config: ConnectionsConfig,
    free: Arc<Semaphore>,
    taken: AtomicU64,
    refused: AtomicU64,
    /// When the log last reported refusals, and how many there had been by then.
    last_logged: Mutex<Option<(Instant, u64)>>,
}

/// A connection with its permit.
pub(crate) type LimitedConnection = Attended<TcpStream, ConnectionPermit>;

/// One place among the connections that a process allows. It is free again when its connection is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    _place: OwnedSemaphorePermit,
    arrival: Arrival,
}

impl ConnectionLimiter {
    /// As many as `config` allows, all free.
    pub fn new(config: ConnectionsConfig) -> Self {
        let (free, last_logged) = (Arc::new(Semaphore::new(config.most)), Mutex::default());
        Self(Arc::new(LimiterState {
            config,
            free,
            taken: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            last_logged,
        }))
    }

    /// The next connection that gets a permit, given up when it is silent; others are closed.
    pub(crate) async fn accept(&self, listener: &TcpListener) -> (LimitedConnection, SocketAddr) {
        let (stream, permit, peer) = self.next(listener, b"").await;
        let arrival = permit.arrival.clone();
        let connection = Attended::new(stream, SILENCE, permit);
        (connection.awaiting(arrival, self.0.config.first_request), peer)
    }

    /// The next connection that gets a permit, for a protocol that looks after silence by itself; others are told `refusal` and
    /// closed.
    pub async fn accept_stream(
        &self,
        listener: &TcpListener,
        refusal: &[u8],
    ) -> (TcpStream, ConnectionPermit) {
        let (stream, permit, _) = self.next(listener, refusal).await;
        (stream, permit)
    }

    async fn next(
        &self,
        listener: &TcpListener,
        refusal: &[u8],
    ) -> (TcpStream, ConnectionPermit, SocketAddr) {
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "a connection could not be accepted");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            match self.admit(&stream) {
                Some(permit) => return (stream, permit, peer),
                None => {
                    // A few bytes fit into the buffer of a new connection, or are not told.
                    let _ = stream.try_write(refusal);
                    self.refused(peer);
                }
            }
        }
    }

    fn admit(&self, stream: &TcpStream) -> Option<ConnectionPermit> {
        let LimiterState { free, taken, .. } = &*self.0;
        let place = Arc::clone(free).try_acquire_owned().ok()?;
        taken.fetch_add(1, Ordering::Relaxed);
        // Without it answers would only be slower.
        let _ = stream.set_nodelay(true);
        Some(ConnectionPermit { _place: place, arrival: Arrival::default() })
    }

    /// Counts one that was turned away, and says so now and then.
    fn refused(&self, peer: SocketAddr) {
        let refused = self.0.refused.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last_logged = self.0.last_logged.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match *last_logged {
            Some((at, _)) if at.elapsed() < LOG_EVERY => return,
            Some((_, before)) => before,
            None => 0,
        };
        *last_logged = Some((Instant::now(), refused));
        let (now, most) = (refused - before, self.0.config.most);
        warn!(now, refused, %peer, "connections were refused: {most} are open, the limit; raise [connections] most");
    }

    fn open(&self) -> usize {
        self.0.config.most - self.0.free.available_permits()
    }

    /// Puts its metrics into `page`, a whole text of OpenMetrics.
    pub(crate) fn show(&self, page: &mut String) {
        const END: &str = "# EOF\n";
        let body = page.strip_suffix(END).unwrap_or(page).len();
        page.truncate(body);
        let LimiterState { config, taken, refused, .. } = &*self.0;
        let (taken, refused) = (taken.load(Ordering::Relaxed), refused.load(Ordering::Relaxed));
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "# HELP seqsvr_connections Open connections.\n# TYPE seqsvr_connections gauge\n\
             seqsvr_connections {}\n\
             # HELP seqsvr_connections_most Connections that may be open.\n# TYPE seqsvr_connections_most gauge\n\
             seqsvr_connections_most {}\n\
             # HELP seqsvr_connections_taken Connections accepted.\n# TYPE seqsvr_connections_taken counter\n\
             seqsvr_connections_taken_total {taken}\n\
             # HELP seqsvr_connections_refused Connections refused.\n# TYPE seqsvr_connections_refused counter\n\
             seqsvr_connections_refused_total {refused}\n{END}",
            self.open(),
            config.most,
        );
    }
}

impl Connected for LimitedConnection {
    type ConnectInfo = Arrival;

    fn connect_info(&self) -> Arrival {
        self.held().arrival.clone()
    }
}

/// A listener of the pages with metrics.
pub(crate) struct LimitedListener {
    pub(crate) tcp: TcpListener,
    pub(crate) limiter: ConnectionLimiter,
}

impl connect_info::Connected<IncomingStream<'_, LimitedListener>> for Arrival {
    fn connect_info(stream: IncomingStream<'_, LimitedListener>) -> Arrival {
        stream.io().held().arrival.clone()
    }
}

impl Listener for LimitedListener {
    type Io = LimitedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedConnection, SocketAddr) {
        self.limiter.accept(&self.tcp).await
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}
