//! The gRPC server over real connections: how many, and for how long without a request.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::*;
use crate::security::{Call, CallConfig, ListenConfig};

const PATIENCE: Duration = Duration::from_secs(10);

struct ServerUnderTest {
    addr: SocketAddr,
    limiter: ConnectionLimiter,
    _stop: DropGuard,
}

async fn open(most: usize, first_request_ms: u64) -> ServerUnderTest {
    open_with(&ListenConfig::default(), most, first_request_ms).await
}

async fn open_with(security: &ListenConfig, most: usize, first_request_ms: u64) -> ServerUnderTest {
    let addr = SocketAddr::from(([127, 0, 0, 1], 0));
    let listen = Listen::load(security, addr, false).expect("good files");
    let connections = ConnectionsConfig { most, first_request: Duration::from_millis(first_request_ms) };
    let server = GrpcServer::open(addr, &listen, connections).await.expect("a free port");
    let (addr, limiter, stop) =
        (server.address().expect("bound"), server.limiter(), CancellationToken::new());
    tokio::spawn(server.serve(stop.clone()));
    ServerUnderTest { addr, limiter, _stop: stop.drop_guard() }
}

/// Waits until the other end has closed.
async fn closed(mut stream: TcpStream) {
    // The settings that a server sends first do not count.
    let mut rest = Vec::new();
    let ended = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("in time");
    drop(ended);
}

impl ServerUnderTest {
    async fn dial(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.expect("it listens")
    }

    fn client(&self) -> HealthClient<Channel> {
        self.client_by(&CallConfig::default(), "http")
    }

    fn client_by(&self, call: &CallConfig, scheme: &str) -> HealthClient<Channel> {
        let call = Call::load(call).expect("good files");
        let endpoint = call.endpoint(&format!("{scheme}://{}", self.addr)).expect("an address");
        HealthClient::new(endpoint.connect_lazy())
    }

    fn shows(&self, line: &str) -> bool {
        let mut page = "# EOF\n".to_owned();
        self.limiter.show(&mut page);
        assert!(page.ends_with("# EOF\n") && page.matches("# EOF").count() == 1, "{page}");
        page.lines().any(|one| one == line)
    }
}

fn question() -> HealthCheckRequest {
    HealthCheckRequest::default()
}

#[tokio::test]
async fn beyond_the_limit_connections_are_closed_at_once_until_others_end() {
    let server = open(2, 60_000).await;
    let (one, other) = (server.dial().await, server.dial().await);
    closed(server.dial().await).await;
    closed(server.dial().await).await;
    assert!(server.shows("seqsvr_connections 2") && server.shows("seqsvr_connections_refused_total 2"));
    drop((one, other));
    // The process hears of their end in its own time.
    let mut client = server.client();
    let served = async { while client.check(question()).await.is_err() {} };
    timeout(PATIENCE, served).await.expect("a permit came free");
}

#[tokio::test]
async fn who_never_gets_to_a_request_loses_the_permit() {
    let server = open(3, 100).await;
    let silent = server.dial().await;
    let mut halfway = server.dial().await;
    halfway.write_all(b"PRI * HTTP/2.0\r\n").await.expect("open");
    let mut greeted = server.dial().await;
    greeted.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("open");
    tokio::join!(closed(silent), closed(halfway), closed(greeted));
    server.client().check(question()).await.expect("the permits are free again");
}

/// Whether a caller is served by one connection for longer than a first request may take.
async fn keeps_its_permit(server: ServerUnderTest, mut client: HealthClient<Channel>) {
    client.check(question()).await.expect("served");
    // One that came later loses its permit, so the time of the first one has passed, too.
    closed(server.dial().await).await;
    client.check(question()).await.expect("served");
    assert!(server.shows("seqsvr_connections_taken_total 2"), "it was still the same connection");
}

#[tokio::test]
async fn who_has_brought_a_request_keeps_the_permit() {
    let server = open(2, 100).await;
    let client = server.client();
    keeps_its_permit(server, client).await;
}

#[tokio::test]
async fn over_tls_too_the_first_request_is_what_counts() {
    let folder = tempfile::tempdir().expect("there is room");
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("there is room");
        Some(path)
    };
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("made");
    let certificate = write("certificate.pem", pair.cert.pem());
    let key = write("key.pem", pair.signing_key.serialize_pem());
    let security = ListenConfig { certificate: certificate.clone(), key, ..ListenConfig::default() };
    // Time for a handshake, on a busy machine too.
    let server = open_with(&security, 2, 500).await;
    let client = server.client_by(&CallConfig { authority: certificate, ..CallConfig::default() }, "https");
    keeps_its_permit(server, client).await;
}

#[tokio::test]
async fn reflection_answers_callers_of_both_versions() {
    use tonic_reflection::pb::{v1, v1alpha};

    let server = open(8, 60_000).await;
    let call = Call::load(&CallConfig::default()).expect("good files");
    let channel = call.endpoint(&format!("http://{}", server.addr)).expect("an address").connect_lazy();
    let names = |count: usize, has: bool| assert!(count >= 5 && has, "{count} services");

    use v1::server_reflection_request::MessageRequest;
    use v1::server_reflection_response::MessageResponse;
    let ask = v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel.clone());
    let asked = client.server_reflection_info(futures_util::stream::iter([ask])).await.expect("served");
    let reported = asked.into_inner().message().await.expect("it answers").expect("one answer");
    let Some(MessageResponse::ListServicesResponse(list)) = reported.message_response else {
        panic!("{reported:?}")
    };
    names(list.service.len(), list.service.iter().any(|one| one.name == "seqsvr.v1.Sequence"));

    use v1alpha::server_reflection_request::MessageRequest as Before;
    use v1alpha::server_reflection_response::MessageResponse as AlphaResponse;
    let ask = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(Before::ListServices(String::new())),
    };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    let asked = client.server_reflection_info(futures_util::stream::iter([ask])).await.expect("served");
    let reported = asked.into_inner().message().await.expect("it answers").expect("one answer");
    let Some(AlphaResponse::ListServicesResponse(list)) = reported.message_response else {
        panic!("{reported:?}")
    };
    names(list.service.len(), list.service.iter().any(|one| one.name == "seqsvr.v1.Sequence"));
}
