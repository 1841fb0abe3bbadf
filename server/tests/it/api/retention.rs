//! Messages that expire: what is left of them, and what a device is told that was away.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_test_support::until::until;

use crate::support::{Person, TestApp};

const KEPT: u64 = 60;

/// A server that keeps messages for a minute.
async fn forgetful() -> TestApp {
    TestApp::start_with(|config| {
        config.retention.seconds = KEPT;
        config.storage.flush_rows = 1;
    })
    .await
}

/// The ids and kinds of a person's rows.
async fn rows(app: &TestApp, who: &Person) -> Vec<(u64, String)> {
    kinds(&app.rows(who).await)
}

fn kinds(rows: &[Value]) -> Vec<(u64, String)> {
    let of = |row: &Value| {
        (row["message_id"].as_u64().expect("an id"), row["kind"].as_str().expect("a kind").to_owned())
    };
    rows.iter().map(of).collect()
}

/// The same of the rows in a frame.
fn entries(frame: &Value) -> Vec<(u64, String)> {
    kinds(frame["entries"].as_array().expect("entries"))
}

/// Lets what is there expire, and waits until only so many rows of the person are left.
async fn expire(app: &TestApp, who: &Person, left: usize) {
    app.pass(Duration::from_secs(KEPT + 1)).await;
    until("old rows are removed", async || rows(app, who).await.len() == left).await;
}

#[tokio::test]
async fn messages_expire_and_their_conversation_stays_in_the_list() {
    let app = forgetful().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let mut ids = Vec::new();
    for n in 1..=3 {
        ids.push(app.say(&ann, &bob, n, "low tide").await);
    }
    expire(&app, &bob, 1).await;
    assert_eq!(rows(&app, &bob).await, [(ids[2], "deleted".to_owned())]);
    let list = app.get(&bob, "/api/v1/conversations").await.ok(200);
    assert_eq!(list.as_array().expect("lines").len(), 1);
    assert_eq!((&list[0]["unread"], &list[0]["last"]["body"]), (&json!(0), &json!({"deleted": true})));
    assert_eq!(list[0]["last"].get("client_id"), None);
    let next = app.say(&ann, &bob, 4, "high tide").await;
    assert!(next > ids[2], "{next} comes after {ids:?}");
    assert_eq!(app.get(&bob, "/api/v1/seq").await.ok(200)["seq"], next);
}

#[tokio::test]
async fn a_device_that_was_away_for_longer_than_rows_are_kept_starts_over() {
    let app = forgetful().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let first = app.say(&ann, &bob, 1, "one").await;
    app.say(&ann, &bob, 2, "two").await;
    let third = app.say(&ann, &bob, 3, "three").await;
    expire(&app, &bob, 1).await;
    let fourth = app.say(&ann, &bob, 4, "four").await;
    let left = [(third, "deleted".to_owned()), (fourth, "message".to_owned())];

    let mut away = app.socket(&bob).await;
    assert_eq!(away.expect("welcome").await["keep_seconds"], KEPT);
    away.heartbeat(first).await;
    assert_eq!(away.expect("alive").await["seq"], 0, "it may lack the second row");
    away.heartbeat(0).await;
    let all = away.expect("entries").await;
    assert_eq!((entries(&all), &all["after"]), (left.to_vec(), &json!(0)));
    // While it fetches everything, it goes on from where it is.
    assert_eq!(entries(&away.only_answer_to(first).await), left);
    assert_eq!(away.only_answer_to(fourth).await["seq"], fourth);

    let mut here = app.socket(&bob).await;
    here.expect("welcome").await;
    assert_eq!(entries(&here.only_answer_to(third).await), left[1..], "it has all that went");
}

#[tokio::test]
async fn a_server_that_keeps_everything_says_nothing_of_it() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let mut socket = app.socket(&ann).await;
    assert_eq!(socket.expect("welcome").await.get("keep_seconds"), None);
}
