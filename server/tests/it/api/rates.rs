//! Rates and connection permits: one who asks for too much is told so, and nobody else notices.

use reqwest::Method;
use serde_json::json;
use tidemark_test_support::until::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Answer, Person, Socket, TestApp, client_id, message};

#[tokio::test]
async fn log_ins_are_limited_by_name_whatever_its_case_and_others_go_on() {
    let app = TestApp::start_with(|config| config.limits.log_ins_per_name_per_minute = 1).await;
    app.sign_up("ann").await;
    app.sign_up("bob").await;
    let attempt = async |name: &str, password: &str| {
        app.post_as_nobody("/api/v1/sessions", json!({"name": name, "password": password})).await
    };
    for n in 0..10 {
        attempt(if n % 2 == 0 { "ann" } else { " ANN" }, "guess guess").await.refused(401);
    }
    let refused = attempt("ann", "correct horse").await;
    assert_eq!(refused.refused(429), "rate_limited");
    assert_eq!(refused.json()["retryable"], true);
    let wait: u64 = refused.header("retry-after").parse().expect("seconds");
    assert!((1..=60).contains(&wait), "{wait}");
    attempt("bob", "correct horse").await.ok(201);
}

/// Attempts to log in from addresses of choice.
struct Doors(TestApp);

impl Doors {
    async fn open(change: impl FnOnce(&mut tidemark::config::LimitsSection)) -> Doors {
        let app = TestApp::start_with(|config| {
            config.server.trusted_proxies = vec!["127.0.0.1".parse().expect("a range")];
            change(&mut config.limits);
        });
        Doors(app.await)
    }

    async fn log_in(&self, from: &str, password: &str, device: Option<&str>) -> Answer {
        let body = json!({"name": "ann", "password": password, "device": device});
        let request = self.0.request(Method::POST, "/api/v1/sessions").header("x-forwarded-for", from);
        self.0.send(request.json(&body)).await
    }
}

#[tokio::test]
async fn who_guesses_locks_out_nobody_on_another_network() {
    let doors = Doors::open(|limits| limits.log_ins_per_name_per_minute = 1).await;
    doors.0.sign_up("ann").await;
    for _ in 0..10 {
        doors.log_in("198.51.100.1", "guess guess", None).await.refused(401);
    }
    assert_eq!(doors.log_in("198.51.100.1", "correct horse", None).await.refused(429), "rate_limited");
    doors.log_in("198.51.100.2", "correct horse", None).await.ok(201);
}

#[tokio::test]
async fn who_guesses_from_many_networks_locks_out_no_known_device() {
    let doors = Doors::open(|limits| {
        limits.log_ins_per_name_per_minute = 1;
        limits.log_ins_per_name_in_all_per_minute = 2;
        limits.log_ins_per_address_per_minute = 20;
    })
    .await;
    let body = json!({"name": "ann", "password": "correct horse"});
    let made = doors.0.post_as_nobody("/api/v1/accounts", body).await.ok(201);
    let device = made["device"].as_str().expect("a text").to_owned();
    let stranger = json!({"name": "bob", "password": "correct horse"});
    let stranger = doors.0.post_as_nobody("/api/v1/accounts", stranger).await.ok(201);
    for network in 0..2 {
        for _ in 0..10 {
            doors.log_in(&format!("198.51.100.{network}"), "guess guess", None).await.refused(401);
        }
    }
    let of_another = stranger["device"].as_str();
    for unknown in [None, Some(""), Some("a.b.c"), Some(&device[1..]), of_another] {
        let refused = doors.log_in("203.0.113.1", "correct horse", unknown).await;
        assert_eq!(refused.refused(429), "rate_limited", "{unknown:?}");
    }
    let known = doors.log_in("203.0.113.1", "correct horse", Some(&device)).await.ok(201);
    // Also from the network of those who guess.
    for _ in 0..8 {
        doors.log_in("198.51.100.1", "guess guess", Some(&device)).await.refused(401);
    }
    doors.log_in("198.51.100.1", "correct horse", Some(&device)).await.ok(201);
    let refused = doors.log_in("198.51.100.1", "guess guess", Some(&device)).await;
    assert_eq!(refused.refused(429), "rate_limited", "whoever took it guesses no faster than others");
    assert_eq!(
        known["device"],
        json!(device),
        "a log-in gives it no other name, by which it would be counted anew"
    );
    // The client that changes the password is known by its session, and other devices are no longer known.
    let change = json!({"current": "correct horse", "new": "battery staple"});
    let token = known["token"].as_str().expect("a text");
    let change = doors.0.request(Method::PUT, "/api/v1/me/password").bearer_auth(token).json(&change);
    doors.0.send(change).await.ok(204);
    assert_eq!(
        doors.log_in("203.0.113.1", "battery staple", Some(&device)).await.refused(429),
        "rate_limited"
    );
}

