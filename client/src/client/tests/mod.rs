//! The driver against a scripted server in memory, with time standing still until everybody waits.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role};

use super::*;
use crate::socket::{CLOSE_RESTART, Socket};
use crate::store::MemoryStore;

mod servers;

/// Hands the far end of every connection to the test.
struct MemoryDial {
    made: mpsc::UnboundedSender<ServerEnd>,
    servers: usize,
    in_use: usize,
}

impl dial::Dial for MemoryDial {
    type Stream = DuplexStream;

    fn servers(&self) -> usize {
        self.servers
    }

    fn address(&self) -> String {
        self.in_use.to_string()
    }

    fn failed(&mut self) {
        self.in_use = (self.in_use + 1) % self.servers;
    }

    async fn dial(&mut self) -> Result<Socket<DuplexStream>, Error> {
        let (near, far) = tokio::io::duplex(1 << 20);
        let server = WebSocketStream::from_raw_socket(far, Role::Server, None).await;
        self.made
            .send(ServerEnd(server, self.in_use))
            .map_err(|_| Error::Transport("the test is over".to_owned()))?;
        Ok(Socket::from_stream(WebSocketStream::from_raw_socket(near, Role::Client, None).await))
    }
}

/// The server's end of one connection, and which of the servers it is.
struct ServerEnd(WebSocketStream<DuplexStream>, usize);

impl ServerEnd {
    async fn say(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.expect("the client listens");
    }

    async fn welcome(&mut self, history: &str) {
        let frame =
            json!({"type": "welcome", "uid": 1, "seq": 0, "history": history, "heartbeat_seconds": 30});
        self.say(frame).await;
    }

    async fn alive(&mut self, seq: u64) {
        self.say(json!({"type": "alive", "seq": seq, "history": "h"})).await;
    }

    async fn rows(&mut self, after: u64, ids: &[u64]) {
        let row = |id: &u64| {
            json!({"partition_key": "c4ca", "receiver": 1, "message_id": id, "kind": "message", "conversation": "u:2",
                "sender": 2, "body": {"text": id.to_string()}, "sent_at": "2026-01-01T00:00:00Z"})
        };
        let entries: Vec<Value> = ids.iter().map(row).collect();
        let synced = ids.last();
        self.say(
            json!({"type": "entries", "entries": entries, "after": after, "synced": synced, "more": false}),
        )
        .await;
    }

    async fn hear(&mut self) -> Value {
        loop {
            match self.0.next().await.expect("the client speaks").expect("a whole frame") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                other => assert!(!other.is_close(), "the client closed"),
            }
        }
    }

    async fn hear_heartbeat(&mut self) -> u64 {
        let frame = self.hear().await;
        assert_eq!(frame["type"], "heartbeat", "{frame}");
        frame["seq"].as_u64().expect("a number")
    }

    async fn close(mut self, code: u16) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: "".into() };
        self.0.close(Some(frame)).await.expect("closes");
    }
}

/// A device and the connections that it makes.
struct Fixture {
    client: Client,
    events: Events,
    store: MemoryStore,
    connections: mpsc::UnboundedReceiver<ServerEnd>,
}

impl Fixture {
    fn start() -> Fixture {
        Fixture::over(1)
    }

    /// A device of several servers.
    fn over(servers: usize) -> Fixture {
        let (made, connections) = mpsc::unbounded_channel();
        let store = MemoryStore::new();
        let options = Options { seed: Some(1), in_flight: 2, ..Options::default() };
        let (client, events) = Client::over(MemoryDial { made, servers, in_use: 0 }, store.clone(), options);
        Fixture { client, events, store, connections }
    }

    /// The next connection, welcomed, and the cursor of its first heartbeat.
    async fn accept(&mut self) -> (ServerEnd, u64) {
        let mut server = self.connections.recv().await.expect("the client connects");
        server.welcome("h").await;
        let cursor = server.hear_heartbeat().await;
        (server, cursor)
    }

    async fn event(&mut self) -> Event {
        loop {
            match self.events.next().await.expect("an event") {
                Event::Online { .. } => {}
                other => return other,
            }
        }
    }

