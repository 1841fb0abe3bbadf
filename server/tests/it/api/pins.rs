//! Messages that are pinned for everybody in a conversation.

use serde_json::{Value, json};

use crate::support::{Person, TestApp, client_id, message};

async fn pin(app: &TestApp, who: &Person, of: &Value, n: u128, pinned: bool) -> crate::support::Answer {
    let (conversation, id) = (of["conversation"].as_str().expect("one"), &of["message_id"]);
    let body = json!({"client_id": client_id(n), "pinned": pinned});
    app.post(who, &format!("/api/v1/conversations/{conversation}/messages/{id}/pin"), body).await
}

async fn pinned(app: &TestApp, who: &Person, conversation: &str) -> Vec<Value> {
    let page = app.get(who, &format!("/api/v1/conversations/{conversation}/pins")).await.ok(200);
    page["rows"].as_array().expect("rows").iter().map(|row| row["body"]["text"].clone()).collect()
}

#[tokio::test]
async fn the_owner_of_a_group_pins_for_everybody_and_unpins() {
    let mut app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let made = json!({"name": "walkers", "members": [bob.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let walkers = format!("g:{gid}");
    for (n, text) in [(1, "nine"), (2, "ten")] {
        app.post(&ann, "/api/v1/messages", message(n, json!({"group": gid}), text)).await.ok(201);
    }
    let (own, theirs) = (app.rows(&ann).await, app.rows(&bob).await);
    assert_eq!(pin(&app, &bob, &theirs[1], 9, true).await.refused(403), "administrators_only");
    let first = pin(&app, &ann, &own[2], 11, true).await.ok(201);
    assert_eq!(pin(&app, &ann, &own[2], 11, true).await.ok(200), first);
    pin(&app, &ann, &own[1], 12, true).await.ok(201);
    pin(&app, &ann, &own[1], 13, true).await.ok(201);
    app.restart().await;
    for who in [&ann, &bob] {
        assert_eq!(pinned(&app, who, &walkers).await, ["nine", "ten"]);
        let rows = app.rows(who).await;
        assert_eq!(rows.iter().filter(|row| row["kind"] == "pin").count(), 2, "one row for each message");
        let history = app.get(who, &format!("/api/v1/conversations/{walkers}/messages")).await.ok(200);
        assert_eq!(
            history["rows"].as_array().expect("rows").len(),
            3,
            "a pin is no line of the conversation"
        );
    }
    // Also by somebody who has it no more.
    let delete = format!("/api/v1/conversations/{walkers}/messages/{}/delete", own[2]["message_id"]);
    app.post(&ann, &delete, json!({"client_id": client_id(18)})).await.ok(201);
    assert_eq!(pin(&app, &ann, &own[2], 19, true).await.refused(422), "no_message");
    pin(&app, &ann, &own[2], 14, false).await.ok(201);
    assert_eq!(pinned(&app, &bob, &walkers).await, ["nine"]);
    let recall = format!("/api/v1/conversations/{walkers}/messages/{}/recall", own[1]["message_id"]);
    app.post(&ann, &recall, json!({"client_id": client_id(15)})).await.ok(201);
    assert_eq!(pinned(&app, &bob, &walkers).await, Vec::<Value>::new());
    assert_eq!(pin(&app, &ann, &own[1], 16, true).await.refused(410), "recalled");
    pin(&app, &ann, &own[1], 17, false).await.ok(201);
}

#[tokio::test]
async fn either_of_two_people_pins_over_the_socket_as_many_as_there_may_be() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    for n in 0..51 {
        app.say(&ann, &bob, n, &format!("number {n}")).await;
    }
    let rows = app.rows(&bob).await;
    for (n, row) in rows[..50].iter().enumerate() {
        pin(&app, &bob, row, 100 + n as u128, true).await.ok(201);
    }
    assert_eq!(pin(&app, &bob, &rows[50], 200, true).await.refused(422), "too_many_pins");
    let with_bob = format!("u:{}", bob.uid);
    assert_eq!(pinned(&app, &ann, &with_bob).await.len(), 50);
    // One that is taken back leaves its place to another.
    let theirs = app.rows(&ann).await[0]["message_id"].clone();
    let recall = format!("/api/v1/conversations/{with_bob}/messages/{theirs}/recall");
    app.post(&ann, &recall, json!({"client_id": client_id(299)})).await.ok(201);
    pin(&app, &bob, &rows[50], 202, true).await.ok(201);
    assert_eq!(pinned(&app, &ann, &with_bob).await.len(), 50);
    pin(&app, &bob, &rows[50], 203, false).await.ok(201);
    let mut socket = app.socket(&ann).await;
    socket.begin().await;
    let own = app.rows(&ann).await;
    let frame = json!({
        "type": "pin", "client_id": client_id(300), "conversation": with_bob, "message_id": own[1]["message_id"],
        "pinned": false,
    });
    socket.send(&frame).await;
    socket.expect("sent").await;
    pin(&app, &bob, &rows[50], 201, true).await.ok(201);
    assert_eq!(pinned(&app, &bob, &format!("u:{}", ann.uid)).await.len(), 49);
}
