//! A TCP relay before a server, at an address of its own: it can be shut, which ends its connections and refuses new
//! ones, be opened again, break by itself in the middle of what passes, and be cut in either direction. Bytes sent into
//! what is cut arrive when it is mended, late, as on a real network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::ports::free_port;
use crate::until::until;

/// Which way bytes pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Both ways.
    Open,
    /// Neither.
    Cut,
    /// Only from the caller to the server: questions arrive, answers do not.
    Thither,
    /// Only from the server to the caller.
    Hither,
}

/// A relay. Dropping it shuts it.
#[derive(Debug)]
pub struct Gate {
    port: u16,
    target: SocketAddr,
    passing: Arc<Passing>,
    relay: JoinHandle<()>,
}

/// The bytes that may still pass, over all connections, before the gate breaks.
#[derive(Debug)]
struct Passing {
    to_server: AtomicU64,
    to_client: AtomicU64,
    used_up: Notify,
    flow: watch::Sender<Flow>,
    connections: AtomicU64,
}

impl Gate {
    /// An open gate before the server at `target`, `HOST:PORT` by number.
    ///
    /// # Panics
    /// When `target` is something else, or no port is free.
    pub async fn before(target: &str) -> Gate {
        let target = target.parse().expect("host and port by number");
        let (to_server, to_client) = (AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX));
        let passing = Arc::new(Passing {
            to_server,
            to_client,
            used_up: Notify::new(),
            flow: watch::Sender::new(Flow::Open),
            connections: AtomicU64::new(0),
        });
        let mut gate = Gate { port: free_port(), target, passing, relay: tokio::spawn(async {}) };
        gate.open().await;
        gate
    }

    /// Where clients find it: `HOST:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Takes connections again, at the same address; without another word it breaks no more.
    pub async fn open(&mut self) {
        self.shut().await;
        self.break_after(u64::MAX, u64::MAX);
        let mut listener = None;
        // A process that is just being started still has the earlier listener, until it runs its own program.
        until("the gate's port is free again", async || {
            listener = TcpListener::bind(self.address()).await.ok();
            listener.is_some()
        })
        .await;
        let listener = listener.expect("it was bound");
        self.relay = tokio::spawn(relay(listener, self.target, Arc::clone(&self.passing)));
    }

    /// Ends all connections, and refuses new ones from now on.
    pub async fn shut(&mut self) {
        self.relay.abort();
        // Ended or aborted, it is gone.
        let _ = (&mut self.relay).await;
        self.relay = tokio::spawn(async {});
    }

    /// Shuts by itself once so many bytes have passed in one direction, in the middle of a frame if it falls so.
    pub fn break_after(&self, to_server: u64, to_client: u64) {
        self.passing.to_server.store(to_server, Ordering::SeqCst);
        self.passing.to_client.store(to_client, Ordering::SeqCst);
    }

    /// Cuts or mends it.
    pub fn set(&self, flow: Flow) {
        self.passing.flow.send_replace(flow);
    }

    /// Whether the server's answers wait here. Requests pass meanwhile.
    pub fn hold_answers(&self, hold: bool) {
        self.set(if hold { Flow::Thither } else { Flow::Open });
    }

    /// How many connections it has taken.
    pub fn connections(&self) -> u64 {
        self.passing.connections.load(Ordering::SeqCst)
    }

    /// Waits until it has shut by itself.
    pub async fn broken(&mut self) {
        // Nobody aborts it meanwhile.
        let _ = (&mut self.relay).await;
        self.relay = tokio::spawn(async {});
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

async fn relay(listener: TcpListener, target: SocketAddr, passing: Arc<Passing>) {
    // Ends with the relay, and its connections with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                passing.connections.fetch_add(1, Ordering::SeqCst);
                connections.spawn(connect(client, target, Arc::clone(&passing)));
            }
            Some(_) = connections.join_next() => {}
            () = passing.used_up.notified() => return,
        }
    }
}