    fn ids(&self) -> Vec<u64> {
        self.store.rows().iter().map(|row| row.message_id).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn rows_are_stored_then_reported_then_acknowledged() {
    let mut fixture = Fixture::start();
    let (mut server, cursor) = fixture.accept().await;
    assert_eq!(cursor, 0);
    server.rows(0, &[41, 10_001]).await;
    assert_eq!(server.hear_heartbeat().await, 10_001);
    assert_eq!(fixture.ids(), [41, 10_001]);
    assert!(matches!(fixture.event().await, Event::Rows(rows) if rows.len() == 2));
    server.alive(10_001).await;
    assert!(matches!(fixture.event().await, Event::InStep { cursor: 10_001 }));
}

#[tokio::test(start_paused = true)]
async fn rows_behind_a_hole_are_asked_for_again() {
    let mut fixture = Fixture::start();
    let (mut server, _) = fixture.accept().await;
    server.rows(5, &[6]).await;
    assert_eq!(server.hear_heartbeat().await, 0);
    assert_eq!(fixture.ids(), [0_u64; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_up_to_date_device_heartbeats_once_a_period() {
    let mut fixture = Fixture::start();
    let (mut server, _) = fixture.accept().await;
    let began = Instant::now();
    for beat in 1..=10_u32 {
        server.alive(0).await;
        server.hear_heartbeat().await;
        let expected = Duration::from_secs(30) * beat;
        assert!(began.elapsed() >= expected && began.elapsed() < expected + Duration::from_secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn silence_for_three_heartbeats_makes_it_connect_again() {
    let mut fixture = Fixture::start();
    let (mut server, _) = fixture.accept().await;
    let began = Instant::now();
    let (mut next, _) = fixture.accept().await;
    let waited = began.elapsed();
    assert!(waited >= Duration::from_secs(90) && waited < Duration::from_secs(92), "{waited:?}");
    next.alive(0).await;
    server.0.get_mut();
    assert!(matches!(fixture.event().await, Event::Offline { error: Error::Transport(_), .. }));
}

#[tokio::test(start_paused = true)]
async fn a_restarting_server_is_left_alone_for_a_second_or_two() {
    let mut fixture = Fixture::start();
    let (server, _) = fixture.accept().await;
    server.close(CLOSE_RESTART).await;
    let began = Instant::now();
    fixture.accept().await;
    let waited = began.elapsed();
    assert!(waited >= Duration::from_secs(1) && waited <= Duration::from_millis(2_100), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn logging_out_ends_the_client_for_good() {
    let mut fixture = Fixture::start();
    let (server, _) = fixture.accept().await;
    let pending = tokio::spawn({
        let client = fixture.client.clone();
        async move { client.send_text(Recipient::User(2), "x").await }
    });
    server.close(4401).await;
    assert!(matches!(fixture.event().await, Event::Stopped(Error::LoggedOut)));
    assert!(fixture.events.next().await.is_none());
    assert!(matches!(pending.await.expect("no panic"), Err(Error::Stopped)));
    assert!(matches!(fixture.client.send_text(Recipient::User(2), "x").await, Err(Error::Stopped)));
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_message_goes_out_again_under_the_same_client_id() {
    let mut fixture = Fixture::start();
    let (mut server, _) = fixture.accept().await;
    let draft = Draft::text(Recipient::User(2), "once");
    let sending = tokio::spawn({
        let (client, draft) = (fixture.client.clone(), draft.clone());
        async move { client.send(draft).await }
    });
    let first = server.hear().await;
    drop(server);
    let (mut server, _) = fixture.accept().await;
    let second = server.hear().await;
    assert_eq!(first, second);
    assert_eq!(first["client_id"], draft.client_id.to_string());
    server.say(json!({"type": "sent", "client_id": draft.client_id, "message_id": 7, "sent_at": "t"})).await;
    let sent = sending.await.expect("no panic").expect("sent");
    assert_eq!(sent.message_id, 7);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_now_is_repeated_and_one_for_good_is_reported() {
    let mut fixture = Fixture::start();
    let (mut server, _) = fixture.accept().await;
    let send = |text: &'static str| {
        let client = fixture.client.clone();
        tokio::spawn(async move { client.send_text(Recipient::User(2), text).await })
    };
    let refusal = |frame: &Value, code, retryable| {
        let id = &frame["client_id"];
        json!({"type": "error", "code": code, "detail": "", "retryable": retryable, "client_id": id})
    };
    let busy = send("busy");
    let first = server.hear().await;
    server.say(refusal(&first, "queue_full", true)).await;
    let began = Instant::now();
    assert_eq!(server.hear().await, first);
    assert!(began.elapsed() >= Duration::from_millis(250));
    server.say(refusal(&first, "not_a_member", false)).await;
    let error = busy.await.expect("no panic").expect_err("refused");
    assert_eq!(error.code(), Some("not_a_member"));
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_could_not_be_answered_is_repeated_soon() {
    let mut fixture = Fixture::start();
    let (mut server, _) = fixture.accept().await;
    let began = Instant::now();
    server.say(json!({"type": "error", "code": "storage", "detail": "try again", "retryable": true})).await;
    server.hear_heartbeat().await;
    assert!(began.elapsed() <= Duration::from_secs(1));
    assert!(matches!(fixture.event().await, Event::Refused(problem) if problem.code == "storage"));
}

#[tokio::test(start_paused = true)]
async fn waits_grow_while_the_server_stays_away_and_can_be_cut_short() {
    let mut fixture = Fixture::start();
    let mut waits = Vec::new();
    for _ in 0..8 {
        let began = Instant::now();
        drop(fixture.connections.recv().await.expect("the client connects"));
        waits.push(began.elapsed());
    }
    assert!(waits[7] > Duration::from_secs(14), "{waits:?}");
    assert!(waits.iter().all(|wait| *wait <= Duration::from_secs(31)), "{waits:?}");
    let began = Instant::now();
    fixture.client.reconnect_now().await.expect("running");
    fixture.accept().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_new_history_drops_what_was_stored() {
    let mut fixture = Fixture::start();
    let (mut server, _) = fixture.accept().await;
    server.rows(0, &[41]).await;
    assert_eq!(server.hear_heartbeat().await, 41);
    drop(server);
    let mut server = fixture.connections.recv().await.expect("the client connects");
    server.welcome("restored").await;
    assert_eq!(server.hear_heartbeat().await, 0);
    assert_eq!(fixture.ids(), [0_u64; 0]);
}

#[tokio::test(start_paused = true)]
async fn events_that_nobody_reads_stop_the_rows_but_not_the_heartbeats() {
    let mut fixture = Fixture::start();
    let (mut server, _) = fixture.accept().await;
    let began = Instant::now();
    let mut cursor = 0;
    while began.elapsed() < Duration::from_secs(300) {
        server.rows(cursor, &[cursor + 1]).await;
        cursor = server.hear_heartbeat().await;
    }
    assert!((60..70).contains(&cursor), "about as many as events may wait: {cursor}");
    let mut reported = 0;
    while reported < cursor {
        if let Event::Rows(rows) = fixture.event().await {
            reported += rows.len() as u64;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_every_handle_ends_the_device() {
    let mut fixture = Fixture::start();
    let (mut server, _) = fixture.accept().await;
    drop(fixture.client);
    assert!(server.0.next().await.is_none_or(|frame| frame.is_err()));
    while fixture.events.next().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn who_types_and_who_is_online_goes_both_ways_and_a_new_connection_watches_the_same_people() {
    let mut fixture = Fixture::start();
    let (mut server, _) = fixture.accept().await;
    fixture.client.watch(vec![2, 3]).await.expect("taken");
    assert_eq!(server.hear().await, json!({"type": "presence", "of": [2, 3]}));
    fixture.client.typing(Conversation::User(2)).await.expect("taken");
    assert_eq!(server.hear().await, json!({"type": "typing", "conversation": "u:2"}));
    server.say(json!({"type": "presence", "online": [2]})).await;
    assert!(matches!(fixture.event().await, Event::Presence { online } if online == [2]));
    server.say(json!({"type": "typing", "conversation": "u:2", "sender": 2})).await;
    let typing = fixture.event().await;
    assert!(matches!(typing, Event::Typing { conversation: Conversation::User(2), sender: 2 }), "{typing:?}");
    server.say(json!({"type": "humming", "tune": 7})).await;
    server.alive(0).await;
    assert!(matches!(fixture.event().await, Event::InStep { cursor: 0 }), "an unknown frame is passed over");
    drop(server);
    fixture.client.typing(Conversation::User(2)).await.expect("taken");
    let mut server = fixture.connections.recv().await.expect("the client connects");
    server.welcome("h").await;
    let mut heard = [server.hear().await, server.hear().await];
    heard.sort_by_key(|frame| frame["type"].to_string());
    assert_eq!(heard[0]["type"], "heartbeat");
    assert_eq!(
        heard[1],
        json!({"type": "presence", "of": [2, 3]}),
        "and what was typed meanwhile is no news"
    );
}
