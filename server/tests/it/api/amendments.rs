//! Edits, recalls, reactions and replies, over HTTP and over the WebSocket.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Person, TestApp, client_id, message};

/// Ann says "hi" to Bob: her row, and his.
async fn said(app: &TestApp) -> (Person, Person, u64, u64) {
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let own = app.say(&ann, &bob, 1, "hi").await;
    let row = app.rows(&bob).await[0]["message_id"].as_u64().expect("an id");
    (ann, bob, own, row)
}

fn path(with: &Person, row: u64, what: &str) -> String {
    format!("/api/v1/conversations/u:{}/messages/{row}/{what}", with.uid)
}

fn edit(n: u128, text: &str) -> Value {
    json!({"client_id": client_id(n), "body": {"text": text}})
}

fn react(n: u128, emoji: &[&str]) -> Value {
    json!({"client_id": client_id(n), "emoji": emoji})
}

fn kinds(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["kind"].as_str().expect("a kind")).collect()
}

#[tokio::test]
async fn an_edit_reaches_everybody_and_later_readers_find_the_new_text() {
    let app = TestApp::start().await;
    let (ann, bob, own, row) = said(&app).await;
    let mut socket = app.socket(&bob).await;
    socket.begin().await;
    let first = app.post(&ann, &path(&bob, own, "edit"), edit(2, "ho")).await.ok(201);
    assert_eq!(app.post(&ann, &path(&bob, own, "edit"), edit(2, "ho")).await.ok(200), first);
    assert_eq!(
        app.post(&ann, &path(&bob, own, "edit"), edit(2, "he")).await.refused(409),
        "client_id_reused"
    );

    let frame = socket.expect("entries").await;
    let told = &frame["entries"][0];
    let of = json!({"sender": ann.uid, "client_id": client_id(1)});
    assert_eq!((&told["kind"], &told["body"]["of"]), (&json!("edit"), &of));
    assert_eq!(told["body"]["body"], json!({"text": "ho", "edited": true}));
    assert_eq!(told["conversation"], format!("u:{}", ann.uid));
    for who in [&ann, &bob] {
        let rows = app.rows(who).await;
        assert_eq!(kinds(&rows), ["message", "edit"]);
        assert_eq!(rows[0]["body"], json!({"text": "ho", "edited": true}));
        let list = app.get(who, "/api/v1/conversations").await.ok(200);
        assert_eq!(list[0]["last"]["body"]["text"], "ho");
    }
    assert_eq!(app.rows(&bob).await[0]["message_id"], row);
}

#[tokio::test]
async fn a_recalled_message_is_gone_and_stays_gone() {
    let app = TestApp::start().await;
    let (ann, bob, own, row) = said(&app).await;
    app.post(&ann, &path(&bob, own, "edit"), edit(2, "secret")).await.ok(201);
    let recall = |n: u128| json!({"client_id": client_id(n)});
    app.post(&ann, &path(&bob, own, "recall"), recall(3)).await.ok(201);
    for who in [&ann, &bob] {
        let rows = app.rows(who).await;
        assert_eq!(kinds(&rows), ["recalled", "recall"]);
        assert_eq!(rows[0]["body"], json!({"recalled": true}));
        let list = app.get(who, "/api/v1/conversations").await.ok(200);
        assert_eq!((&list[0]["last"]["kind"], &list[0]["unread"]), (&json!("recalled"), &json!(0)));
    }
    assert_eq!(app.post(&ann, &path(&bob, own, "recall"), recall(4)).await.refused(410), "recalled");
    assert_eq!(app.post(&ann, &path(&bob, own, "edit"), edit(5, "back")).await.refused(410), "recalled");
    assert_eq!(
        app.post(&bob, &path(&ann, row, "reaction"), react(1, &["👍"])).await.refused(410),
        "recalled"
    );
    let mut reply = message(9, json!({"user": ann.uid}), "what was it?");
    reply["body"]["reply_to"] = json!(row);
    assert_eq!(app.post(&bob, "/api/v1/messages", reply).await.refused(410), "recalled");
}

