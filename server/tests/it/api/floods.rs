//! Floods: one who sends more than they may, or reads nothing, costs a bounded amount, and the others do not notice.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::support::{PATIENCE, Person, TestApp, message};

#[tokio::test]
async fn empty_fragments_without_end_are_a_flood() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let mut socket = app.socket(&ann).await;
    socket.expect("welcome").await;
    let fragment = |first: bool| {
        let data = if first { Data::Text } else { Data::Continue };
        Message::Frame(Frame::message("", OpCode::Data(data), false))
    };
    socket.send_raw(fragment(true)).await;
    for _ in 0..1_024 {
        socket.send_raw(fragment(false)).await;
    }
    assert_eq!(socket.expect("error").await["code"], "flood");
    assert_eq!(socket.closed().await, 1008);
}

#[tokio::test]
async fn fragments_and_pings_count_as_frames() {
    for kind in [
        OpCode::Data(Data::Text),
        OpCode::Control(tokio_tungstenite::tungstenite::protocol::frame::coding::Control::Ping),
    ] {
        let app = TestApp::start_with(|config| config.limits.frames_per_connection_per_second = 1).await;
        let ann = app.sign_up("ann").await;
        let mut socket = app.socket(&ann).await;
        socket.expect("welcome").await;
        // More than a burst, since the allowance grows while a slow machine sends them.
        for n in 0..60 {
            let frame = match kind {
                OpCode::Data(_) => {
                    let data = if n == 0 { Data::Text } else { Data::Continue };
                    Frame::message(" ", OpCode::Data(data), false)
                }
                OpCode::Control(_) => Frame::ping(""),
            };
            socket.try_send_raw(Message::Frame(frame)).await;
        }
        assert_eq!(socket.expect("error").await["code"], "flood", "{kind}");
        assert_eq!(socket.closed().await, 1008, "{kind}");
    }
}

/// Somebody with so many messages to themselves, of 30 KB each.
async fn with_rows(app: &TestApp, count: usize) -> Person {
    let ann = app.sign_up("ann").await;
    for n in 0..count {
        let text = "\u{10ffff}".repeat(7_500);
        app.post(&ann, "/api/v1/messages", message(n as u128, json!({"user": ann.uid}), &text)).await.ok(201);
    }
    ann
}

/// Asks for all rows on a connection that takes only a little, and reads the first bytes of the answer.
async fn begin_to_read(app: &TestApp, who: &Person) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("allowed");
    let mut stream = socket.connect(app.address.parse().expect("an address")).await.expect("connected");
    let head = format!(
        "GET /api/v1/range HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        app.address, who.token
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut first = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut first)).await.expect("in time").expect("answered");
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn answers_that_are_not_read_take_up_a_share_of_memory_and_no_more() {
    let app = TestApp::start_with(|config| {
        config.limits.sends_per_account_per_second = 0;
        config.limits.buffered_bytes_per_address = 1 << 20;
    })
    .await;
    let ann = with_rows(&app, 130).await;
    let _unread = begin_to_read(&app, &ann).await;
    let refused = app.get(&ann, "/api/v1/range").await;
    assert_eq!(refused.refused(503), "busy");
    assert_eq!(refused.json()["retryable"], true);
    app.get(&ann, "/api/v1/seq").await.ok(200);
}

#[tokio::test]
async fn one_who_does_not_read_an_answer_is_cut_off_and_their_share_is_free_again() {
    let app = TestApp::start_with(|config| {
        config.server.write_seconds = 1;
        config.limits.sends_per_account_per_second = 0;
        config.limits.buffered_bytes_per_address = 1 << 20;
    })
    .await;
    let ann = with_rows(&app, 130).await;
    let mut unread = begin_to_read(&app, &ann).await;
    app.get(&ann, "/api/v1/range").await.ok(200);
    let mut rest = Vec::new();
    // A reset is an end, too.
    let _ = timeout(PATIENCE, unread.read_to_end(&mut rest)).await.expect("in time");
    assert!(rest.len() < 130 * 30_000, "the answer came whole: {} bytes", rest.len());
}

#[tokio::test]
async fn an_account_that_reads_without_end_is_slowed_down() {
    let app = TestApp::start_with(|config| config.limits.read_kib_per_account_per_second = 1).await;
    let ann = with_rows(&app, 1).await;
    let bob = app.sign_up("bob").await;
    let mut socket = app.socket(&ann).await;
    socket.expect("welcome").await;
    socket.heartbeat(0).await;
    socket.expect("entries").await;
    // 30 KiB in the first second: the burst is 10.
    let refused = app.get(&ann, "/api/v1/range").await;
    assert_eq!(refused.refused(429), "rate_limited");
    app.get(&bob, "/api/v1/range").await.ok(200);
    socket.heartbeat(0).await;
    app.say(&bob, &ann, 1, "meanwhile").await;
    assert_eq!(app.get(&ann, "/api/v1/seq").await.ok(200)["seq"].as_u64(), Some(2), "all else goes on");
}

