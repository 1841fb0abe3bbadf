//! Taking connections: no delay for small packets, and no more at a time than the limiter permits.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use seqsvr_rpc::net::Attended;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::concurrency::{ConcurrencyLimiter, Permit};
use super::limits::ClientNetwork;
use super::proxy;
use crate::config::Cidr;

/// The answer to a browser or a program that gets no permit.
pub(super) const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
    connection: close\r\nretry-after: 5\r\ncontent-length: 181\r\n\r\n\
    {\"type\":\"/docs#code-too_many_connections\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"code\":\"too_many_connections\",\"detail\":\"too many open connections; close some\",\"retryable\":true}";

/// Connections that hear at a time why they are closed. Beyond them they are closed without a word.
pub(crate) const REFUSED_AT_A_TIME: usize = 16;

/// Their places.
static REFUSING: Semaphore = Semaphore::const_new(REFUSED_AT_A_TIME);

/// How long one such may take to read that.
const HEARING: Duration = Duration::from_secs(1);

/// Bytes of its request that are read and ignored.
const IGNORED: usize = 64 << 10;

/// A listener that limits its connections.
pub(super) struct LimitedListener {
    pub(super) tcp: TcpListener,
    pub(super) limiter: ConcurrencyLimiter,
    pub(super) trusted: Vec<Cidr>,
    /// How long a connection may be silent before it is given up.
    pub(super) patience: Duration,
    /// How long the other end may leave unread what is sent to it.
    pub(super) writing: Duration,
    /// The answer to a caller that gets no permit. The connection is closed after it.
    pub(super) full: Cow<'static, [u8]>,
}

impl LimitedListener {
    /// The next connection that gets a permit.
    pub(super) async fn accept(&self) -> (Attended<TcpStream, Permit>, SocketAddr) {
        loop {
            let (stream, peer) = match self.tcp.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // One that hung up early is nothing; without file descriptors, trying again at once would spin.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            // A proxy carries many people, so its own address is not counted.
            let address = (!proxy::is_trusted(peer.ip(), &self.trusted)).then(|| peer.ip());
            let Some(permit) = self.limiter.take(address.map(ClientNetwork::of)) else {
                self.refuse(stream);
                continue;
            };
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection was gone before it began");
                continue;
            }
            let stream = Attended::new(stream, self.patience, permit).writing_within(self.writing);
            return (stream, peer);
        }
    }
}

impl LimitedListener {
    fn refuse(&self, mut stream: TcpStream) {
        let Ok(place) = REFUSING.try_acquire() else { return };
        let answer = self.full.clone();
        tokio::spawn(async move {
            // A connection that is closed over bytes that were not read is reset, and the answer is lost.
            let said = async {
                stream.write_all(&answer).await?;
                stream.shutdown().await?;
                let (mut left, mut ignored) = (IGNORED, vec![0; 4_096]);
                while left > 0 {
                    match stream.read(&mut ignored).await? {
                        0 => break,
                        some => left = left.saturating_sub(some),
                    }
                }
                std::io::Result::Ok(())
            };
            let _ = timeout(HEARING, said).await;
            drop(place);
        });
    }
}

/// The address at the other end of the connection, before any proxy is looked through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_of_a_full_house_is_a_whole_answer() {
        let text = std::str::from_utf8(FULL).expect("ASCII");
        let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        serde_json::from_str::<serde_json::Value>(body).expect("JSON");
    }
}