#[tokio::test]
async fn a_persons_reactions_to_a_message_are_one_row() {
    let app = TestApp::start().await;
    let (ann, bob, own, row) = said(&app).await;
    for n in 1..=5 {
        app.post(&bob, &path(&ann, row, "reaction"), react(n, &["👍"])).await.ok(201);
        app.post(&bob, &path(&ann, row, "reaction"), react(10 + n, &["👍", "🎉"])).await.ok(201);
    }
    let typed = [["👍", "❤"], ["👍", "❤\u{fe0e}"], ["👍\u{fe0f}", "❤\u{fe0f}"]];
    for (n, typed) in (30..).zip(typed) {
        app.post(&bob, &path(&ann, row, "reaction"), react(n, &typed)).await.ok(201);
    }
    app.post(&ann, &path(&bob, own, "reaction"), react(20, &[])).await.ok(201);
    for who in [&ann, &bob] {
        let rows = app.rows(who).await;
        assert_eq!(kinds(&rows), ["message", "reaction", "reaction"]);
        assert_eq!(rows[1]["body"]["emoji"], json!(["👍", "❤\u{fe0f}"]), "as people see them");
        assert_eq!(rows[1]["sender"], bob.uid);
        assert_eq!(rows[2]["body"]["emoji"], json!([]));
        let list = app.get(who, "/api/v1/conversations").await.ok(200);
        assert_eq!(list[0]["last"]["kind"], "message", "who reacts says nothing");
    }
}

#[tokio::test]
async fn a_reply_names_what_it_replies_to() {
    let app = TestApp::start().await;
    let (ann, bob, own, row) = said(&app).await;
    let mut reply = message(2, json!({"user": ann.uid}), "hi yourself");
    reply["body"]["reply_to"] = json!(row);
    let sent = app.post(&bob, "/api/v1/messages", reply.clone()).await.ok(201);
    assert_eq!(app.post(&bob, "/api/v1/messages", reply.clone()).await.ok(200), sent);
    let quoted = json!({"of": {"sender": ann.uid, "client_id": client_id(1)}});
    assert_eq!(app.rows(&ann).await[1]["body"], json!({"text": "hi yourself", "reply_to": quoted}));
    // Ann's own row has another id, and a conversation with somebody else other rows.
    let cat = app.sign_up("cat").await;
    let mut elsewhere = message(3, json!({"user": cat.uid}), "look");
    elsewhere["body"]["reply_to"] = json!(own);
    assert_eq!(app.post(&ann, "/api/v1/messages", elsewhere).await.refused(422), "not_in_conversation");
    reply["client_id"] = json!(client_id(4));
    reply["body"]["reply_to"] = json!(9_007_199_254_740_992_u64);
    assert_eq!(app.post(&bob, "/api/v1/messages", reply).await.refused(422), "invalid_body");
}

#[tokio::test]
async fn a_forwarded_message_names_the_first_author_and_nobody_else_can_be_named() {
    let app = TestApp::start().await;
    let (ann, bob, _, row) = said(&app).await;
    let cat = app.sign_up("cat").await;
    let forward = |n, to: u64, text: &str, row: u64| {
        let mut forward = message(n, json!({ "user": to }), text);
        forward["body"]["forward"] = json!(row);
        forward
    };
    let sent = app.post(&bob, "/api/v1/messages", forward(2, cat.uid, "hi", row)).await.ok(201);
    assert_eq!(app.post(&bob, "/api/v1/messages", forward(2, cat.uid, "hi", row)).await.ok(200), sent);
    let named = json!({ "text": "hi", "forwarded_from": ann.uid });
    assert_eq!(app.rows(&cat).await[0]["body"], named);
    let again = app.rows(&cat).await[0]["message_id"].as_u64().expect("an id");
    app.post(&cat, "/api/v1/messages", forward(3, ann.uid, "hi", again)).await.ok(201);
    assert_eq!(app.rows(&ann).await[1]["body"], named, "also of one that was forwarded to the sender");
    for (n, text, row, status, code) in [
        (4, "hi!", row, 422, "other_text"),
        (4, "hi", row + 90, 422, "not_in_conversation"),
        (4, "hi", 9_007_199_254_740_992, 422, "invalid_body"),
        (2, "hi", row + 1, 409, "client_id_reused"),
    ] {
        let refused = app.post(&bob, "/api/v1/messages", forward(n, cat.uid, text, row)).await;
        assert_eq!(refused.refused(status), code, "{text} {row}");
    }
    let own = sent["message_id"].as_u64().expect("an id");
    app.post(&bob, &path(&cat, own, "edit"), edit(5, "ho")).await.ok(201);
    assert_eq!(app.rows(&cat).await[0]["body"], json!({ "text": "ho", "edited": true }), "other words");
    app.post(&bob, &path(&cat, own, "recall"), json!({"client_id": client_id(6)})).await.ok(201);
    let gone = app.post(&bob, "/api/v1/messages", forward(7, ann.uid, "ho", own)).await;
    assert_eq!(gone.refused(410), "recalled");
}

