//! Wires between the processes of a cluster: a TCP relay for each pair that speaks, which can be cut in either direction. Bytes sent
//! into a cut wire arrive when it is mended, late, as on a real network.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::{Failure, Result};

/// Which way bytes pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Both ways.
    Open,
    /// Neither.
    Cut,
    /// Only from the caller to the called: questions arrive, answers do not.
    Thither,
    /// Only from the called to the caller.
    Hither,
}

/// One wire. Dropping it ends its connections.
#[derive(Debug)]
pub struct ClusterLink {
    from: String,
    to: String,
    addr: SocketAddr,
    flow: Arc<watch::Sender<Flow>>,
    relay: JoinHandle<()>,
}

impl ClusterLink {
    /// A wire from `from` to the process called `to`, which listens on `target`.
    pub(super) fn lay(from: &str, to: &str, target: &str) -> Result<ClusterLink> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let target = target.parse().map_err(|_| Failure::new(format!("{target} is no address")))?;
        let flow = Arc::new(watch::Sender::new(Flow::Open));
        let relay = tokio::spawn(relay(TcpListener::from_std(listener)?, target, Arc::clone(&flow)));
        Ok(ClusterLink { from: from.to_owned(), to: to.to_owned(), addr, flow, relay })
    }

    /// The process that calls over it.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// The process that is called.
    pub fn to(&self) -> &str {
        &self.to
    }

    /// Where the caller finds it: `host:port`.
    pub fn addr(&self) -> String {
        self.addr.to_string()
    }

    /// Cuts or mends it.
    pub fn set(&self, flow: Flow) {
        self.flow.send_replace(flow);
    }
}

impl Drop for ClusterLink {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

async fn relay(listener: TcpListener, target: SocketAddr, flow: Arc<watch::Sender<Flow>>) {
    // Ends with the relay, and its connections with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((caller, _)) = accepted else { continue };
                connections.spawn(connect(caller, target, flow.subscribe()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connect(caller: TcpStream, target: SocketAddr, mut flow: watch::Receiver<Flow>) {
    // A call into a cut wire is not even refused.
    if passing(&mut flow, Flow::Thither).await.is_none() {
        return;
    }
    let Ok(called) = TcpStream::connect(target).await else { return };
    if caller.set_nodelay(true).and(called.set_nodelay(true)).is_err() {
        return;
    }
    let (from_caller, to_caller) = caller.into_split();
    let (from_called, to_called) = called.into_split();
    // The first to end takes the other along: half-closed connections are of no use to gRPC.
    tokio::select! {
        () = carry(from_caller, to_called, flow.clone(), Flow::Thither) => {}
        () = carry(from_called, to_caller, flow, Flow::Hither) => {}
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut flow: watch::Receiver<Flow>,
    direction: Flow,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if passing(&mut flow, direction).await.is_none() || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
    // The end of a connection does not pass a cut wire either.
    passing(&mut flow, direction).await;
}

/// Waits until bytes pass in `direction`; `None` when the link is gone.
async fn passing(flow: &mut watch::Receiver<Flow>, direction: Flow) -> Option<()> {
    flow.wait_for(|flow| *flow == Flow::Open || *flow == direction).await.ok().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_sent_into_a_cut_wire_arrives_when_it_is_mended() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let link = ClusterLink::lay("a", "b", &server.local_addr().unwrap().to_string()).unwrap();
        let mut caller = TcpStream::connect(link.addr()).await.unwrap();
        let (mut called, _) = server.accept().await.unwrap();
        link.set(Flow::Hither);
        caller.write_all(b"question").await.unwrap();
        called.write_all(b"answer").await.unwrap();
        let mut heard = [0; 6];
        caller.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"answer", "the other direction still passes");
        let mut heard = [0; 8];
        let early = called.try_read(&mut heard);
        assert_eq!(early.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        link.set(Flow::Open);
        called.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"question");
    }
}
