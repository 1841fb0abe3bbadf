//! Taking connections: no delay for small packets, and no more than the connection limiter permits.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use seqsvr_rpc::net::Attended;
use tokio::net::{TcpListener, TcpStream};

use super::limits::ClientNetwork;
use super::proxy;
use crate::config::Cidr;

/// The answer to a caller without a permit, before the connection is closed.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
    connection: close\r\nretry-after: 5\r\ncontent-length: 161\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"code\":\"too_many_connections\",\"detail\":\"too many open connections; close some\",\"retryable\":true}";

/// Counts open connections, in all and by address. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct ConnectionLimiter(Arc<LimiterState>);

#[derive(Debug)]
struct LimiterState {
    most: usize,
    most_per_address: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_address: HashMap<ClientNetwork, usize>,
}

/// One open connection; dropping it frees its place.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    limiter: ConnectionLimiter,
    /// Whether it counts among all, and for which address.
    counted: (bool, Option<ClientNetwork>),
}

impl ConnectionLimiter {
    pub(super) fn new(most: usize, most_per_address: usize) -> ConnectionLimiter {
        ConnectionLimiter(Arc::new(LimiterState { most, most_per_address, taken: Mutex::default() }))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for a new connection; `address` where that tells callers apart. `None` when there is no room.
    pub(super) fn take(&self, address: Option<IpAddr>) -> Option<ConnectionPermit> {
        let mut taken = self.taken();
        if taken.all >= self.0.most {
            return None;
        }
        let network = address.map(ClientNetwork::of);
        taken.count(network, self.0.most_per_address)?;
        taken.all += 1;
        Some(ConnectionPermit { limiter: self.clone(), counted: (true, network) })
    }

    /// A permit among those of `address`, for a connection that came through a proxy and is counted among all already.
    pub(super) fn take_behind_proxy(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let network = Some(ClientNetwork::of(address));
        self.taken().count(network, self.0.most_per_address)?;
        Some(ConnectionPermit { limiter: self.clone(), counted: (false, network) })
    }
}

impl Taken {
    fn count(&mut self, network: Option<ClientNetwork>, most: usize) -> Option<()> {
        let Some(network) = network else { return Some(()) };
        let of_address = self.by_address.entry(network).or_default();
        if *of_address >= most {
            return None;
        }
        *of_address += 1;
        Some(())
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.limiter.taken();
        let (among_all, network) = self.counted;
        taken.all -= usize::from(among_all);
        if let Some(Entry::Occupied(mut of_address)) = network.map(|network| taken.by_address.entry(network))
        {
            *of_address.get_mut() -= 1;
            if *of_address.get() == 0 {
                of_address.remove();
            }
        }
    }
}

/// A listener that limits its connections.
pub(super) struct LimitedListener {
    pub(super) tcp: TcpListener,
    pub(super) limiter: ConnectionLimiter,
    pub(super) trusted: Vec<Cidr>,
    /// How long a connection may be silent before it is given up.
    pub(super) patience: Duration,
    /// How long the other end may leave unread what is sent to it.
    pub(super) writing: Duration,
}

impl LimitedListener {
    /// The next connection that gets a permit.
    pub(super) async fn accept(&self) -> (Attended<TcpStream, ConnectionPermit>, SocketAddr) {
        loop {
            let (stream, peer) = match self.tcp.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // One that hung up early is nothing; without file descriptors, trying again at once would spin.
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            // A proxy carries many people, so its own address is not counted.
            let address = (!proxy::is_trusted(peer.ip(), &self.trusted)).then(|| peer.ip());
            let Some(permit) = self.limiter.take(address) else {
                let _ = stream.try_write(FULL);
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

/// The address at the other end of the connection, before any proxy is looked through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

impl Connected<SocketAddr> for Peer {
    fn connect_info(peer: SocketAddr) -> Peer {
        Peer(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_counted_in_all_and_by_address() {
        let limiter = ConnectionLimiter::new(3, 2);
        let (one, other) = (Some(IpAddr::from([10, 0, 0, 1])), Some(IpAddr::from([10, 0, 0, 2])));
        let first = limiter.take(one).expect("room");
        let _second = limiter.take(one).expect("room");
        assert!(limiter.take(one).is_none(), "two of one address");
        let _third = limiter.take(other).expect("room");
        assert!(limiter.take(other).is_none(), "three in all");
        drop(first);
        assert!(limiter.take(one).is_some());
    }

    #[test]
    fn people_behind_a_proxy_are_counted_by_their_own_address() {
        let limiter = ConnectionLimiter::new(10, 1);
        let _proxy = [limiter.take(None).expect("room"), limiter.take(None).expect("room")];
        let address = IpAddr::from([198, 51, 100, 1]);
        let held = limiter.take_behind_proxy(address).expect("room");
        assert!(limiter.take_behind_proxy(address).is_none());
        drop(held);
        assert!(limiter.take_behind_proxy(address).is_some());
        assert!(limiter.taken().by_address.is_empty());
    }

    #[test]
    fn the_refusal_of_a_full_house_is_a_whole_answer() {
        let text = std::str::from_utf8(FULL).expect("ASCII");
        let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        serde_json::from_str::<serde_json::Value>(body).expect("JSON");
    }
}
