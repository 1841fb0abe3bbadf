//! Several servers: which one comes next, how soon, and what goes along.

use super::*;

/// The next connection, and how long it took to come.
async fn next(fixture: &mut Fixture) -> (ServerEnd, Duration) {
    let began = Instant::now();
    let server = fixture.connections.recv().await.expect("the client connects");
    (server, began.elapsed())
}

fn refusal(code: &str, client_id: &Value) -> Value {
    json!({"type": "error", "code": code, "detail": "", "retryable": true, "client_id": client_id})
}

#[tokio::test(start_paused = true)]
async fn each_server_is_tried_in_turn_and_the_waits_grow_by_the_round() {
    let mut fixture = Fixture::over(3);
    let mut asked = Vec::new();
    let mut waits = Vec::new();
    for _ in 0..30 {
        let (server, wait) = next(&mut fixture).await;
        asked.push(server.1);
        waits.push(wait);
    }
    assert_eq!(asked[..7], [0, 1, 2, 0, 1, 2, 0]);
    let within = |at: &usize| !at.is_multiple_of(3);
    assert!((0..30).filter(within).all(|at| waits[at] <= Duration::from_millis(502)), "{waits:?}");
    assert!(waits[27] > Duration::from_secs(14), "{waits:?}");
    assert!(waits.iter().all(|wait| *wait <= Duration::from_secs(31)), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn unanswered_messages_go_to_the_next_server_in_their_order() {
    let mut fixture = Fixture::over(2);
    let (mut first, _) = fixture.accept().await;
    first.rows(0, &[41]).await;
    assert_eq!(first.hear_heartbeat().await, 41);
    for text in ["one", "two"] {
        let client = fixture.client.clone();
        tokio::spawn(async move { client.send_text(Recipient::User(2), text).await });
        assert_eq!(first.hear().await["body"]["text"], text);
    }
    drop(first);
    let (mut second, cursor) = fixture.accept().await;
    assert_eq!((second.1, cursor), (1, 41), "the other server, from the same cursor on");
    for text in ["one", "two"] {
        assert_eq!(second.hear().await["body"]["text"], text);
    }
    while !matches!(fixture.events.next().await, Some(Event::Online { server, .. }) if server == "1") {}
}

#[tokio::test(start_paused = true)]
async fn a_restarting_server_is_left_for_another_within_a_second() {
    let mut fixture = Fixture::over(2);
    let (server, _) = fixture.accept().await;
    server.close(CLOSE_RESTART).await;
    let (server, wait) = next(&mut fixture).await;
    assert_eq!(server.1, 1);
    assert!(wait <= Duration::from_millis(1_002), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_lost_its_storage_is_left_and_the_waits_grow_while_all_have() {
    let mut fixture = Fixture::over(2);
    let sending = tokio::spawn({
        let client = fixture.client.clone();
        async move { client.send_text(Recipient::User(2), "x").await }
    });
    let (mut asked, mut waits) = (Vec::new(), Vec::new());
    let mut message = Value::Null;
    for _ in 0..9 {
        let began = Instant::now();
        let (mut server, _) = fixture.accept().await;
        waits.push(began.elapsed());
        asked.push(server.1);
        // From memory, as a server does whose storage is away.
        server.alive(0).await;
        message = server.hear().await;
        server.say(refusal("unavailable", &message["client_id"])).await;
    }
    assert_eq!(asked, [0, 1, 0, 1, 0, 1, 0, 1, 0]);
    assert!(waits[1] <= Duration::from_millis(502) && waits[8] > Duration::from_secs(14), "{waits:?}");
    let (mut server, _) = fixture.accept().await;
    assert_eq!(server.hear().await, message);
    server
        .say(json!({"type": "sent", "client_id": message["client_id"], "message_id": 7, "sent_at": "t"}))
        .await;
    assert_eq!(sending.await.expect("no panic").expect("sent").message_id, 7);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_not_left_nor_is_the_only_one() {
    for (servers, code) in [(2, "busy"), (1, "unavailable")] {
        let mut fixture = Fixture::over(servers);
        let (mut server, _) = fixture.accept().await;
        tokio::spawn({
            let client = fixture.client.clone();
            async move { client.send_text(Recipient::User(2), "x").await }
        });
        let message = server.hear().await;
        server.say(refusal(code, &message["client_id"])).await;
        assert_eq!(server.hear().await, message, "{code}: again on the same connection");
    }
}
