//! Mentions, over HTTP and over the WebSocket.

use serde_json::{Value, json};

use crate::support::{Person, TestApp, message};

async fn walkers(app: &TestApp) -> (Person, Person, Person, Value) {
    let (ann, bob, cat) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("cat").await);
    let made = json!({"name": "walkers", "members": [bob.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    (ann, bob, cat, gid)
}

fn naming(n: u128, gid: &Value, mentions: Value) -> Value {
    let mut body = message(n, json!({"group": gid}), "@bob: nine?");
    body["body"]["mentions"] = mentions;
    body
}

async fn counts(app: &TestApp, who: &Person) -> (Value, Value) {
    let list = app.get(who, "/api/v1/conversations").await.ok(200);
    (list[0]["unread"].clone(), list[0]["mentions"].clone())
}

#[tokio::test]
async fn members_are_mentioned_and_the_list_counts_it_until_it_is_read() {
    let mut app = TestApp::start().await;
    let (ann, bob, cat, gid) = walkers(&app).await;
    let named = naming(1, &gid, json!({"users": [bob.uid, cat.uid, bob.uid]}));
    let first = app.post(&ann, "/api/v1/messages", named.clone()).await.ok(201);
    assert_eq!(app.post(&ann, "/api/v1/messages", named).await.ok(200), first);
    let others = naming(1, &gid, json!({"users": [bob.uid]}));
    assert_eq!(app.post(&ann, "/api/v1/messages", others).await.refused(409), "client_id_reused");
    let all = naming(2, &gid, json!({"all": true}));
    app.post(&ann, "/api/v1/messages", all).await.ok(201);
    app.post(&ann, "/api/v1/messages", naming(3, &gid, json!({}))).await.ok(201);
    let rows = app.rows(&bob).await;
    let bodies: Vec<&Value> = rows[1..].iter().map(|row| &row["body"]).collect();
    assert_eq!(
        bodies,
        [
            &json!({"text": "@bob: nine?", "mentions": {"users": [bob.uid]}}),
            &json!({"text": "@bob: nine?", "mentions": {"users": [], "all": true}}),
            &json!({"text": "@bob: nine?"}),
        ]
    );
    assert_eq!(counts(&app, &bob).await, (json!(3), json!(2)));
    assert_eq!(counts(&app, &ann).await, (json!(0), json!(0)));
    app.restart().await;
    assert_eq!(counts(&app, &bob).await, (json!(3), json!(2)));
    // In the tables and taken back in memory.
    let own = app.rows(&ann).await[1]["message_id"].clone();
    let recall = format!("/api/v1/conversations/g:{gid}/messages/{own}/recall");
    app.post(&ann, &recall, json!({"client_id": crate::support::client_id(9)})).await.ok(201);
    assert_eq!(counts(&app, &bob).await, (json!(2), json!(1)));
    let read = json!({"message_id": rows[2]["message_id"]});
    app.put(&bob, &format!("/api/v1/conversations/g:{gid}/read"), read).await.ok(204);
    assert_eq!(counts(&app, &bob).await, (json!(1), json!(0)));
}

#[tokio::test]
async fn too_many_mentions_are_refused_and_none_are_kept_between_two_people() {
    let app = TestApp::start().await;
    let (ann, bob, _, gid) = walkers(&app).await;
    let many: Vec<u32> = (1..=51).collect();
    let refused = app.post(&ann, "/api/v1/messages", naming(1, &gid, json!({"users": many}))).await;
    assert_eq!(refused.refused(422), "invalid_body");
    for wrong in [json!([1]), json!({"users": ["bob"]}), json!({"all": 1})] {
        let refused = app.post(&ann, "/api/v1/messages", naming(1, &gid, wrong.clone())).await;
        assert_eq!(refused.refused(422), "invalid_body", "{wrong}");
    }
    let mut socket = app.socket(&ann).await;
    socket.begin().await;
    let mut between = message(2, json!({"user": bob.uid}), "hi @bob");
    between["type"] = json!("send");
    between["body"]["mentions"] = json!({"users": [bob.uid]});
    socket.send(&between).await;
    socket.expect("sent").await;
    let rows = app.rows(&bob).await;
    assert_eq!(rows.last().expect("a row")["body"], json!({"text": "hi @bob"}));
}
