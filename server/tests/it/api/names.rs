//! Changing one's name: who may, how often, and how others learn of it.

use std::time::Duration;

use serde_json::json;

use crate::support::{Person, TestApp};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn rename(app: &TestApp, who: &Person, name: &str) -> crate::support::Answer {
    app.put(who, "/api/v1/me/name", json!({"name": name})).await
}

async fn log_in(app: &TestApp, name: &str) -> u16 {
    let body = json!({"name": name, "password": "correct horse"});
    app.post_as_nobody("/api/v1/sessions", body).await.status.as_u16()
}

#[tokio::test]
async fn a_name_changes_once_a_week_and_the_old_one_stays_reserved_for_as_long() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("Ann").await, app.sign_up("Bob").await);
    for (name, status, code) in [
        ("b\u{43e}b", 409, "name_resembles"),
        ("BOB", 409, "name_taken"),
        ("Support", 409, "name_resembles"),
        ("Deleted account", 409, "name_resembles"),
        ("  ", 422, "bad_name"),
        ("A\u{200b}nn", 422, "bad_name"),
    ] {
        assert_eq!(rename(&app, &ann, name).await.refused(status), code, "{name}");
    }
    let done = rename(&app, &ann, " Anna Lee ").await.ok(200);
    assert_eq!(done, json!({"uid": ann.uid, "name": "Anna Lee"}));
    assert_eq!(app.get(&bob, &format!("/api/v1/users/{}", ann.uid)).await.ok(200)["name"], "Anna Lee");
    assert_eq!(app.get(&ann, "/api/v1/me").await.ok(200)["name"], "Anna Lee");
    assert_eq!(app.get(&bob, "/api/v1/users?name=lee").await.ok(200)[0]["uid"], ann.uid);
    assert_eq!((log_in(&app, "anna lee").await, log_in(&app, "Ann").await), (201, 401));

    let again = rename(&app, &ann, "Anne").await;
    assert_eq!(again.refused(429), "renamed_lately");
    assert_eq!(again.header("retry-after"), (DAY.as_secs() * 7).to_string());
    assert_eq!(rename(&app, &bob, "Ann").await.refused(409), "name_resembles");
    let body = json!({"name": "ann", "password": "correct horse"});
    assert_eq!(app.post_as_nobody("/api/v1/accounts", body).await.refused(409), "name_resembles");
    app.pass(DAY * 6).await;
    assert_eq!(rename(&app, &ann, "Anne").await.refused(429), "renamed_lately");
    app.pass(DAY).await;
    rename(&app, &ann, "Anne").await.ok(200);
}

#[tokio::test]
async fn devices_that_watch_somebody_and_the_own_ones_are_told_of_another_name() {
    let app = TestApp::start().await;
    let (ann, bob, cat) = (app.sign_up("Ann").await, app.sign_up("Bob").await, app.sign_up("Cat").await);
    let mut own = app.socket(&ann).await;
    own.begin().await;
    let mut watching = app.socket(&bob).await;
    watching.begin().await;
    watching.send(&json!({"type": "presence", "of": [ann.uid]})).await;
    watching.expect("presence").await;
    let mut other = app.socket(&cat).await;
    other.begin().await;
    rename(&app, &ann, "Anna").await.ok(200);
    for socket in [&mut own, &mut watching] {
        assert_eq!(socket.expect("person").await, json!({"type": "person", "uid": ann.uid}));
    }
    assert_eq!(other.only_answer_to(0).await["type"], "alive", "whoever watches nobody is told nothing");
}
