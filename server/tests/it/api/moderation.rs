//! What administrators do about members of their group: taking back messages.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Person, TestApp, client_id, message};

/// A group of Ann, who owns it, Bob, who is an administrator, and Eve; with its number.
async fn walkers(app: &TestApp) -> (Person, Person, Person, u64) {
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let made = json!({"name": "walkers", "members": [bob.uid, eve.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].as_u64().expect("a number");
    let path = format!("/api/v1/groups/{gid}/members/{}/role", bob.uid);
    app.put(&ann, &path, json!({"role": "administrator"})).await.ok(204);
    (ann, bob, eve, gid)
}

async fn say(app: &TestApp, who: &Person, gid: u64, n: u128, text: &str) -> Answer {
    app.post(who, "/api/v1/messages", message(n, json!({"group": gid}), text)).await
}

/// Takes back the message of the group that `who` has with this text.
async fn recall(app: &TestApp, who: &Person, gid: u64, n: u128, text: &str) -> Answer {
    let rows = app.rows(who).await;
    let row = rows.iter().find(|row| row["body"]["text"] == text).expect("a message");
    let path = format!("/api/v1/conversations/g:{gid}/messages/{}/recall", row["message_id"]);
    app.post(who, &path, json!({"client_id": client_id(n)})).await
}

fn recalled(rows: &[Value]) -> Vec<Value> {
    rows.iter().filter(|row| row["kind"] == "recalled").map(|row| row["body"].clone()).collect()
}

#[tokio::test]
async fn administrators_take_back_any_message_of_their_group_at_any_time() {
    let mut app = TestApp::start().await;
    let (ann, bob, eve, gid) = walkers(&app).await;
    for (n, who, text) in [(1, &eve, "buy this"), (2, &ann, "no secrets"), (3, &bob, "mine")] {
        say(&app, who, gid, n, text).await.ok(201);
    }
    app.pass(Duration::from_secs(7 * 86_400)).await;
    assert_eq!(recall(&app, &eve, gid, 11, "no secrets").await.refused(403), "not_yours");
    assert_eq!(recall(&app, &eve, gid, 12, "buy this").await.refused(403), "too_late");
    let first = recall(&app, &bob, gid, 13, "buy this").await.ok(201);
    let edit = json!({"client_id": client_id(14), "body": {"text": "again"}});
    let row = &app.rows(&eve).await[2]["message_id"];
    let path = format!("/api/v1/conversations/g:{gid}/messages/{row}");
    assert_eq!(app.post(&eve, &format!("{path}/edit"), edit).await.refused(410), "recalled");
    // The owner's, too, as well as the administrator's own.
    recall(&app, &bob, gid, 15, "no secrets").await.ok(201);
    recall(&app, &bob, gid, 16, "mine").await.ok(201);
    app.restart().await;
    for who in [&ann, &bob, &eve] {
        let rows = app.rows(who).await;
        let by_bob = json!({"recalled": true, "by": bob.uid});
        assert_eq!(recalled(&rows), [by_bob.clone(), by_bob, json!({"recalled": true})]);
        assert!(rows.iter().all(|row| row["body"]["text"].is_null()), "{rows:?}");
        let list = app.get(who, "/api/v1/conversations").await.ok(200);
        assert_eq!((&list[0]["last"]["kind"], &list[0]["unread"]), (&json!("recalled"), &json!(0)));
    }
    let rows = app.rows(&bob).await;
    let own = rows.iter().find(|row| row["message_id"] == first["message_id"]).expect("the first recall");
    assert_eq!((&own["kind"], &own["sender"]), (&json!("recall"), &json!(bob.uid)));
}

#[tokio::test]
async fn whoever_is_no_administrator_any_more_takes_back_nothing_of_others() {
    let app = TestApp::start().await;
    let (ann, bob, eve, gid) = walkers(&app).await;
    say(&app, &eve, gid, 1, "hello").await.ok(201);
    let path = format!("/api/v1/groups/{gid}/members/{}/role", bob.uid);
    app.put(&ann, &path, json!({"role": "member"})).await.ok(204);
    assert_eq!(recall(&app, &bob, gid, 2, "hello").await.refused(403), "not_yours");
    app.say(&eve, &ann, 3, "to you alone").await;
    let rows = app.rows(&ann).await;
    let row = rows.iter().find(|row| row["body"]["text"] == "to you alone").expect("a message");
    let path = format!("/api/v1/conversations/u:{}/messages/{}/recall", eve.uid, row["message_id"]);
    let recall = app.post(&ann, &path, json!({"client_id": client_id(4)})).await;
    assert_eq!(recall.refused(403), "not_yours");
}