#[tokio::test]
async fn only_ones_own_messages_are_changed_and_only_for_a_time() {
    let app = TestApp::start_with(|config| {
        config.messages.edit_seconds = 3_600;
        config.messages.recall_seconds = 120;
    })
    .await;
    let (ann, bob, own, row) = said(&app).await;
    let recall = json!({"client_id": client_id(7)});
    assert_eq!(app.post(&bob, &path(&ann, row, "edit"), edit(7, "no")).await.refused(403), "not_yours");
    assert_eq!(app.post(&bob, &path(&ann, row, "recall"), recall.clone()).await.refused(403), "not_yours");
    app.pass(Duration::from_secs(121)).await;
    let late = app.post(&ann, &path(&bob, own, "recall"), recall).await;
    assert_eq!(
        late.json()["detail"],
        "this change is possible only for 2 minutes after the message was sent"
    );
    assert_eq!(late.refused(403), "too_late");
    app.post(&ann, &path(&bob, own, "edit"), edit(7, "yes")).await.ok(201);
    app.pass(Duration::from_secs(3_600)).await;
    assert_eq!(app.post(&ann, &path(&bob, own, "edit"), edit(8, "no")).await.refused(403), "too_late");
}

#[tokio::test]
async fn what_is_no_message_or_no_emoji_is_refused_and_leaves_nothing() {
    let app = TestApp::start().await;
    let (ann, bob, own, _) = said(&app).await;
    let (there, gone) = (path(&bob, own, "reaction"), path(&bob, own + 9, "reaction"));
    let elsewhere = path(&ann, own, "reaction");
    let odd = format!("/api/v1/conversations/x:1/messages/{own}/reaction");
    for (path, body, status, code) in [
        (&there, react(2, &["ok"]), 422, "emoji"),
        (&there, react(2, &["👍", "👍"]), 422, "emoji"),
        (&there, react(2, &["👍👍"]), 422, "emoji"),
        (&there, react(2, &["👍", "🎉", "❤️", "😂", "😮", "😢", "🙏"]), 422, "emoji"),
        (&there, json!({"client_id": client_id(2)}), 422, "invalid_body"),
        (&gone, react(2, &["👍"]), 422, "not_in_conversation"),
        (&elsewhere, react(2, &["👍"]), 422, "not_in_conversation"),
        (&odd, react(2, &["👍"]), 400, "invalid_query"),
        (&path(&bob, own, "edit"), edit(2, " "), 422, "text_empty"),
        (&path(&bob, own, "edit"), json!({"client_id": client_id(2), "body": []}), 422, "invalid_body"),
    ] {
        assert_eq!(app.post(&ann, path, body.clone()).await.refused(status), code, "{path} {body}");
    }
    assert_eq!(kinds(&app.rows(&bob).await), ["message"]);
    let gid =
        app.post(&ann, "/api/v1/groups", json!({"name": "walkers", "members": [bob.uid]})).await.ok(201);
    let made = app.rows(&ann).await[1]["message_id"].clone();
    let on_event = format!("/api/v1/conversations/g:{}/messages/{made}/reaction", gid["gid"]);
    assert_eq!(app.post(&ann, &on_event, react(2, &["👍"])).await.refused(422), "no_message");
}

