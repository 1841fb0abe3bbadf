//! The order of what one connection sends.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{ANN, World};
use crate::store::faulty::Fault;

#[tokio::test(start_paused = true)]
async fn behind_a_refused_send_nothing_is_accepted_until_it_comes_again() {
    let mut world = World::new().await;
    world.settled().await;
    let send = |world: &World, id: u128| {
        let client_id = Uuid::from_u128(id);
        world.send(
            &json!({"type": "send", "client_id": client_id, "to": {"user": ANN.0}, "body": {"text": "hi"}}),
        );
    };
    let reported = |frames: &[Value]| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let outcome = |frame: &Value| match frame["type"].as_str() {
            Some("error") => text(&frame["code"]),
            _ => text(&frame["type"]),
        };
        frames.iter().map(|frame| (text(&frame["client_id"])[35..].to_owned(), outcome(frame))).collect()
    };
    let expect = |frames: Vec<Value>, expected: &[(&str, &str)]| {
        let expected: Vec<_> =
            expected.iter().map(|(id, what)| ((*id).to_owned(), (*what).to_owned())).collect();
        assert_eq!(reported(&frames), expected);
    };
    world.store.script([Fault::Refuse]);
    send(&world, 1);
    expect(world.settled().await, &[("1", "unavailable")]);
    send(&world, 2);
    expect(world.settled().await, &[("2", "out_of_order")]);
    for id in [1, 2, 3] {
        send(&world, id);
    }
    expect(world.settled().await, &[("1", "sent"), ("2", "sent"), ("3", "sent")]);
}
