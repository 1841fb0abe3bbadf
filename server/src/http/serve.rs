//! Serves connections, one task each: HTTP/1.1 with upgrades to WebSocket, and a bound on the time that a head may
//! take.
//!
//! Owns the tasks until the requests on them are answered; dropped earlier, it cuts them off. Called by `HttpServer::run`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::heads::{Phase, Unhurried};
use super::listen::{LimitedListener, Peer};
use super::yielding::Yielding;
use crate::workers::watched;

/// Bytes that one connection reads ahead, and so the longest head of a request; without a limit of ours it is 400 KiB.
const MOST_BUFFERED: usize = 32 << 10;

/// How to treat a request whose client closes its sending side, or hangs up, before the answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum HalfClose {
    /// Its future is dropped, so that nothing is done for clients that are gone.
    Cancels,
    /// It is answered: its change may be stored already. A client that has gone is noticed when the answer is written.
    IsAnswered,
}

/// Serves requests by `service`, which is always ready, until `stopping`; then finishes those that are under way. Each request has its
/// [`Peer`] as [`ConnectInfo`]. A head that is not there after `head`, counted from the opening or from the last answer, ends its
/// connection.
pub(super) async fn serve<S>(
    listener: LimitedListener,
    service: S,
    head: Duration,
    half_close: HalfClose,
    stopping: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(MOST_BUFFERED);
    server.half_close(matches!(half_close, HalfClose::IsAnswered));
    let mut tasks = JoinSet::new();
    loop {
        let (stream, peer): (_, SocketAddr) = tokio::select! {
            () = stopping.cancelled() => break,
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next() => continue,
        };
        let phase = Phase::default();
        let stream = TokioIo::new(Unhurried::new(Yielding::new(stream), phase.clone()));
        let connection = server.serve_connection(stream, telling(phase, Peer(peer), service.clone()));
        let stopping = stopping.clone();
        tasks.spawn(watched("connection", async move {
            let mut connection = pin!(connection.with_upgrades());
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stopping.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::trace!(%error, "a connection ended with an error");
            }
        }));
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

/// Wraps `service`: puts the caller's address into each request, and notes in `phase` when a request begins and when the next head is
/// awaited.
fn telling<S>(
    phase: Phase,
    peer: Peer,
    service: S,
) -> impl HttpService<Incoming, ResBody = Body, Error = Infallible, Future: Send>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone + Send,
{
    service_fn(move |mut request: Request<Incoming>| {
        phase.begin_request();
        let phase = phase.clone();
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = service.clone().call(request);
        async move {
            let Ok(answer) = answer.await;
            // After a switch no head comes any more.
            if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
                phase.await_head();
            }
            Ok(answer)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Notify;
    use tokio::time::timeout;

    use super::super::concurrency::ConcurrencyLimiter;
    use super::super::listen::FULL;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

    async fn start(head: Duration) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        start_with(head, HalfClose::Cancels, Router::new().route("/", get(async || "hello"))).await
    }

    async fn start_with(
        head: Duration,
        half_close: HalfClose,
        router: Router,
    ) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = tcp.local_addr().expect("bound");
        let limiter = ConcurrencyLimiter::new(10, 10);
        let listener = LimitedListener {
            tcp,
            limiter,
            trusted: Vec::new(),
            patience: PATIENCE,
            writing: PATIENCE,
            full: FULL.into(),
        };
        let stopping = CancellationToken::new();
        (addr, stopping.clone(), tokio::spawn(serve(listener, router, head, half_close, stopping)))
    }

    async fn dial(addr: SocketAddr) -> TcpStream {
        TcpStream::connect(addr).await.expect("it listens")
    }

    /// All that comes until the other end closes.
    async fn rest(mut stream: TcpStream) -> String {
        let mut all = Vec::new();
        // A reset is an end, too.
        let _ = timeout(PATIENCE, stream.read_to_end(&mut all)).await.expect("in time");
        String::from_utf8(all).expect("text")
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_to_its_end_ends_the_connection() {
        let (addr, ..) = start(Duration::from_millis(50)).await;
        let silent = dial(addr).await;
        let mut halfway = dial(addr).await;
        halfway.write_all(&REQUEST[..20]).await.expect("open");
        let mut second = dial(addr).await;
        second.write_all(REQUEST).await.expect("open");
        let mut dripping = dial(addr).await;
        let drip = async {
            // Never silent for long, and never done.
            while dripping.write_all(b"a").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let (silent, halfway, second, dripped) =
            tokio::join!(rest(silent), rest(halfway), rest(second), timeout(PATIENCE, drip));
        dripped.expect("cut off");
        assert!(silent.is_empty() && !halfway.contains("200 OK"), "{silent} {halfway}");
        assert!(second.ends_with("hello"), "the request before was answered: {second}");
    }

    /// All that a client gets that closes its sending side while its request is under way.
    async fn heard_after_closing(half_close: HalfClose) -> String {
        let (begun, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (told, released) = (Arc::clone(&begun), Arc::clone(&release));
        let slow = async move || {
            told.notify_one();
            released.notified().await;
            "hello"
        };
        let (addr, ..) = start_with(PATIENCE, half_close, Router::new().route("/", get(slow))).await;
        let mut stream = dial(addr).await;
        stream.write_all(REQUEST).await.expect("open");
        stream.shutdown().await.expect("open");
        if matches!(half_close, HalfClose::IsAnswered) {
            timeout(PATIENCE, begun.notified()).await.expect("asked");
            release.notify_one();
        }
        rest(stream).await
    }

    #[tokio::test]
    async fn a_client_that_closes_its_sending_side_is_answered_where_that_is_asked_for() {
        assert!(heard_after_closing(HalfClose::IsAnswered).await.ends_with("hello"));
        // Nobody releases the request: the connection ends although it would wait for ever.
        assert_eq!(heard_after_closing(HalfClose::Cancels).await, "");
    }

    #[tokio::test]
    async fn a_stop_answers_what_was_asked_and_ends() {
        let (addr, stopping, served) = start(PATIENCE).await;
        let mut idle = dial(addr).await;
        idle.write_all(REQUEST).await.expect("open");
        let mut first = [0; 12];
        idle.read_exact(&mut first).await.expect("answered");
        assert_eq!(&first, b"HTTP/1.1 200");
        stopping.cancel();
        timeout(PATIENCE, served).await.expect("at once").expect("runs");
        assert!(rest(idle).await.ends_with("hello"));
        assert!(TcpStream::connect(addr).await.is_err(), "nobody listens any more");
    }
}