#[tokio::test]
async fn large_bodies_take_up_a_share_of_memory_and_no_more() {
    let app = TestApp::start_with(|config| config.limits.buffered_bytes_per_address = 1 << 20).await;
    let ann = app.sign_up("ann").await;
    let mut slow = TcpStream::connect(&app.address).await.expect("connected");
    let head = format!(
        "POST /api/v1/messages/batch HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-length: 2000000\r\nexpect: 100-continue\r\n\r\n",
        app.address, ann.token
    );
    slow.write_all(head.as_bytes()).await.expect("sent");
    // The body is asked for once its share is taken.
    let mut first = [0; 12];
    timeout(PATIENCE, slow.read_exact(&mut first)).await.expect("in time").expect("answered");
    assert_eq!(&first, b"HTTP/1.1 100");
    let text: Value = message(1, json!({"user": ann.uid}), &"x".repeat(7_000));
    assert_eq!(app.post(&ann, "/api/v1/messages", text).await.refused(503), "busy");
    app.say(&ann, &ann, 2, "small").await;
}

#[tokio::test]
async fn a_head_without_end_is_cut_off_at_its_length() {
    let app = TestApp::start().await;
    let mut endless = TcpStream::connect(&app.address).await.expect("connected");
    let mut head = b"GET /health HTTP/1.1\r\nhost: x\r\n".to_vec();
    head.extend(std::iter::repeat_n(b"x-more: 0123456789012345678901234567890123456789\r\n", 800).flatten());
    let _ = timeout(PATIENCE, endless.write_all(&head)).await.expect("in time");
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(20), endless.read_to_end(&mut answer)).await.expect("closed");
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

/// The value of a metric.
async fn metric(app: &TestApp, name: &str) -> u64 {
    let text = app.send(app.request(Method::GET, "/metrics")).await.text;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in:\n{text}"))
}

#[tokio::test]
async fn answers_to_an_address_that_is_refused_again_and_again_wait_and_the_logged_in_do_not() {
    let mut app = TestApp::start_with(|config| config.limits.refusals_per_address_per_second = 1).await;
    let ann = app.sign_up("ann").await;
    app.get(&ann, "/api/v1/me").await.ok(200);
    let guess = |n: usize| app.request(Method::GET, "/api/v1/me").bearer_auth(format!("token {n}"));
    // A burst of ten: each counts as an unknown token and as a refusal.
    for n in 0..5 {
        app.send(guess(n)).await.refused(401);
    }
    assert_eq!(metric(&app, "tidemark_refusals_delayed_total").await, 0);
    let waiting = tokio::spawn(guess(5).send());
    while metric(&app, "tidemark_refusals_delayed_total").await == 0 {}
    // Logged-in users go on, and a stop does not wait until the answer is due.
    app.get(&ann, "/api/v1/me").await.ok(200);
    assert_eq!(metric(&app, "tidemark_refusals_delayed_total").await, 1);
    app.stop().await;
    assert_eq!(waiting.await.expect("runs").expect("answered").status(), 401);
}

#[tokio::test]
async fn a_body_that_says_beforehand_that_it_is_too_large_is_not_read() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let mut stream = TcpStream::connect(&app.address).await.expect("connected");
    let head = format!(
        "POST /api/v1/messages/batch HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-length: 67108864\r\n\r\n",
        app.address, ann.token
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    // No byte of the body has been sent.
    let mut first = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut first)).await.expect("in time").expect("answered");
    assert_eq!(&first, b"HTTP/1.1 413");
}

#[tokio::test]
async fn one_address_does_not_take_the_line_in_which_passwords_wait() {
    let app = TestApp::start_with(|config| {
        config.accounts.password_waiting = 4;
        // Slow enough that the others come while the first is hashed.
        config.accounts.password_memory_kib = 131_072;
        config.server.trusted_proxies = vec!["127.0.0.1".parse().expect("a range")];
        config.metrics.public = true;
    })
    .await;
    let sign_up = |n: usize, client: &str| {
        let body = json!({"name": format!("user {n}"), "password": "correct horse"});
        let request = app.request(Method::POST, "/api/v1/accounts").header("x-forwarded-for", client);
        app.send(request.json(&body))
    };
    let crowd = join_all((0..30).map(|n| sign_up(n, "198.51.100.1")));
    let (crowd, other) = tokio::join!(crowd, sign_up(30, "198.51.100.2"));
    other.ok(201);
    let (done, refused): (Vec<_>, Vec<_>) = crowd.into_iter().partition(|answer| answer.status == 201);
    assert!(!done.is_empty() && !refused.is_empty(), "{} of thirty", done.len());
    for answer in &refused {
        assert_eq!(answer.refused(503), "busy");
    }
    let counted = metric(&app, "tidemark_passwords_refused_total").await;
    assert_eq!(counted, refused.len() as u64);
}
