//! The earlier messages that new members of a group see.

use reqwest::Method;
use serde_json::{Value, json};
use tidemark::config::{Config, MessageIdsSetting};

use crate::support::{Answer, Person, TestApp, client_id, message};

async fn group_of(app: &TestApp, by: &Person, others: &[&Person]) -> u64 {
    let members: Vec<u64> = others.iter().map(|person| person.uid).collect();
    let made = app.post(by, "/api/v1/groups", json!({"name": "walkers", "members": members})).await.ok(201);
    made["gid"].as_u64().expect("a number")
}

async fn set_history(app: &TestApp, by: &Person, gid: u64, history: &str) -> Answer {
    let path = format!("/api/v1/groups/{gid}");
    let body = json!({"history": history});
    app.send(app.request(Method::PATCH, &path).bearer_auth(&by.token).json(&body)).await
}

async fn say(app: &TestApp, who: &Person, gid: u64, n: u128, text: &str) {
    app.post(who, "/api/v1/messages", message(n, json!({"group": gid}), text)).await.ok(201);
}

async fn add(app: &TestApp, by: &Person, gid: u64, who: &Person) {
    app.post(by, &format!("/api/v1/groups/{gid}/members"), json!({"uid": who.uid})).await.ok(204);
}

/// The rows of an inbox, once one is there that `is_it`: copies for others may be written after the answer.
async fn rows_with(app: &TestApp, who: &Person, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut socket = app.socket(who).await;
    socket.expect("welcome").await;
    let mut cursor = 0;
    socket.heartbeat(cursor).await;
    loop {
        let frame = socket.next().await.expect("open");
        if frame["type"] != "entries" {
            continue;
        }
        if frame["entries"].as_array().expect("rows").iter().any(&is_it) {
            return app.rows(who).await;
        }
        cursor = frame["synced"].as_u64().expect("a cursor").max(cursor);
        socket.heartbeat(cursor).await;
    }
}

/// The id of the row with this text in an inbox.
async fn found(app: &TestApp, who: &Person, text: &str) -> Value {
    let is_it = |row: &Value| row["body"]["text"] == text;
    let rows = rows_with(app, who, is_it).await;
    rows.into_iter().find(is_it).expect("just seen")["message_id"].clone()
}

async fn amend(app: &TestApp, who: &Person, gid: u64, text: &str, what: &str, n: u128, more: Value) {
    let row = found(app, who, text).await;
    let path = format!("/api/v1/conversations/g:{gid}/messages/{row}/{what}");
    let mut body = more;
    body["client_id"] = json!(client_id(n));
    app.post(who, &path, body).await.ok(201);
}

/// The rows in their order: the text of messages, the action of memberships, and the kind of the others.
fn lines(rows: &[Value]) -> Vec<&str> {
    let line = |row: &'_ Value| match row["kind"].as_str() {
        Some("message") => row["body"]["text"].as_str().map(str::to_owned),
        Some("membership") => row["body"]["action"].as_str().map(str::to_owned),
        kind => kind.map(str::to_owned),
    };
    rows.iter().map(|row| Box::leak(line(row).expect("a text").into_boxed_str()) as &str).collect()
}

/// The rows of somebody who joins, once they are there.
async fn joined(app: &TestApp, who: &Person) -> Vec<Value> {
    rows_with(app, who, |row| row["body"]["uid"] == who.uid).await
}

/// Each way in which ids are given and copies written.
const WAYS: [fn(&mut Config); 3] = [
    |_| {},
    |config| config.queues.count = 4,
    |config| {
        config.messages.ids = MessageIdsSetting::Store;
        config.queues.count = 3;
    },
];

