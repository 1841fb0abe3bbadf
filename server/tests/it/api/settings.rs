//! Settings, profiles, deletions for oneself, and word of how far messages have come.

use serde_json::{Value, json};

use crate::support::{Person, TestApp, client_id};

async fn put(app: &TestApp, who: &Person, path: &str, n: u128, value: Value) -> crate::support::Answer {
    app.put(who, &format!("/api/v1/{path}"), json!({"client_id": client_id(n), "value": value})).await
}

#[tokio::test]
async fn a_setting_follows_to_other_devices_and_only_the_newest_stands() {
    let mut app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let draft = format!("conversations/u:{}/settings/draft", bob.uid);
    let mut socket = app.socket(&ann).await;
    socket.begin().await;
    let ack = put(&app, &ann, &draft, 1, json!({"text": "to be"})).await.ok(201);
    let frame = socket.expect("entries").await;
    let told = &frame["entries"][0];
    assert_eq!((&told["kind"], &told["message_id"]), (&json!("setting"), &ack["message_id"]));
    assert_eq!(told["body"], json!({"name": "draft", "value": {"text": "to be"}}));
    socket.heartbeat(frame["synced"].as_u64().expect("an id")).await;
    let conversation = format!("u:{}", bob.uid);
    let sent = json!({
        "type": "setting", "client_id": client_id(2), "conversation": conversation, "name": "draft",
        "value": {"text": "to be or"},
    });
    socket.send(&sent).await;
    socket.expect("alive").await;
    assert_eq!(socket.expect("sent").await["client_id"], client_id(2));
    put(&app, &ann, "settings/profile", 3, json!({"hue": 7, "about": "at sea"})).await.ok(201);
    app.restart().await;
    let page = app.get(&ann, "/api/v1/settings").await.ok(200);
    let values: Vec<&Value> = page["rows"].as_array().expect("rows").iter().map(|row| &row["body"]).collect();
    assert_eq!(
        values,
        [
            &json!({"name": "draft", "value": {"text": "to be or"}}),
            &json!({"name": "profile", "value": {"hue": 7, "about": "at sea"}}),
        ]
    );
    assert_eq!(page["next_after"], Value::Null);
    assert_eq!(app.rows(&ann).await.len(), 2);
    assert_eq!(app.get(&ann, "/api/v1/conversations").await.ok(200), json!([]));
    let shown = app.get(&bob, &format!("/api/v1/users/{}", ann.uid)).await.ok(200);
    assert_eq!(shown, json!({"uid": ann.uid, "name": "ann", "hue": 7, "about": "at sea"}));
}

#[tokio::test]
async fn what_a_setting_does_not_take_is_refused() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    for (path, value, status, code) in [
        ("settings/privacy", json!({"write": "nobody"}), 422, "bad_setting"),
        ("settings/mute", json!({}), 400, "invalid_query"),
        ("settings/wallpaper", json!({}), 400, "invalid_query"),
        ("conversations/u:10001/settings/profile", json!({}), 400, "invalid_query"),
        ("conversations/u:10001/settings/mute", json!({"until": "noon"}), 422, "bad_setting"),
        ("conversations/u:77/settings/mute", json!({}), 404, "unknown_user"),
        ("conversations/g:77/settings/mute", json!({}), 404, "unknown_group"),
        ("conversations/u:0/settings/mute", json!({}), 400, "invalid_query"),
    ] {
        assert_eq!(put(&app, &ann, path, 1, value).await.refused(status), code, "{path}");
    }
    put(&app, &ann, "conversations/u:10001/settings/pin", 1, json!({"pinned": true})).await.ok(201);
    let other = put(&app, &ann, "conversations/u:10001/settings/pin", 1, Value::Null).await;
    assert_eq!(other.refused(409), "client_id_reused");
    let mut socket = app.socket(&ann).await;
    socket.begin().await;
    let wrong = json!({
        "type": "setting", "client_id": client_id(5), "conversation": "u:10001", "name": "archive", "value": {},
    });
    socket.send(&wrong).await;
    let refused = socket.expect("error").await;
    assert_eq!((&refused["code"], &refused["client_id"]), (&json!("bad_setting"), &json!(client_id(5))));
}