#[tokio::test]
async fn the_socket_takes_the_same_as_frames() {
    let app = TestApp::start().await;
    let (ann, bob, own, row) = said(&app).await;
    let mut socket = app.socket(&ann).await;
    // Without a heartbeat nothing comes unasked.
    socket.expect("welcome").await;
    let about = |kind: &str, n: u128, more: Value| {
        let mut frame = json!({"type": kind, "client_id": client_id(n),
            "conversation": format!("u:{}", bob.uid), "message_id": own});
        frame.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        frame
    };
    socket.send(&about("edit", 2, json!({"body": {"text": "ho"}}))).await;
    assert_eq!(socket.expect("sent").await["client_id"], client_id(2));
    socket.send(&about("reaction", 3, json!({"emoji": ["no"]}))).await;
    let refused = socket.expect("error").await;
    assert_eq!((&refused["code"], &refused["client_id"]), (&json!("emoji"), &json!(client_id(3))));
    socket.send(&about("reaction", 4, json!({"emoji": ["👍"]}))).await;
    socket.expect("sent").await;
    socket.send(&about("recall", 5, json!({}))).await;
    socket.expect("sent").await;
    let rows = app.rows(&bob).await;
    assert_eq!(kinds(&rows), ["recalled", "reaction", "recall"]);
    assert_eq!(rows[0]["message_id"], row);
}

#[tokio::test]
async fn a_group_learns_of_it_and_who_left_does_not() {
    let app = TestApp::start().await;
    let (ann, bob, cat) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("cat").await);
    let made = json!({"name": "walkers", "members": [bob.uid, cat.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let sent = app.post(&ann, "/api/v1/messages", message(1, json!({"group": gid}), "hi all")).await.ok(201);
    app.delete(&cat, &format!("/api/v1/groups/{gid}/members/{}", cat.uid)).await.ok(204);
    let edit_path = format!("/api/v1/conversations/g:{gid}/messages/{}/edit", sent["message_id"]);
    app.post(&ann, &edit_path, edit(2, "hi both")).await.ok(201);
    let text = async |who| {
        let rows = app.rows(who).await;
        let said = rows.iter().find(|row| row["kind"] == "message").expect("there");
        said["body"]["text"].as_str().expect("a text").to_owned()
    };
    assert_eq!((text(&bob).await, text(&cat).await), ("hi both".to_owned(), "hi all".to_owned()));
    let row = app.rows(&cat).await[1]["message_id"].clone();
    let react_path = format!("/api/v1/conversations/g:{gid}/messages/{row}/reaction");
    assert_eq!(app.post(&cat, &react_path, react(3, &["👍"])).await.refused(404), "unknown_group");
}

/// Rows in the journal and rows in the tables read alike, also after a restart.
#[tokio::test]
async fn a_restart_changes_nothing() {
    let mut app = TestApp::start().await;
    let (ann, bob, own, row) = said(&app).await;
    let second = app.say(&ann, &bob, 2, "take this back").await;
    app.post(&ann, &path(&bob, own, "edit"), edit(3, "ho")).await.ok(201);
    app.post(&bob, &path(&ann, row, "reaction"), react(1, &["👍"])).await.ok(201);
    app.post(&ann, &path(&bob, second, "recall"), json!({"client_id": client_id(4)})).await.ok(201);
    let before = (app.rows(&ann).await, app.rows(&bob).await);
    app.restart().await;
    assert_eq!((app.rows(&ann).await, app.rows(&bob).await), before);
    app.post(&bob, &path(&ann, row, "reaction"), react(2, &[])).await.ok(201);
    assert_eq!(kinds(&app.rows(&ann).await), ["message", "recalled", "edit", "recall", "reaction"]);
}