#[tokio::test]
async fn who_joins_sees_what_was_said_before_as_it_stands() {
    for way in WAYS {
        let mut app = TestApp::start_with(way).await;
        let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
        let gid = group_of(&app, &ann, &[&bob]).await;
        say(&app, &ann, gid, 1, "at nine").await;
        found(&app, &bob, "at nine").await;
        say(&app, &bob, gid, 2, "taken back").await;
        say(&app, &bob, gid, 3, "thanks").await;
        amend(&app, &ann, gid, "at nine", "edit", 11, json!({"body": {"text": "at ten"}})).await;
        amend(&app, &bob, gid, "taken back", "recall", 12, json!({})).await;
        amend(&app, &ann, gid, "thanks", "reaction", 13, json!({"emoji": ["👍"]})).await;
        amend(&app, &ann, gid, "thanks", "pin", 14, json!({"pinned": true})).await;
        amend(&app, &ann, gid, "thanks", "delete", 15, json!({})).await;
        rows_with(&app, &bob, |row| row["kind"] == "pin").await;
        assert_eq!(set_history(&app, &bob, gid, "visible").await.refused(403), "administrators_only");
        set_history(&app, &ann, gid, "visible").await.ok(204);
        let told = rows_with(&app, &bob, |row| row["body"]["action"] == "history").await;
        assert_eq!(told.last().expect("rows")["body"]["history"], "visible");
        add(&app, &ann, gid, &eve).await;

        // The sender's own copy says what was said, whoever has deleted it.
        let rows = joined(&app, &eve).await;
        assert_eq!(lines(&rows), ["receipt", "at ten", "thanks", "reaction", "pin", "added"]);
        let said = &rows[1];
        let own = app.rows(&ann).await.into_iter().find(|row| row["body"]["text"] == "at ten").expect("it");
        assert_eq!((&said["sender"], &said["client_id"]), (&own["sender"], &own["client_id"]));
        assert_eq!((&said["sent_at"], &said["body"]), (&own["sent_at"], &own["body"]));
        assert_eq!(rows[0]["body"]["read_to"], rows[4]["message_id"], "nothing of it counts as unread");
        assert_eq!(rows[5]["body"]["history"], "visible");
        let list = app.get(&eve, "/api/v1/conversations").await.ok(200);
        assert_eq!((&list[0]["unread"], &list[0]["last"]["kind"]), (&json!(0), &json!("membership")));
        let pins = app.get(&eve, &format!("/api/v1/conversations/g:{gid}/pins")).await.ok(200);
        assert_eq!(texts_of(&pins["rows"]), ["thanks"]);

        // Later changes reach her copies, too, and she takes part.
        app.restart().await;
        amend(&app, &bob, gid, "thanks", "edit", 21, json!({"body": {"text": "thank you"}})).await;
        rows_with(&app, &eve, |row| row["kind"] == "edit" && row["sender"] == bob.uid).await;
        found(&app, &eve, "thank you").await;
        amend(&app, &eve, gid, "at ten", "reaction", 22, json!({"emoji": ["🎉"]})).await;
        let reply = json!({
            "client_id": client_id(23), "to": {"group": gid},
            "body": {"text": "good", "reply_to": found(&app, &eve, "at ten").await},
        });
        app.post(&eve, "/api/v1/messages", reply).await.ok(201);
        found(&app, &ann, "good").await;
        let list = app.get(&eve, "/api/v1/conversations").await.ok(200);
        assert_eq!(list[0]["unread"], 0);
        amend(&app, &ann, gid, "at ten", "recall", 24, json!({})).await;
        let rows = rows_with(&app, &eve, |row| row["kind"] == "recall").await;
        assert_eq!((&rows[1]["kind"], &rows[1]["body"]), (&json!("recalled"), &json!({"recalled": true})));
    }
}

fn texts_of(rows: &Value) -> Vec<&str> {
    rows.as_array().expect("rows").iter().map(|row| row["body"]["text"].as_str().expect("a text")).collect()
}

#[tokio::test]
async fn who_comes_back_gets_what_is_missing_and_nothing_twice() {
    for way in WAYS {
        let app = TestApp::start_with(way).await;
        let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
        let gid = group_of(&app, &ann, &[&bob]).await;
        set_history(&app, &ann, gid, "visible").await.ok(204);
        say(&app, &ann, gid, 1, "one").await;
        say(&app, &ann, gid, 2, "two").await;
        found(&app, &bob, "two").await;
        amend(&app, &ann, gid, "one", "pin", 11, json!({"pinned": true})).await;
        rows_with(&app, &bob, |row| row["kind"] == "pin").await;
        app.delete(&bob, &format!("/api/v1/groups/{gid}/members/{}", bob.uid)).await.ok(204);
        say(&app, &ann, gid, 3, "three").await;
        amend(&app, &ann, gid, "one", "pin", 12, json!({"pinned": false})).await;
        amend(&app, &ann, gid, "two", "pin", 13, json!({"pinned": true})).await;
        let invite = app.post(&ann, &format!("/api/v1/groups/{gid}/invites"), json!({})).await.ok(201);
        let code = invite["code"].as_str().expect("a code");
        app.post(&bob, &format!("/api/v1/invites/{code}"), json!({})).await.ok(200);
        let is_back = |row: &Value| row["body"]["action"] == "joined";
        let rows = rows_with(&app, &bob, is_back).await;
        assert_eq!(
            lines(&rows),
            ["created", "history", "one", "two", "left", "receipt", "three", "pin", "pin", "joined"]
        );
        let pins = app.get(&bob, &format!("/api/v1/conversations/g:{gid}/pins")).await.ok(200);
        assert_eq!(texts_of(&pins["rows"]), ["two"]);
    }
}