#[tokio::test]
async fn log_ins_are_limited_by_address() {
    let app = TestApp::start_with(|config| config.limits.log_ins_per_address_per_minute = 1).await;
    for n in 0..2 {
        let body = json!({"name": format!("nobody {n}"), "password": "guess guess"});
        app.post_as_nobody("/api/v1/sessions", body).await.refused(401);
    }
    let body = json!({"name": "another", "password": "guess guess"});
    assert_eq!(app.post_as_nobody("/api/v1/sessions", body).await.refused(429), "rate_limited");
}

#[tokio::test]
async fn http_and_websocket_share_the_sends_of_an_account() {
    let app = TestApp::start_with(|config| config.limits.sends_per_account_per_second = 1).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let to = json!({"user": bob.uid});
    let mut socket = app.socket(&ann).await;
    socket.expect("welcome").await;
    for n in 0..5 {
        socket.say(&to, n, "over the socket").await;
        socket.expect("sent").await;
    }
    let batch: Vec<_> = (5..10).map(|n| message(n, to.clone(), "over http")).collect();
    app.post(&ann, "/api/v1/messages/batch", json!({"messages": batch})).await.ok(200);
    // One more comes through for each second that has passed.
    let mut sent = 10;
    let refused = loop {
        let answer = app.post(&ann, "/api/v1/messages", message(sent, to.clone(), "too much")).await;
        if answer.status != 201 {
            break answer;
        }
        sent += 1;
    };
    assert_eq!(refused.refused(429), "rate_limited");
    // A socket is read later instead: no message is refused.
    for n in 0..2 {
        socket.say(&to, 1_000 + n, "a little too fast").await;
    }
    for _ in 0..2 {
        socket.expect("sent").await;
    }
    app.say(&bob, &ann, 1, "I may").await;
    assert_eq!(app.rows(&bob).await.len() as u128, sent + 3);
}

#[tokio::test]
async fn an_account_has_so_much_stored_in_a_day_and_takes_back_what_it_said_even_then() {
    let app = TestApp::start_with(|config| config.limits.stored_kib_per_account_per_day = 128).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let say = |n: u128| {
        app.post(&ann, "/api/v1/messages", message(n, json!({"user": bob.uid}), &"x".repeat(8_000)))
    };
    let first = say(0).await.ok(201)["message_id"].clone();
    // Two rows of about 8 KiB each.
    let mut n = 1;
    let refused = loop {
        let answer = say(n).await;
        if answer.status != 201 {
            break answer;
        }
        n += 1;
        assert!(n < 10, "nothing was refused");
    };
    assert!(n > 6, "refused after {n}");
    assert_eq!(refused.refused(429), "quota_reached");
    assert_eq!(refused.json()["retryable"], false, "what is behind it does not wait for another day");
    // A stored message is known again, and a full quota keeps nobody from blocking others.
    assert_eq!(say(n - 1).await.status, 200);
    let block = json!({"client_id": client_id(52), "value": {"blocked": true}});
    let eve = app.sign_up("eve").await;
    app.put(&ann, &format!("/api/v1/conversations/u:{}/settings/block", eve.uid), block).await.ok(201);
    let moment = json!({"client_id": client_id(50), "text": "nor this"});
    assert_eq!(app.post(&ann, "/api/v1/moments", moment).await.refused(429), "quota_reached");
    let of_bob = format!("/api/v1/conversations/u:{}", bob.uid);
    let recall = format!("{of_bob}/messages/{first}/recall");
    app.post(&ann, &recall, json!({"client_id": client_id(51)})).await.ok(201);
    app.put(&ann, &format!("{of_bob}/read"), json!({"message_id": first})).await.ok(204);
    app.say(&bob, &ann, 1, "I may").await;
    app.pass(std::time::Duration::from_secs(86_400)).await;
    say(n).await.ok(201);
}