async fn connect(client: TcpStream, target: SocketAddr, passing: Arc<Passing>) {
    let (mut thither, hither) = (passing.flow.subscribe(), passing.flow.subscribe());
    // A call into what is cut is not even refused.
    if passes(&mut thither, Flow::Thither).await.is_none() {
        return;
    }
    let Ok(server) = TcpStream::connect(target).await else { return };
    if client.set_nodelay(true).and(server.set_nodelay(true)).is_err() {
        return;
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // The first to end takes the other along: half-closed connections are of no use to gRPC.
    tokio::select! {
        () = carry(from_client, to_server, (thither, Flow::Thither), &passing.to_server, &passing.used_up) => {}
        () = carry(from_server, to_client, (hither, Flow::Hither), &passing.to_client, &passing.used_up) => {}
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    (mut flow, direction): (watch::Receiver<Flow>, Flow),
    left: &AtomicU64,
    used_up: &Notify,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if passes(&mut flow, direction).await.is_none() {
            return;
        }
        let read = read as u64;
        let before = left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(read)))
            .expect("the closure always answers");
        let whole = usize::try_from(read.min(before)).expect("at most the buffer");
        if to.write_all(&bytes[..whole]).await.is_err() {
            return;
        }
        if before < read {
            used_up.notify_one();
            // The relay ends, and this with it.
            std::future::pending::<()>().await;
        }
    }
    // The end of a connection does not pass what is cut either.
    passes(&mut flow, direction).await;
}

/// Waits until bytes pass in `direction`; `None` when the gate is gone.
async fn passes(flow: &mut watch::Receiver<Flow>, direction: Flow) -> Option<()> {
    flow.wait_for(|flow| *flow == Flow::Open || *flow == direction).await.ok().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers each byte with the same.
    async fn echo() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        tokio::spawn(async move {
            while let Ok((mut one, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = one.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn it_breaks_in_the_middle_refuses_and_opens_again() {
        let mut gate = Gate::before(&echo().await).await;
        let mut client = TcpStream::connect(gate.address()).await.expect("open");
        gate.break_after(5, u64::MAX);
        client.write_all(b"four").await.expect("sent");
        let mut heard = [0; 4];
        client.read_exact(&mut heard).await.expect("it passes");
        client.write_all(b"more").await.expect("sent");
        gate.broken().await;
        let mut rest = Vec::new();
        // Reset or ended.
        let _ = client.read_to_end(&mut rest).await;
        assert!(rest.len() <= 1, "{rest:?}");
        TcpStream::connect(gate.address()).await.expect_err("shut");
        gate.open().await;
        let mut client = TcpStream::connect(gate.address()).await.expect("open again");
        client.write_all(b"four").await.expect("sent");
        client.read_exact(&mut heard).await.expect("it passes");
        assert_eq!(&heard, b"four");
        gate.shut().await;
        assert_eq!(client.read(&mut heard).await.unwrap_or(0), 0, "its connections have ended");
        TcpStream::connect(gate.address()).await.expect_err("shut");
    }

    #[tokio::test]
    async fn what_is_sent_into_a_cut_direction_arrives_when_it_is_mended() {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let gate = Gate::before(&server.local_addr().expect("bound").to_string()).await;
        let mut caller = TcpStream::connect(gate.address()).await.expect("open");
        let (mut called, _) = server.accept().await.expect("a call");
        gate.set(Flow::Hither);
        caller.write_all(b"question").await.expect("sent");
        called.write_all(b"answer").await.expect("sent");
        let mut heard = [0; 6];
        caller.read_exact(&mut heard).await.expect("it passes");
        assert_eq!(&heard, b"answer", "the other direction still passes");
        let mut heard = [0; 8];
        let early = called.try_read(&mut heard);
        assert_eq!(early.expect_err("nothing yet").kind(), std::io::ErrorKind::WouldBlock);
        gate.set(Flow::Open);
        called.read_exact(&mut heard).await.expect("it passes");
        assert_eq!(&heard, b"question");
    }
}