#[tokio::test]
async fn a_message_is_deleted_for_oneself_alone() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "secret").await;
    let row = app.rows(&bob).await[0]["message_id"].as_u64().expect("an id");
    let path = format!("/api/v1/conversations/u:{}/messages/{row}/delete", ann.uid);
    let ack = app.post(&bob, &path, json!({"client_id": client_id(1)})).await.ok(201);
    assert_eq!(app.post(&bob, &path, json!({"client_id": client_id(1)})).await.ok(200), ack);
    let rows = app.rows(&bob).await;
    assert_eq!((&rows[0]["kind"], &rows[0]["body"]), (&json!("deleted"), &json!({"deleted": true})));
    assert_eq!(rows[1]["kind"], "delete");
    let list = app.get(&bob, "/api/v1/conversations").await.ok(200);
    assert_eq!((&list[0]["last"]["kind"], &list[0]["unread"]), (&json!("deleted"), &json!(0)));
    let rows = app.rows(&ann).await;
    assert_eq!((rows.len(), &rows[0]["body"]["text"]), (1, &json!("secret")));
    // An edit that comes later does not bring it back.
    let own = rows[0]["message_id"].as_u64().expect("an id");
    let edit = json!({"client_id": client_id(2), "body": {"text": "secret again"}});
    app.post(&ann, &format!("/api/v1/conversations/u:{}/messages/{own}/edit", bob.uid), edit).await.ok(201);
    assert_eq!(app.rows(&bob).await[0]["body"], json!({"deleted": true}));
    assert_eq!(app.post(&bob, &path, json!({"client_id": client_id(3)})).await.refused(422), "no_message");
}

#[tokio::test]
async fn the_author_is_told_how_far_messages_have_come_at_the_cost_of_one_row() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    for n in 1..=3 {
        app.say(&ann, &bob, n, "hi").await;
    }
    let mut socket = app.socket(&bob).await;
    socket.begin().await;
    socket.heartbeat(0).await;
    let frame = socket.expect("entries").await;
    socket.heartbeat(frame["synced"].as_u64().expect("an id")).await;
    socket.expect("alive").await;
    let conversation = format!("u:{}", ann.uid);
    let seen = |n: u64, state: &str| json!({"type": "seen", "conversation": conversation, "message_id": n, "state": state});
    for n in 1..=3 {
        socket.send(&seen(n, "delivered")).await;
    }
    socket.send(&seen(2, "read")).await;
    socket.send(&seen(7, "read")).await;
    assert_eq!(socket.expect("error").await["code"], "not_in_conversation");
    let rows = app.rows(&ann).await;
    let seen: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "seen").map(|row| &row["body"]).collect();
    let of = |n| json!({"sender": ann.uid, "client_id": client_id(n)});
    assert_eq!(seen, [&json!({"state": "delivered", "of": of(3)}), &json!({"state": "read", "of": of(2)})]);
    assert_eq!(app.rows(&bob).await.len(), 3);
    // One's own message is nothing to be seen.
    let own = app.say(&bob, &ann, 9, "ho").await;
    socket
        .send(&json!({"type": "seen", "conversation": conversation, "message_id": own, "state": "read"}))
        .await;
    loop {
        let frame = socket.next().await.expect("open");
        if frame["type"] == "error" {
            break assert_eq!(frame["code"], "no_message");
        }
    }
}

#[tokio::test]
async fn the_page_is_in_the_language_of_the_account_unless_one_was_chosen_on_the_device() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let page = async |cookies: &str| {
        let cookies = format!("tidemark_session={}{cookies}", ann.token);
        let request = app.request(reqwest::Method::GET, "/").header("cookie", cookies);
        let text = app.send(request.header("accept-language", "en")).await.text;
        let (_, rest) = text.split_once("<html lang=\"").expect("a page");
        rest.split('"').next().expect("a tag").to_owned()
    };
    assert_eq!(page("").await, "en");
    put(&app, &ann, "settings/language", 1, json!({"tag": "zh"})).await.ok(201);
    assert_eq!(page("").await, "zh-Hans");
    assert_eq!(page("; tidemark_language=en").await, "en", "chosen here");
    put(&app, &ann, "settings/language", 2, json!({"tag": "tlh"})).await.ok(201);
    assert_eq!(page("").await, "en", "a language that the page does not speak");
    put(&app, &ann, "settings/language", 3, Value::Null).await.ok(201);
    assert_eq!(page("").await, "en");
    assert_eq!(
        put(&app, &ann, "settings/language", 4, json!({"tag": "z"})).await.refused(422),
        "bad_setting"
    );
}
