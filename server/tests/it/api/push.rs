//! Subscriptions to push: what is taken, what is refused, and when they end. `push` (beside `api`) has what is sent.

use serde_json::{Value, json};

use crate::support::{Person, TestApp};

const PATH: &str = "/api/v1/sessions/current/push";
const P256DH: &str =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

fn subscription(endpoint: &str) -> Value {
    json!({"endpoint": endpoint, "expirationTime": null, "keys": {"p256dh": P256DH, "auth": AUTH}})
}

async fn endpoint(app: &TestApp, who: &Person) -> Value {
    app.get(who, PATH).await.ok(200)["endpoint"].clone()
}

#[tokio::test]
async fn a_session_has_one_subscription_which_ends_with_it() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    app.say(&ann, &ann, 1, "a note").await;
    let state = app.get(&ann, PATH).await.ok(200);
    assert_eq!(state["key"].as_str().map(str::len), Some(87), "{state}");
    let me = app.get(&ann, "/api/v1/seq").await.ok(200);
    assert_eq!((&state["endpoint"], &state["seq"]), (&Value::Null, &me["seq"]));
    assert_eq!((&state["history"], &state["expired_to"]), (&me["history"], &json!(0)));

    for name in ["one", "other"] {
        let address = format!("https://push.example.org/{name}");
        app.put(&ann, PATH, subscription(&address)).await.ok(204);
        assert_eq!(endpoint(&app, &ann).await, address);
    }
    let phone = app.log_in("ann").await;
    assert_eq!(endpoint(&app, &phone).await, Value::Null, "it is another device");
    app.put(&phone, PATH, subscription("https://push.example.org/phone")).await.ok(204);
    // The same browser, in which somebody has logged in anew.
    app.put(&phone, PATH, subscription("https://push.example.org/other")).await.ok(204);
    assert_eq!(endpoint(&app, &ann).await, Value::Null);
    for _ in 0..2 {
        app.delete(&phone, PATH).await.ok(204);
    }
    assert_eq!(endpoint(&app, &phone).await, Value::Null);

    app.put(&phone, PATH, subscription("https://push.example.org/phone")).await.ok(204);
    app.delete(&phone, "/api/v1/sessions/current").await.ok(204);
    assert_eq!(app.get(&phone, PATH).await.refused(401), "unauthorized");
    assert_eq!(app.put(&phone, PATH, subscription("https://a.example/x")).await.refused(401), "unauthorized");
}

#[tokio::test]
async fn what_is_no_subscription_is_refused() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let long = format!("https://push.example.org/{}", "x".repeat(1_024));
    for bad in [
        "",
        "http://push.example.org/x",
        "https://127.0.0.1/x",
        "https://[::ffff:10.0.0.1]/x",
        "https://localhost:8443/x",
        "https://ann:secret@push.example.org/x",
        &long,
    ] {
        assert_eq!(app.put(&ann, PATH, subscription(bad)).await.refused(422), "bad_push_endpoint", "{bad}");
    }
    for (p256dh, auth) in [("", AUTH), (P256DH, ""), (&P256DH[1..], AUTH), ("!", "!")] {
        let body =
            json!({"endpoint": "https://push.example.org/x", "keys": {"p256dh": p256dh, "auth": auth}});
        assert_eq!(app.put(&ann, PATH, body).await.refused(422), "bad_push_keys", "{p256dh} {auth}");
    }
    let without_keys = json!({"endpoint": "https://push.example.org/x"});
    assert_eq!(app.put(&ann, PATH, without_keys).await.refused(422), "invalid_body");
    assert_eq!(endpoint(&app, &ann).await, Value::Null, "nothing of it is kept");
}

#[tokio::test]
async fn where_push_is_switched_off_nobody_subscribes() {
    let app = TestApp::start_with(|config| config.push.enabled = false).await;
    let ann = app.sign_up("ann").await;
    assert_eq!(app.get(&ann, PATH).await.ok(200)["key"], Value::Null);
    let refused = app.put(&ann, PATH, subscription("https://push.example.org/x")).await;
    assert_eq!(refused.refused(403), "push_off");
    app.delete(&ann, PATH).await.ok(204);
}
