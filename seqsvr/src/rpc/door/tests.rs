//! The door over real connections: how many, and for how long without a request.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::*;
use crate::rpc::security::ListenConfig;

const PATIENCE: Duration = Duration::from_secs(10);

struct Open {
    addr: SocketAddr,
    seats: Seats,
    _stop: DropGuard,
}

async fn open(most: usize, first_request_ms: u64) -> Open {
    let addr = SocketAddr::from(([127, 0, 0, 1], 0));
    let listen = Listen::load(&ListenConfig::default(), addr, false).expect("loopback needs nothing");
    let connections = ConnectionsConfig { most, first_request_ms, ..ConnectionsConfig::default() };
    let door = Door::open(addr, &listen, connections).await.expect("a free port");
    let (addr, seats, stop) = (door.address().expect("bound"), door.seats(), CancellationToken::new());
    tokio::spawn(door.serve(stop.clone()));
    Open { addr, seats, _stop: stop.drop_guard() }
}

/// Waits until the other end has closed.
async fn closed(mut stream: TcpStream) {
    // What a server sends first by itself, its settings, does not count.
    let mut rest = Vec::new();
    let ended = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("in time");
    drop(ended);
}

impl Open {
    async fn dial(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.expect("it listens")
    }

    fn client(&self) -> HealthClient<tonic::transport::Channel> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.addr)).expect("an address");
        HealthClient::new(endpoint.connect_lazy())
    }

    fn shows(&self, line: &str) -> bool {
        let mut page = "# EOF\n".to_owned();
        self.seats.show(&mut page);
        assert!(page.ends_with("# EOF\n") && page.matches("# EOF").count() == 1, "{page}");
        page.lines().any(|one| one == line)
    }
}

fn question() -> HealthCheckRequest {
    HealthCheckRequest::default()
}

#[tokio::test]
async fn beyond_the_limit_connections_are_closed_at_once_until_others_end() {
    let door = open(2, 60_000).await;
    let (one, other) = (door.dial().await, door.dial().await);
    closed(door.dial().await).await;
    closed(door.dial().await).await;
    assert!(door.shows("seqsvr_connections 2") && door.shows("seqsvr_connections_refused_total 2"));
    drop((one, other));
    // The process hears of their end in its own time.
    let mut client = door.client();
    let served = async { while client.check(question()).await.is_err() {} };
    timeout(PATIENCE, served).await.expect("a seat came free");
}

#[tokio::test]
async fn who_never_gets_to_a_request_loses_the_seat() {
    let door = open(3, 100).await;
    let silent = door.dial().await;
    let mut halfway = door.dial().await;
    halfway.write_all(b"PRI * HTTP/2.0\r\n").await.expect("open");
    let mut greeted = door.dial().await;
    greeted.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("open");
    tokio::join!(closed(silent), closed(halfway), closed(greeted));
    door.client().check(question()).await.expect("the seats are free again");
}

#[tokio::test]
async fn who_has_brought_a_request_keeps_the_seat() {
    let door = open(2, 100).await;
    let mut client = door.client();
    client.check(question()).await.expect("served");
    // One that came later loses its seat, so the time of the first one has passed, too.
    closed(door.dial().await).await;
    client.check(question()).await.expect("served");
    assert!(door.shows("seqsvr_connections_taken_total 2"), "it was still the same connection");
}
