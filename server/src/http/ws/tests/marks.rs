//! `read` and `seen`: only a refusal is answered, and the answer to a heartbeat says that the others are stored.

use super::*;
use crate::store::faulty::Fault;

#[tokio::test(start_paused = true)]
async fn a_heartbeat_is_answered_when_what_was_marked_before_it_is_stored() {
    let mut world = World::new().await;
    world.settled().await;
    let id = world.ann_says("hi").await;
    assert_eq!(read(&world.heartbeat(0).await), Expected::Entries((0, vec![id], false)));
    let conversation = Conversation::User(ANN).to_string();
    world.store.script([Fault::Stall]);
    world
        .send(&json!({"type": "seen", "conversation": conversation, "message_id": id, "state": "delivered"}));
    assert_eq!(world.heartbeat(id).await, [] as [Value; 0], "it may still be lost");
    world.store.release();
    assert_eq!(read(&world.settled().await), Expected::Alive(id));
    world.store.script([Fault::Refuse]);
    world.send(&json!({"type": "seen", "conversation": conversation, "message_id": id, "state": "read"}));
    let answers = world.heartbeat(id).await;
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!((&answers[0]["type"], &answers[0]["message_id"]), (&json!("error"), &json!(id)));
    assert_eq!(read(&answers[1..]), Expected::Alive(id));
}

#[tokio::test(start_paused = true)]
async fn a_read_marker_that_is_refused_for_its_rate_is_named() {
    let mut config = Config::default();
    config.limits.sends_per_account_per_second = 1;
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let (state, directory) = state(store.clone(), config).await;
    let rates = Arc::clone(&state.rates);
    let mut world = World::of(store, state, directory, BOB).await;
    world.settled().await;
    let conversation = Conversation::User(ANN).to_string();
    for frame in [
        json!({"type": "read", "conversation": conversation, "message_id": 9}),
        json!({"type": "seen", "conversation": conversation, "message_id": 8, "state": "read"}),
    ] {
        // Other connections of the account have used all that may be waited for.
        while rates.send_and_pause(BOB).is_ok() {}
        world.send(&frame);
        let refused = world.settled().await;
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert_eq!(refused[0]["code"], "rate_limited");
        for field in ["conversation", "message_id"] {
            assert_eq!(refused[0][field], frame[field], "{field}");
        }
    }
}