#[tokio::test]
async fn a_reaction_that_came_without_its_message_does_not_come_again_with_it() {
    for way in WAYS {
        let app = TestApp::start_with(way).await;
        let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
        let gid = group_of(&app, &ann, &[]).await;
        say(&app, &ann, gid, 1, "one").await;
        add(&app, &ann, gid, &bob).await;
        amend(&app, &ann, gid, "one", "reaction", 11, json!({"emoji": ["👍"]})).await;
        rows_with(&app, &bob, |row| row["kind"] == "reaction").await;
        app.delete(&bob, &format!("/api/v1/groups/{gid}/members/{}", bob.uid)).await.ok(204);
        set_history(&app, &ann, gid, "visible").await.ok(204);
        say(&app, &ann, gid, 2, "two").await;
        add(&app, &ann, gid, &bob).await;
        let rows = rows_with(&app, &bob, |row| row["body"]["text"] == "two").await;
        assert_eq!(lines(&rows), ["added", "reaction", "left", "receipt", "one", "two", "added"]);
    }
}

#[tokio::test]
async fn who_comes_back_learns_of_all_pins_also_when_every_one_is_another() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let gid = group_of(&app, &ann, &[&bob]).await;
    set_history(&app, &ann, gid, "visible").await.ok(204);
    let (old, new): (Vec<_>, Vec<_>) = (0..50).map(|n| (format!("old {n}"), format!("new {n}"))).unzip();
    for (n, text) in (1..).zip(old.iter().chain(&new)) {
        say(&app, &ann, gid, n, text).await;
    }
    let rows = app.get(&ann, "/api/v1/range?after=0&limit=500").await.ok(200);
    let id = |text: &str| {
        let rows = rows["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["body"]["text"] == text).expect(text)["message_id"].clone()
    };
    let pin = async |n: u128, text: &str, pinned: bool| {
        let path = format!("/api/v1/conversations/g:{gid}/messages/{}/pin", id(text));
        app.post(&ann, &path, json!({"client_id": client_id(n), "pinned": pinned})).await.ok(201);
    };
    for (n, text) in (200..).zip(&old) {
        pin(n, text, true).await;
    }
    rows_with(&app, &bob, |row| row["client_id"] == client_id(249)).await;
    let pins = format!("/api/v1/conversations/g:{gid}/pins");
    assert_eq!(texts_of(&app.get(&bob, &pins).await.ok(200)["rows"]), old);
    app.delete(&bob, &format!("/api/v1/groups/{gid}/members/{}", bob.uid)).await.ok(204);
    for (n, text) in (300..).zip(&old) {
        pin(n, text, false).await;
    }
    for (n, text) in (400..).zip(&new) {
        pin(n, text, true).await;
    }
    add(&app, &ann, gid, &bob).await;
    rows_with(&app, &bob, |row| row["body"]["action"] == "added").await;
    assert_eq!(texts_of(&app.get(&bob, &pins).await.ok(200)["rows"]), new);
}

#[tokio::test]
async fn what_joiners_get_is_bounded_and_the_newest() {
    let app = TestApp::start_with(|config| {
        config.limits.history_messages = 3;
        config.limits.history_bytes = 2_048;
    })
    .await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let (eve, dan) = (app.sign_up("eve").await, app.sign_up("dan").await);
    let gid = group_of(&app, &ann, &[&bob]).await;
    set_history(&app, &ann, gid, "visible").await.ok(204);
    for n in 0..5 {
        say(&app, &bob, gid, n, &format!("number {n}")).await;
    }
    add(&app, &bob, gid, &eve).await;
    assert_eq!(lines(&joined(&app, &eve).await), ["receipt", "number 2", "number 3", "number 4", "added"]);
    say(&app, &bob, gid, 10, &"x".repeat(1_700)).await;
    add(&app, &bob, gid, &dan).await;
    let rows = joined(&app, &dan).await;
    assert_eq!(rows.len(), 3, "one message has room");
    assert_eq!(rows[1]["body"]["text"], "x".repeat(1_700));
    set_history(&app, &ann, gid, "hidden").await.ok(204);
    let fay = app.sign_up("fay").await;
    add(&app, &ann, gid, &fay).await;
    let rows = joined(&app, &fay).await;
    assert_eq!((lines(&rows), rows[0]["body"].get("history")), (vec!["added"], None));
}

#[tokio::test]
async fn no_history_is_shown_where_the_limit_is_none() {
    let app = TestApp::start_with(|config| config.limits.history_messages = 0).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let gid = group_of(&app, &ann, &[]).await;
    set_history(&app, &ann, gid, "visible").await.ok(204);
    say(&app, &ann, gid, 1, "hello").await;
    add(&app, &ann, gid, &bob).await;
    assert_eq!(lines(&joined(&app, &bob).await), ["added"]);
    let shown = app.get(&bob, &format!("/api/v1/groups/{gid}")).await.ok(200);
    assert_eq!(shown["history"], "visible");
}
