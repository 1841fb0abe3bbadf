//! The listener for clients of the Redis protocol, which several roles have: opened with the security of the role, served
//! beside its other listeners.

use std::net::SocketAddr;
use std::sync::Arc;

use seqsvr_resp::{KeyCounters, RespServer};
use seqsvr_rpc::connections::ConnectionLimiter;
use seqsvr_rpc::security::{Listen, ListenConfig};
use tokio_util::sync::CancellationToken;

use super::ExitError;

/// Binds `addr`, which is protected as every other address of the role.
pub(super) async fn open(
    addr: SocketAddr,
    security: &ListenConfig,
    limiter: ConnectionLimiter,
    counters: Arc<dyn KeyCounters>,
    stop: CancellationToken,
) -> Result<RespServer, ExitError> {
    let listen = Listen::load(security, addr, false).map_err(ExitError::usage)?;
    RespServer::open(addr, &listen, limiter, counters, stop).await.map_err(ExitError::failed)
}

/// Says where it listens, and serves until the process stops; without one there is nothing to do.
pub(super) fn serve(server: Option<RespServer>) -> Result<impl Future<Output = ()>, ExitError> {
    if let Some(server) = &server {
        println!("listening on {}", server.url().map_err(ExitError::failed)?);
    }
    Ok(async {
        if let Some(server) = server {
            server.serve().await;
        }
    })
}
