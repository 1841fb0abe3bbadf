//! Messages that somebody stars, to find them again on all devices.

use serde_json::{Value, json};

use crate::support::{Person, TestApp, client_id, message};

async fn star(app: &TestApp, who: &Person, of: &Value, n: u128, starred: bool) -> crate::support::Answer {
    let (conversation, id) = (of["conversation"].as_str().expect("one"), &of["message_id"]);
    let body = json!({"client_id": client_id(n), "starred": starred});
    app.post(who, &format!("/api/v1/conversations/{conversation}/messages/{id}/star"), body).await
}

/// The ids of the messages that are starred, in their order.
async fn starred(app: &TestApp, who: &Person) -> Vec<u64> {
    let page = app.get(who, "/api/v1/stars").await.ok(200);
    assert_eq!(page["next_after"], Value::Null);
    let bodies = page["rows"].as_array().expect("rows").iter().map(|row| &row["body"]);
    let mut ids: Vec<u64> = bodies
        .filter(|body| body["starred"] == true)
        .filter_map(|body| body["message_id"].as_u64())
        .collect();
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn each_message_is_starred_by_itself_and_for_oneself_alone() {
    let mut app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    for n in 1..=3 {
        app.say(&ann, &bob, n, &format!("number {n}")).await;
    }
    let (own, theirs) = (app.rows(&ann).await, app.rows(&bob).await);
    let mut socket = app.socket(&bob).await;
    socket.begin().await;
    let first = star(&app, &bob, &theirs[0], 11, true).await.ok(201);
    assert_eq!(star(&app, &bob, &theirs[0], 11, true).await.ok(200), first);
    assert_eq!(star(&app, &bob, &theirs[0], 11, false).await.refused(409), "client_id_reused");
    let told = socket.expect("entries").await;
    let row = &told["entries"][0];
    assert_eq!((&row["kind"], &row["conversation"]), (&json!("star"), &theirs[0]["conversation"]));
    let of = json!({"sender": ann.uid, "client_id": theirs[0]["client_id"]});
    assert_eq!(row["body"], json!({"of": of, "message_id": theirs[0]["message_id"], "starred": true}));
    socket.heartbeat(told["synced"].as_u64().expect("an id")).await;
    socket.expect("alive").await;
    // Another device, which has not heard of it, by a frame.
    let frame = json!({
        "type": "star", "client_id": client_id(12), "conversation": theirs[1]["conversation"],
        "message_id": theirs[1]["message_id"], "starred": true,
    });
    socket.send(&frame).await;
    assert_eq!(socket.expect("sent").await["client_id"], client_id(12));
    star(&app, &bob, &theirs[2], 13, true).await.ok(201);
    star(&app, &bob, &theirs[2], 14, false).await.ok(201);
    app.restart().await;
    let id = |row: &Value| row["message_id"].as_u64().expect("an id");
    assert_eq!(starred(&app, &bob).await, [id(&theirs[0]), id(&theirs[1])]);
    assert_eq!((starred(&app, &ann).await, app.rows(&ann).await), (Vec::new(), own));
    let rows = app.rows(&bob).await;
    assert_eq!(rows.iter().filter(|row| row["kind"] == "star").count(), 3, "one row for each message");
    let history = format!("/api/v1/conversations/u:{}/messages", ann.uid);
    let history = app.get(&bob, &history).await.ok(200);
    assert_eq!(history["rows"].as_array().expect("rows").len(), 3, "a star is no line of the conversation");
    let listed = app.get(&bob, "/api/v1/conversations").await.ok(200);
    assert_eq!(listed[0]["last"]["message_id"], theirs[2]["message_id"]);
}

#[tokio::test]
async fn what_is_gone_is_not_starred_and_what_one_has_left_is() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let made = json!({"name": "walkers", "members": [bob.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    for (n, text) in [(1, "nine"), (2, "ten"), (3, "eleven")] {
        app.post(&ann, "/api/v1/messages", message(n, json!({"group": gid}), text)).await.ok(201);
    }
    let (own, theirs) = (app.rows(&ann).await, app.rows(&bob).await);
    let at = |row: &Value, what: &str| {
        format!("/api/v1/conversations/g:{gid}/messages/{}/{what}", row["message_id"])
    };
    for (n, row) in [(11, &theirs[1]), (12, &theirs[2])] {
        star(&app, &bob, row, n, true).await.ok(201);
    }
    app.post(&ann, &at(&own[1], "recall"), json!({"client_id": client_id(21)})).await.ok(201);
    app.post(&bob, &at(&theirs[2], "delete"), json!({"client_id": client_id(22)})).await.ok(201);
    assert_eq!(star(&app, &bob, &theirs[1], 13, true).await.refused(410), "recalled");
    assert_eq!(star(&app, &bob, &theirs[2], 14, true).await.refused(422), "no_message");
    assert_eq!(star(&app, &bob, &theirs[0], 15, true).await.refused(422), "no_message");
    let stranger = json!({"conversation": "u:1", "message_id": theirs[3]["message_id"]});
    assert_eq!(star(&app, &bob, &stranger, 16, true).await.refused(422), "not_in_conversation");
    for (n, row) in [(17, &theirs[1]), (18, &theirs[2])] {
        star(&app, &bob, row, n, false).await.ok(201);
    }
    app.delete(&bob, &format!("/api/v1/groups/{gid}/members/{}", bob.uid)).await.ok(204);
    star(&app, &bob, &theirs[3], 19, true).await.ok(201);
    assert_eq!(starred(&app, &bob).await, [theirs[3]["message_id"].as_u64().expect("an id")]);
}

#[tokio::test]
async fn at_the_limit_a_star_is_refused_until_another_one_goes() {
    let app = TestApp::start_with(|config| config.limits.stars = 3).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    for n in 1..=6 {
        app.say(&ann, &bob, n, &format!("number {n}")).await;
    }
    let rows = app.rows(&bob).await;
    for (n, row) in rows[..3].iter().enumerate() {
        star(&app, &bob, row, 10 + n as u128, true).await.ok(201);
    }
    assert_eq!(star(&app, &bob, &rows[3], 20, true).await.refused(422), "too_many_stars");
    // Starring a starred message adds no star, and nothing was dropped.
    star(&app, &bob, &rows[0], 21, true).await.ok(201);
    assert_eq!(starred(&app, &bob).await.len(), 3);
    star(&app, &bob, &rows[1], 22, false).await.ok(201);
    star(&app, &bob, &rows[3], 23, true).await.ok(201);
    assert_eq!(star(&app, &bob, &rows[4], 24, true).await.refused(422), "too_many_stars");
    // One that is deleted leaves its place to another.
    let path = format!("/api/v1/conversations/u:{}/messages/{}/delete", ann.uid, rows[0]["message_id"]);
    app.post(&bob, &path, json!({"client_id": client_id(25)})).await.ok(201);
    star(&app, &bob, &rows[4], 26, true).await.ok(201);
    assert_eq!(star(&app, &bob, &rows[5], 27, true).await.refused(422), "too_many_stars");
}
