//! A client that sends too much is read later, and refused where that would be too late.

use super::*;
use crate::http::ws::meter::Flood;

/// The next frame, however long it takes, which is of this type.
async fn next(world: &mut World, kind: &str) -> Value {
    let message = world.server.recv().await.expect("open");
    let frame: Value = serde_json::from_str(message.to_text().expect("text")).expect("JSON");
    assert_eq!(frame["type"], kind, "{frame}");
    frame
}

#[tokio::test(start_paused = true)]
async fn pings_beyond_their_rate_are_not_read_and_the_rest_of_the_connection_goes_on() {
    let mut world = World::new().await;
    world.settled().await;
    world.heartbeat(0).await;
    let began = Instant::now();
    // A burst of a hundred, and five seconds more.
    for n in 0..150 {
        let frame = if n % 2 == 0 { Message::Ping("x".into()) } else { Message::Pong("x".into()) };
        world.client.send(Ok(frame)).expect("open");
    }
    let id = world.ann_says("meanwhile").await;
    next(&mut world, "entries").await;
    assert!(began.elapsed() < Duration::from_millis(100), "a delivery waited: {:?}", began.elapsed());
    world.send(&json!({"type": "heartbeat", "seq": id}));
    next(&mut world, "alive").await;
    let took = began.elapsed().as_millis();
    assert!((4_900..5_300).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn sends_beyond_the_rate_of_their_account_are_read_later_and_none_is_refused() {
    let mut config = Config::default();
    config.limits.sends_per_account_per_second = 1;
    let mut world = World::with(config).await;
    world.settled().await;
    let began = Instant::now();
    for n in 0..13 {
        let client_id = Uuid::from_u128(n);
        world.send(
            &json!({"type": "send", "client_id": client_id, "to": {"user": ANN.0}, "body": {"text": "hi"}}),
        );
    }
    for n in 0..13 {
        let sent = next(&mut world, "sent").await;
        assert_eq!(sent["client_id"], Uuid::from_u128(n).to_string());
    }
    // A burst of ten, and the eleventh at once; then one a second.
    let took = began.elapsed().as_millis();
    assert!((1_900..2_300).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_refused_with_the_reason_before_it_is_closed() {
    let mut world = World::new().await;
    world.settled().await;
    world.client.send(Err(Error::Io(std::io::Error::other(Flood)))).expect("open");
    let last = world.settled().await;
    assert_eq!(last.len(), 2, "{last:?}");
    assert_eq!((&last[0]["type"], &last[0]["code"]), (&json!("error"), &json!("flood")));
    assert_eq!(last[1], json!({"closed": 1008}));
}
