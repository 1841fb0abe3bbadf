//! Conversations with a time of their own for which messages are kept.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tidemark_test_support::until::until;

use crate::support::{Answer, Person, TestApp, client_id, message};

const MINUTE: u64 = 60;
const WEEK: u64 = 604_800;

/// A server that has everything in the tables at once.
async fn start() -> TestApp {
    TestApp::start_with(|config| config.storage.flush_rows = 1).await
}

async fn keep(app: &TestApp, who: &Person, with: &Person, n: u128, seconds: u64) -> Answer {
    let body = json!({"client_id": client_id(n), "keep_seconds": seconds});
    app.put(who, &format!("/api/v1/conversations/u:{}/keep", with.uid), body).await
}

async fn keep_in_group(app: &TestApp, who: &Person, gid: u64, seconds: u64) -> Answer {
    let request = app.request(Method::PATCH, &format!("/api/v1/groups/{gid}")).bearer_auth(&who.token);
    app.send(request.json(&json!({"keep_seconds": seconds}))).await
}

/// The kinds and texts of a person's rows.
fn kinds(rows: &[Value]) -> Vec<String> {
    let of = |row: &Value| match row["body"]["text"].as_str() {
        Some(text) => text.to_owned(),
        None => row["kind"].as_str().expect("a kind").to_owned(),
    };
    rows.iter().map(of).collect()
}

/// Lets a minute pass, and waits until the person has these rows.
async fn expire(app: &TestApp, who: &Person, left: &[&str]) {
    app.pass(Duration::from_secs(MINUTE + 1)).await;
    until("old rows are removed", async || kinds(&app.rows(who).await) == left).await;
}

#[tokio::test]
async fn messages_of_two_disappear_for_both_after_the_time_that_one_of_them_chose() {
    let app = start().await;
    let (ann, bob, cat) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("cat").await);
    assert_eq!(keep(&app, &ann, &bob, 1, MINUTE).await.refused(422), "no_conversation");
    let first = app.say(&ann, &bob, 2, "one").await;
    app.say(&cat, &bob, 3, "two").await;
    for wrong in [59, 31_536_001] {
        assert_eq!(keep(&app, &bob, &ann, 4, wrong).await.refused(422), "invalid_body", "{wrong}");
    }
    let set = keep(&app, &bob, &ann, 5, MINUTE).await.ok(201);
    assert_eq!(keep(&app, &bob, &ann, 5, MINUTE).await.ok(200), set);
    assert_eq!(keep(&app, &bob, &ann, 5, WEEK).await.refused(409), "client_id_reused");
    until("Ann is told", async || kinds(&app.rows(&ann).await) == ["one", "keep"]).await;

    expire(&app, &bob, &["two", "keep"]).await;
    expire(&app, &ann, &["keep"]).await;
    // A longer time brings nothing back, and says what is gone.
    keep(&app, &ann, &bob, 6, WEEK).await.ok(201);
    app.say(&ann, &bob, 7, "three").await;
    let told = app.get(&bob, "/api/v1/keeps").await.ok(200);
    let told = told["rows"].as_array().expect("rows");
    assert_eq!(told.iter().map(|row| &row["sender"]).collect::<Vec<_>>(), [ann.uid, bob.uid]);
    assert_eq!(told[0]["body"]["keep"]["seconds"], WEEK);
    assert!(told[0]["body"]["keep"]["gone_before"].as_u64().is_some());
    assert_eq!(told[1]["body"], json!({"keep": {"seconds": MINUTE}}));
    // A device that was away removes by the same rule, and goes on from where it is.
    let mut away = app.socket(&ann).await;
    away.expect("welcome").await;
    let rows = away.only_answer_to(first).await;
    assert_eq!(kinds(rows["entries"].as_array().expect("entries")), ["keep", "keep", "three"]);
}

#[tokio::test]
async fn administrators_choose_for_their_group_and_who_joins_is_told() {
    let app = start().await;
    let (ann, bob, cat) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("cat").await);
    let made = app.post(&ann, "/api/v1/groups", json!({"name": "us", "members": [bob.uid]})).await.ok(201);
    let gid = made["gid"].as_u64().expect("a number");
    assert_eq!(keep_in_group(&app, &bob, gid, MINUTE).await.refused(403), "administrators_only");
    assert_eq!(keep_in_group(&app, &ann, gid, 1).await.refused(422), "invalid_body");
    keep_in_group(&app, &ann, gid, MINUTE).await.ok(204);
    assert_eq!(app.get(&ann, &format!("/api/v1/groups/{gid}")).await.ok(200)["keep_seconds"], MINUTE);
    app.post(&ann, &format!("/api/v1/groups/{gid}/members"), json!({"uid": cat.uid})).await.ok(204);
    app.post(&bob, "/api/v1/messages", message(1, json!({"group": gid}), "hi")).await.ok(201);
    until("Cat has it", async || kinds(&app.rows(&cat).await) == ["membership", "hi"]).await;
    let rows = app.rows(&cat).await;
    let joined = &rows[0]["body"];
    assert_eq!((&joined["action"], &joined["keep"]), (&json!("added"), &json!({"seconds": MINUTE})));

    // Also of somebody who has left.
    app.delete(&bob, &format!("/api/v1/groups/{gid}/members/{}", bob.uid)).await.ok(204);
    expire(&app, &cat, &["membership", "membership"]).await;
    expire(&app, &ann, &["membership"; 4]).await;
    expire(&app, &bob, &["membership"; 4]).await;
    keep_in_group(&app, &ann, gid, 0).await.ok(204);
    app.post(&ann, "/api/v1/messages", message(2, json!({"group": gid}), "hello")).await.ok(201);
    let last = app.rows(&ann).await;
    let told = &last[last.len() - 2]["body"];
    assert_eq!((&told["action"], &told["keep"]["seconds"]), (&json!("keep"), &json!(0)));
    expire(&app, &ann, &["membership", "membership", "membership", "membership", "hello"]).await;
}
