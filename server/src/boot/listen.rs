//! The addresses that a start listens on.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::error::BootError;
use crate::config::Listen;

/// Listens on `wanted`; where that fails, `otherwise` says what to do.
pub(super) async fn listen(
    wanted: &Listen,
    otherwise: &'static str,
) -> Result<(TcpListener, SocketAddr), BootError> {
    let failed = |why| BootError::Listen { address: wanted.clone(), why, otherwise };
    let listener = wanted.bind().await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
