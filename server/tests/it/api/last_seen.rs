//! When somebody was online last: who is told, and how exactly.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_test_support::until::until;

use crate::support::{Person, TestApp, client_id};

async fn last_seen(app: &TestApp, who: &Person, other: &Person) -> Value {
    app.get(who, &format!("/api/v1/users/{}/last-seen", other.uid)).await.ok(200)["last_seen"].clone()
}

async fn set(app: &TestApp, who: &Person, path: &str, n: u128, value: Value) {
    app.put(who, &format!("/api/v1/{path}"), json!({"client_id": client_id(n), "value": value}))
        .await
        .ok(201);
}

/// Bob comes and goes; Ann, to whom he has written, is told when.
async fn bob_was_here(app: &TestApp, ann: &Person, bob: &Person) {
    app.say(bob, ann, 1, "hello").await;
    let mut socket = app.socket(bob).await;
    socket.begin().await;
    assert_eq!(last_seen(app, ann, bob).await, Value::Null);
    drop(socket);
    until("it is known when Bob was here", async || last_seen(app, ann, bob).await != Value::Null).await;
}

#[tokio::test]
async fn friends_and_people_to_whom_one_has_written_are_told_to_the_minute_and_then_the_day() {
    let app = TestApp::start().await;
    let [ann, bob, cat, dan] = [
        app.sign_up("Ann").await,
        app.sign_up("Bob").await,
        app.sign_up("Cat").await,
        app.sign_up("Dan").await,
    ];
    bob_was_here(&app, &ann, &bob).await;
    let minute = last_seen(&app, &ann, &bob).await;
    let text = minute.as_str().expect("a time");
    assert!(text.len() == 20 && text.ends_with(":00Z"), "{text}");
    // Whoever has only written to Bob is told nothing.
    app.say(&cat, &bob, 1, "hello").await;
    assert_eq!(last_seen(&app, &cat, &bob).await, Value::Null);
    for (one, other) in [(&dan, &bob), (&bob, &dan)] {
        let wish = json!({"client_id": client_id(2), "wanted": true});
        app.put(one, &format!("/api/v1/friends/{}", other.uid), wish).await.ok(201);
    }
    assert_eq!(last_seen(&app, &dan, &bob).await, minute);
    assert_eq!(last_seen(&app, &bob, &bob).await, Value::Null);
    app.pass(Duration::from_secs(24 * 60 * 60)).await;
    assert_eq!(last_seen(&app, &ann, &bob).await, json!(text[..10]));
}

#[tokio::test]
async fn nobody_is_told_who_hides_it_or_is_blocked() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("Ann").await, app.sign_up("Bob").await);
    bob_was_here(&app, &ann, &bob).await;
    let mut n = 10;
    for (who, path, value) in [
        (&bob, "settings/privacy".to_owned(), json!({"last_seen": false})),
        (&ann, "settings/privacy".to_owned(), json!({"last_seen": false})),
        (&bob, "settings/privacy".to_owned(), json!({"presence": false})),
        (&bob, format!("conversations/u:{}/settings/block", ann.uid), json!({"blocked": true})),
        (&ann, format!("conversations/u:{}/settings/block", bob.uid), json!({"blocked": true})),
    ] {
        n += 2;
        set(&app, who, &path, n, value.clone()).await;
        assert_eq!(last_seen(&app, &ann, &bob).await, Value::Null, "{value} of {}", who.name);
        set(&app, who, &path, n + 1, Value::Null).await;
        assert_ne!(last_seen(&app, &ann, &bob).await, Value::Null);
    }
}