#[tokio::test]
async fn one_who_stores_too_much_with_a_group_waits_and_may_then_go_on() {
    // A burst of 60 KiB.
    let app = TestApp::start_with(|config| config.limits.fan_out_kib_per_account_per_second = 1).await;
    let (ann, bob, cem) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("cem").await);
    let gid = app.post(&ann, "/api/v1/groups", json!({"name": "walkers"})).await.ok(201)["gid"].clone();
    for uid in [bob.uid, cem.uid] {
        app.post(&ann, &format!("/api/v1/groups/{gid}/members"), json!({"uid": uid})).await.ok(204);
    }
    let say = async |n: u128, characters: usize| {
        let body = message(n, json!({"group": gid}), &"x".repeat(characters));
        app.post(&ann, "/api/v1/messages", body).await
    };
    // Each costs one row of about 8 KiB, as two are free.
    for n in 0..6 {
        say(n, 8_000).await.ok(201);
    }
    // Smaller ones, so that the one that goes beyond is made up for in about a second.
    let mut n = 6;
    let refused = loop {
        let answer = say(n, 500).await;
        if answer.status != 201 {
            break answer;
        }
        n += 1;
        assert!(n < 200, "nothing was refused");
    };
    assert_eq!(refused.refused(429), "rate_limited");
    assert_eq!((&refused.json()["retryable"], refused.header("retry-after")), (&json!(true), "1"));
    app.say(&ann, &bob, 1_000, "one person is not many").await;
    app.post(&bob, "/api/v1/messages", message(1, json!({"group": gid}), "I may")).await.ok(201);
    until("what was stored is made up for", async || say(n, 500).await.status == 201).await;
}

#[tokio::test]
async fn one_who_goes_on_after_refusals_is_closed_and_others_stay() {
    let app = TestApp::start_with(|config| config.limits.faults_per_connection_per_minute = 1).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let (mut flood, mut calm) = (app.socket(&ann).await, app.socket(&bob).await);
    calm.begin().await;
    flood.expect("welcome").await;
    for n in 0..11 {
        flood.try_send(format!("nonsense {n}")).await;
    }
    for _ in 0..11 {
        assert_eq!(flood.expect("error").await["code"], "malformed_json");
    }
    assert_eq!(flood.closed().await, 1008);
    calm.heartbeat(0).await;
    calm.expect("alive").await;
}

#[tokio::test]
async fn a_flood_of_frames_is_closed() {
    let app = TestApp::start_with(|config| config.limits.frames_per_connection_per_second = 1).await;
    let ann = app.sign_up("ann").await;
    let mut flood = app.socket(&ann).await;
    flood.expect("welcome").await;
    for _ in 0..60 {
        flood.try_send(r#"{"type":"heartbeat","seq":0}"#.to_owned()).await;
    }
    assert_eq!(flood.closed().await, 1008);
}

/// Also where the request is on its way already.
#[tokio::test]
async fn a_connection_too_many_hears_why_it_is_closed() {
    let app = TestApp::start_with(|config| config.limits.connections_per_address = 4).await;
    let mut held = Vec::new();
    loop {
        let mut connection = TcpStream::connect(&app.address).await.expect("connected");
        let head = format!(
            "POST /api/v1/sessions HTTP/1.1\r\nhost: {}\r\ncontent-length: 9000\r\n\r\n",
            app.address
        );
        // The server may hang up before all of it is sent.
        let _ = connection.write_all(head.as_bytes()).await;
        let _ = connection.write_all(&[b' '; 8_000]).await;
        if held.len() < 4 {
            held.push(connection);
            continue;
        }
        let mut heard = String::new();
        connection.read_to_string(&mut heard).await.expect("an answer, and no reset");
        assert!(heard.starts_with("HTTP/1.1 503 ") && heard.contains("too_many_connections"), "{heard}");
        break;
    }
}

#[tokio::test]
async fn an_account_has_so_many_sockets() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let dial = async |who: &Person| {
        Socket::dial(&app.address, "/ws", &[("authorization", &format!("Bearer {}", who.token))]).await
    };
    let mut held = Vec::new();
    for _ in 0..200 {
        held.push(dial(&ann).await.expect("a place"));
    }
    assert_eq!(dial(&ann).await.err(), Some(503));
    dial(&bob).await.expect("another account");
}

#[tokio::test]
async fn one_address_holds_only_so_many_connections() {
    let app = TestApp::start_with(|config| {
        config.limits.connections_per_address = 4;
        config.server.trusted_proxies = vec!["127.0.0.1".parse().expect("a range")];
    })
    .await;
    let ann = app.sign_up("ann").await;
    let bearer = format!("Bearer {}", ann.token);
    let dial = async |client: &'static str| {
        Socket::dial(&app.address, "/ws", &[("authorization", &bearer), ("x-forwarded-for", client)]).await
    };
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(dial("198.51.100.1").await.expect("a permit"));
    }
    assert_eq!(dial("198.51.100.1").await.err(), Some(503));
    dial("198.51.100.2").await.expect("another address");
}
