//! Typing and presence over several servers of one database.

use serde_json::{Value, json};

use super::servers::beside;
use crate::support::{Database, Person, Socket, TestApp};

async fn connected(app: &TestApp, who: &Person) -> Socket {
    let mut socket = Socket::open(&app.address, &format!("Bearer {}", who.token)).await;
    socket.begin().await;
    socket
}

async fn is_told(socket: &mut Socket, online: Value) {
    assert_eq!(socket.expect("presence").await["online"], online);
}

#[tokio::test]
async fn typing_and_presence_reach_the_devices_at_other_servers() {
    let one = Database::Postgres.start().await;
    let (ann, bob, cleo) = (one.sign_up("ann").await, one.sign_up("bob").await, one.sign_up("cleo").await);
    let made = json!({"name": "crew", "members": [bob.uid, cleo.uid]});
    let gid = one.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let mut of_ann = connected(&one, &ann).await;
    of_ann.send(&json!({"type": "presence", "of": [bob.uid, cleo.uid]})).await;
    is_told(&mut of_ann, json!([])).await;
    // A server that starts later is told who is there, and tells who comes to it.
    let other = beside(&one).await;
    let mut of_bob = connected(&other, &bob).await;
    is_told(&mut of_ann, json!([bob.uid])).await;
    let mut of_cleo = connected(&one, &cleo).await;
    is_told(&mut of_ann, json!([bob.uid, cleo.uid])).await;
    of_bob.send(&json!({"type": "presence", "of": [ann.uid, cleo.uid]})).await;
    let mut told = of_bob.expect("presence").await;
    while told["online"].as_array().map(Vec::len) < Some(2) {
        told = of_bob.expect("presence").await;
    }
    assert_eq!(told["online"], json!([ann.uid, cleo.uid]));

    of_ann.send(&json!({"type": "typing", "conversation": format!("u:{}", bob.uid)})).await;
    let typing = of_bob.expect("typing").await;
    assert_eq!(
        typing,
        json!({"type": "typing", "conversation": format!("u:{}", ann.uid), "sender": ann.uid})
    );
    of_bob.send(&json!({"type": "typing", "conversation": format!("g:{gid}")})).await;
    for socket in [&mut of_ann, &mut of_cleo] {
        let typing = socket.expect("typing").await;
        assert_eq!(
            (&typing["conversation"], &typing["sender"]),
            (&json!(format!("g:{gid}")), &json!(bob.uid))
        );
    }

    // A setting made at one server holds at the others.
    let hidden = json!({"client_id": crate::support::client_id(1), "value": {"presence": false}});
    other.put(&bob, "/api/v1/settings/privacy", hidden).await.ok(201);
    is_told(&mut of_ann, json!([cleo.uid])).await;
}

#[tokio::test]
async fn who_leaves_another_server_goes_after_a_grace_and_who_moves_to_this_one_stays() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob, cleo) = (one.sign_up("ann").await, one.sign_up("bob").await, one.sign_up("cleo").await);
    let mut of_ann = connected(&one, &ann).await;
    let (of_bob, of_cleo) = (connected(&other, &bob).await, connected(&other, &cleo).await);
    of_ann.send(&json!({"type": "presence", "of": [bob.uid, cleo.uid]})).await;
    let mut told = of_ann.expect("presence").await;
    while told["online"].as_array().map(Vec::len) < Some(2) {
        told = of_ann.expect("presence").await;
    }
    drop((of_bob, of_cleo));
    let _moved = connected(&one, &bob).await;
    is_told(&mut of_ann, json!([bob.uid])).await;
}

#[tokio::test]
async fn who_was_connected_to_a_server_that_has_stopped_goes_after_the_grace() {
    let one = Database::Postgres.start().await;
    let mut other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, one.sign_up("bob").await);
    let mut of_ann = connected(&one, &ann).await;
    let _of_bob = connected(&other, &bob).await;
    of_ann.send(&json!({"type": "presence", "of": [bob.uid]})).await;
    let mut told = of_ann.expect("presence").await;
    while told["online"] != json!([bob.uid]) {
        told = of_ann.expect("presence").await;
    }
    other.stop().await;
    is_told(&mut of_ann, json!([])).await;
}
