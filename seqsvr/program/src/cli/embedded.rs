//! `seqsvr embedded DIR`: durable counters in one process and one directory, over the Redis protocol.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use seqsvr_rpc::connections::{ConnectionLimiter, ConnectionsConfig};
use seqsvr_rpc::security::{Listen, ListenConfig};
use tokio_util::sync::CancellationToken;

use super::{ExitError, Signals, resp};
use crate::counters::durable::DurableCounters;

const EXAMPLES: &str = "\
Examples:
  seqsvr embedded counters
  redis-cli INCR order                                (integer) 1
  redis-cli INCRBY order 100                          (integer) 101: the numbers 2 to 101 are yours
  redis-cli GET order                                 \"101\"
  redis-benchmark -t incr -P 16 -q
  seqsvr embedded counters --listen 0.0.0.0:6380 --certificate cert.pem --key key.pem --token-file token

An answered INCR survives a power cut, and no number is given twice. After a kill a counter may skip some numbers.
Any key is a counter that its first INCR makes. docs/RESP.md has the commands and the limits.";

/// The flags of the role.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct EmbeddedArgs {
    /// Where the counters are; made if it is not there
    directory: PathBuf,
    /// Where clients connect; port 0 picks a free one. Beyond loopback it needs a certificate and a token
    #[arg(long, default_value = "127.0.0.1:6379", value_name = "IP:PORT")]
    listen: SocketAddr,
    /// The certificate chain to show (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// A file with the token that clients show by AUTH
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// How many clients at a time
    #[arg(long, default_value_t = ConnectionsConfig::default().most, value_name = "N")]
    connections: usize,
}

/// Serves until a signal ends it; then every counter is written as it stands.
pub(super) async fn run(args: EmbeddedArgs) -> Result<(), ExitError> {
    let EmbeddedArgs { directory, listen: addr, certificate, key, token_file, connections } = args;
    let security = ListenConfig { certificate, key, token_file, ..ListenConfig::default() };
    let connections = ConnectionsConfig { most: connections, ..ConnectionsConfig::default() };
    connections.check().map_err(ExitError::usage)?;
    // Errors in these are said before anything is made.
    Listen::load(&security, addr, false).map_err(ExitError::usage)?;
    let mut signals = Signals::listen()?;
    let opened = tokio::task::spawn_blocking(move || DurableCounters::open(&directory)).await;
    let counters = Arc::new(opened.map_err(ExitError::failed)?.map_err(ExitError::failed)?);
    let (stop, limiter) = (CancellationToken::new(), ConnectionLimiter::new(connections));
    let server = resp::open(addr, &security, limiter, Arc::clone(&counters) as _, stop.clone()).await?;
    let served = resp::serve(Some(server))?;
    let halt = async {
        signals.next().await;
        stop.cancel();
    };
    tokio::join!(served, halt);
    tokio::task::spawn_blocking(move || counters.close()).await.map_err(ExitError::failed)
}
