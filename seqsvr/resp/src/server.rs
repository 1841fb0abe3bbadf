//! Accepts clients, within the limits of the process, over TLS where it has certificates. Owns the listener. The roles of
//! the program open and serve it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepidle};
use seqsvr_rpc::connections::{ConnectionLimiter, ConnectionPermit};
use seqsvr_rpc::grpc_server::bind;
use seqsvr_rpc::security::Listen;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use crate::connection::{PATIENCE, Shared, serve};
use crate::counters::KeyCounters;

/// A client that is silent for so long is asked by the system whether it is still there.
const SILENCE: Duration = Duration::from_secs(60);
/// How long clients have, at a stop, to get the answers that are under way.
const FAREWELL: Duration = Duration::from_secs(10);
/// For a client for which there is no place.
const CROWDED: &[u8] =
    b"-ERR max number of clients reached: raise [connections] most, or close connections\r\n";

/// A bound listener for clients of the Redis protocol.
pub struct RespServer {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    limiter: ConnectionLimiter,
    shared: Shared,
}

impl RespServer {
    /// Binds `addr`. `listen` was loaded for that address; `limiter` counts all connections of the process.
    ///
    /// # Errors
    ///
    /// One line: the address cannot be bound, the certificates cannot be used.
    pub async fn open(
        addr: SocketAddr,
        listen: &Listen,
        limiter: ConnectionLimiter,
        counters: Arc<dyn KeyCounters>,
        stop: CancellationToken,
    ) -> Result<Self, String> {
        let tls = listen.pem().map(|(certificate, key)| acceptor(certificate, key)).transpose()?;
        let listener = bind(addr).await?;
        let (guard, clients) = (listen.guard(), AtomicUsize::new(0));
        Ok(Self { listener, tls, limiter, shared: Shared { counters, guard, clients, stop } })
    }

    /// Where it listens, after port 0 too: `redis://127.0.0.1:6379`, or with `rediss` over TLS.
    ///
    /// # Errors
    ///
    /// One line.
    pub fn url(&self) -> Result<String, String> {
        let addr = self.listener.local_addr().map_err(|error| error.to_string())?;
        Ok(format!("redis{}://{addr}", if self.tls.is_some() { "s" } else { "" }))
    }

    /// Serves until the process stops; answers under way are written.
    pub async fn serve(self) {
        let Self { listener, tls, limiter, shared } = self;
        let (shared, tasks) = (Arc::new(shared), TaskTracker::new());
        for id in 1.. {
            let (stream, permit) = tokio::select! {
                accepted = limiter.accept_stream(&listener, CROWDED) => accepted,
                () = shared.stop.cancelled() => break,
            };
            let (shared, tls) = (Arc::clone(&shared), tls.clone());
            tasks.spawn(async move {
                shared.clients.fetch_add(1, Ordering::Relaxed);
                if let Err(error) = client(stream, permit, tls, id, &shared).await {
                    debug!(id, %error, "a client of the Redis protocol was given up");
                }
                shared.clients.fetch_sub(1, Ordering::Relaxed);
            });
        }
        tasks.close();
        // Clients that do not read are cut off by then.
        let _ = timeout(FAREWELL, tasks.wait()).await;
    }
}

async fn client(
    stream: TcpStream,
    _permit: ConnectionPermit,
    tls: Option<TlsAcceptor>,
    id: u64,
    shared: &Shared,
) -> io::Result<()> {
    // Pools keep connections open for as long as they like; only those whose other end is gone are closed.
    set_socket_keepalive(&stream, true)?;
    set_tcp_keepidle(&stream, SILENCE)?;
    match tls {
        None => serve(stream, id, shared).await,
        Some(tls) => {
            let stream = timeout(PATIENCE, tls.accept(stream)).await??;
            Box::pin(serve(stream, id, shared)).await
        }
    }
}

fn acceptor(certificate: &str, key: &str) -> Result<TlsAcceptor, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("the certificates cannot be used: {error}");
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
    let chain = chain.map_err(|error| wrong(&error))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| wrong(&error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong(&error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
