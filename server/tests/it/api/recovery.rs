//! Recovery codes, invitations to sign up, names of devices.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tidemark::app::SignUp;

use crate::support::{Answer, Person, TestApp};

async fn make(app: &TestApp, body: Value) -> (Person, Vec<String>) {
    let made = app.post_as_nobody("/api/v1/accounts", body).await.ok(201);
    let text = |field: &str| made[field].as_str().expect("a text").to_owned();
    let codes = serde_json::from_value(made["recovery_codes"].clone()).expect("texts");
    let uid = made["uid"].as_u64().expect("a number");
    (Person { uid, name: text("name"), token: text("token") }, codes)
}

async fn recover(app: &TestApp, name: &str, code: &str, password: &str) -> Answer {
    let body = json!({"name": name, "code": code, "password": password});
    app.post_as_nobody("/api/v1/recovery", body).await
}

async fn log_in(app: &TestApp, password: &str) -> Answer {
    app.post_as_nobody("/api/v1/sessions", json!({"name": "ann", "password": password})).await
}

#[tokio::test]
async fn a_recovery_code_sets_another_password_once_and_ends_all_sessions() {
    let mut app = TestApp::start().await;
    let (ann, codes) = make(&app, json!({"name": "Ann", "password": "correct horse"})).await;
    let (bob, of_bob) = make(&app, json!({"name": "Bob", "password": "correct horse"})).await;
    assert_eq!((codes.len(), of_bob.len()), (8, 8));
    let mut socket = app.socket(&ann).await;
    socket.begin().await;
    app.restart().await;
    let mut socket = app.socket(&ann).await;
    socket.begin().await;
    for (name, code) in
        [("ann", of_bob[0].as_str()), ("bob", &codes[0]), ("nobody", &codes[0]), ("ann", ""), ("ann", "x")]
    {
        let refused = recover(&app, name, code, "battery staple").await;
        assert_eq!(refused.refused(401), "wrong_recovery_code", "{name} {code}");
    }
    assert_eq!(recover(&app, "ann", &codes[0], "short").await.refused(422), "bad_password");
    let typed = codes[0].to_lowercase().replace('-', " ");
    let back = recover(&app, " ANN ", &typed, "battery staple").await.ok(201);
    assert_eq!(socket.closed().await, 4401);
    app.get(&ann, "/api/v1/me").await.refused(401);
    app.get(&bob, "/api/v1/me").await.ok(200);
    let ann = Person { token: back["token"].as_str().expect("a token").to_owned(), ..ann };
    app.get(&ann, "/api/v1/me").await.ok(200);
    log_in(&app, "correct horse").await.refused(401);
    log_in(&app, "battery staple").await.ok(201);
    assert_eq!(recover(&app, "ann", &codes[0], "correct horse").await.refused(401), "wrong_recovery_code");
    assert_eq!(app.get(&ann, "/api/v1/me/recovery-codes").await.ok(200), json!({"left": 7}));
    recover(&app, "ann", &codes[1], "correct horse").await.ok(201);
}

#[tokio::test]
async fn new_recovery_codes_are_made_by_who_knows_the_password_and_replace_the_old() {
    let app = TestApp::start_with(|config| config.limits.log_ins_per_name_per_minute = 1).await;
    let (ann, old) = make(&app, json!({"name": "ann", "password": "correct horse"})).await;
    let renew = async |password: &str| {
        app.post(&ann, "/api/v1/me/recovery-codes", json!({"password": password})).await
    };
    assert_eq!(renew("guess guess").await.refused(401), "wrong_credentials");
    let new: Vec<String> =
        serde_json::from_value(renew("correct horse").await.ok(201)["codes"].clone()).expect("texts");
    assert_eq!(new.len(), 8);
    recover(&app, "ann", &old[0], "battery staple").await.refused(401);
    for _ in 0..8 {
        renew("guess guess").await.refused(401);
    }
    assert_eq!(renew("correct horse").await.refused(429), "rate_limited", "guesses count");
    recover(&app, "ann", &new[7], "battery staple").await.ok(201);
}

#[tokio::test]
async fn guesses_of_recovery_codes_count_as_attempts_to_log_in() {
    let app = TestApp::start_with(|config| config.limits.log_ins_per_name_per_minute = 1).await;
    let (_, codes) = make(&app, json!({"name": "ann", "password": "correct horse"})).await;
    for _ in 0..10 {
        recover(&app, "ann", "0000-0000-0000-0000", "battery staple").await.refused(401);
    }
    assert_eq!(recover(&app, "ann", &codes[0], "battery staple").await.refused(429), "rate_limited");
}

#[tokio::test]
async fn where_sign_up_is_by_invitation_a_link_lets_as_many_in_as_it_is_for() {
    let app = TestApp::start_with(|config| config.accounts.open_invites = 2).await;
    let ann = app.sign_up("ann").await;
    let mut app = app;
    app.config.accounts.sign_up = SignUp::Invitation;
    app.restart().await;
    let sign_up = async |app: &TestApp, name: &str, invite: Option<&str>| {
        let body = json!({"name": name, "password": "correct horse", "invite": invite});
        app.post_as_nobody("/api/v1/accounts", body).await
    };
    for none in [None, Some(""), Some("nonsense")] {
        assert_eq!(sign_up(&app, "bob", none).await.refused(403), "not_invited", "{none:?}");
    }
    let invite = async |body: Value| app.post(&ann, "/api/v1/sign-up-invites", body).await;
    for terms in [json!({"uses": 0}), json!({"uses": 11}), json!({"expires_in_seconds": 59})] {
        assert_eq!(invite(terms).await.refused(422), "bad_terms");
    }
    let made = invite(json!({"uses": 2})).await.ok(201);
    let code = made["code"].as_str().expect("a code");
    assert_eq!(made["path"], format!("/sign-up?invite={code}"));
    let page =
        app.send(app.request(Method::GET, &format!("/sign-up?invite={code}&next=/c/u:{}", ann.uid))).await;
    assert!(page.text.contains("new-password") && page.text.contains(code), "{}", page.text);
    for path in ["/sign-up", "/login"] {
        let page = app.send(app.request(Method::GET, path)).await.text;
        assert!(page.contains("you need an invitation") && !page.contains("new-password"), "{page}");
    }
    let list = async |app: &TestApp| app.get(&ann, "/api/v1/sign-up-invites").await.ok(200);
    assert_eq!(list(&app).await[0]["uses_left"], 2);
    assert!(!list(&app).await.to_string().contains(code), "the code is shown once");
    sign_up(&app, "bob", Some(code)).await.ok(201);
    assert_eq!(sign_up(&app, "BOB", Some(code)).await.refused(409), "name_taken");
    sign_up(&app, "cem", Some(code)).await.ok(201);
    assert_eq!(sign_up(&app, "dee", Some(code)).await.refused(403), "not_invited");
    assert_eq!(list(&app).await, json!([]));

    let ended = invite(json!({})).await.ok(201);
    let expired = invite(json!({"expires_in_seconds": 60})).await.ok(201);
    assert_eq!(invite(json!({})).await.refused(422), "too_many_invites");
    let bob = app.log_in("bob").await;
    let path = format!("/api/v1/sign-up-invites/{}", ended["id"].as_str().expect("an id"));
    assert_eq!(app.delete(&bob, &path).await.refused(404), "unknown_invite");
    app.delete(&ann, &path).await.ok(204);
    app.pass(Duration::from_secs(60)).await;
    for over in [ended, expired] {
        assert_eq!(sign_up(&app, "dee", over["code"].as_str()).await.refused(403), "not_invited");
    }
    app.config.accounts.sign_up = SignUp::Closed;
    app.restart().await;
    let refused = app.post(&ann, "/api/v1/sign-up-invites", json!({})).await;
    assert_eq!(refused.refused(403), "sign_up_closed");
}

#[tokio::test]
async fn an_invitation_to_sign_up_that_is_made_under_a_key_is_made_once() {
    let mut app = TestApp::start_with(|config| config.accounts.open_invites = 1).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.config.accounts.sign_up = SignUp::Invitation;
    app.restart().await;
    let make = async |app: &TestApp, by: &Person, key: u128, terms: Value| {
        let request = app.request(Method::POST, "/api/v1/sign-up-invites");
        let request = request.header("idempotency-key", crate::support::client_id(key));
        app.send(request.bearer_auth(&by.token).json(&terms)).await
    };
    let terms = json!({"uses": 2, "expires_in_seconds": 120});
    let made = make(&app, &ann, 7, terms.clone()).await.ok(201);
    assert_eq!(make(&app, &ann, 8, terms.clone()).await.refused(422), "too_many_invites");
    app.restart().await;
    app.pass(Duration::from_secs(60)).await;
    let code = made["code"].as_str().expect("a code");
    let body = json!({"name": "cem", "password": "correct horse", "invite": code});
    app.post_as_nobody("/api/v1/accounts", body).await.ok(201);
    assert_eq!(
        make(&app, &ann, 7, terms.clone()).await.ok(201),
        made,
        "the first answer, whatever happened since"
    );
    for other in [json!({"uses": 1, "expires_in_seconds": 120}), json!({"uses": 2})] {
        assert_eq!(make(&app, &ann, 7, other).await.refused(409), "client_id_reused");
    }
    let of_bob = make(&app, &bob, 7, terms.clone()).await.ok(201);
    assert_ne!(of_bob["code"], made["code"], "keys of two people have nothing to do with each other");
    let listed = app.get(&ann, "/api/v1/sign-up-invites").await.ok(200);
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["uses_left"]), (Some(1), &json!(1)));
    let path = format!("/api/v1/sign-up-invites/{}", made["id"].as_str().expect("an id"));
    app.delete(&ann, &path).await.ok(204);
    assert_ne!(
        make(&app, &ann, 7, terms).await.ok(201)["expires_at"],
        made["expires_at"],
        "the first is gone"
    );
}

#[tokio::test]
async fn a_device_has_the_name_of_its_browser_until_its_owner_says_otherwise() {
    let app = TestApp::start().await;
    app.sign_up("ann").await;
    let body = json!({"name": "ann", "password": "correct horse"});
    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    let made = app.request(Method::POST, "/api/v1/sessions").header("user-agent", agent).json(&body);
    let made = app.send(made).await.ok(201);
    let token = made["token"].as_str().expect("a token").to_owned();
    let ann = Person { uid: 10_001, name: "ann".to_owned(), token };
    let current = async || {
        let listed = app.get(&ann, "/api/v1/sessions").await.ok(200);
        let listed = listed.as_array().expect("a list").clone();
        listed.into_iter().find(|session| session["current"] == true).expect("this one")
    };
    let session = current().await;
    assert_eq!(session["name"], "Firefox on Linux");
    let path = format!("/api/v1/sessions/{}", session["id"].as_str().expect("an id"));
    for bad in ["", "  ", "a\u{202e}b", &"x".repeat(61)] {
        assert_eq!(app.put(&ann, &path, json!({"name": bad})).await.refused(422), "bad_device_name");
    }
    app.put(&ann, &path, json!({"name": " The laptop "})).await.ok(204);
    assert_eq!(current().await["name"], "The laptop");
    let bob = app.sign_up("bob").await;
    assert_eq!(app.put(&bob, &path, json!({"name": "mine"})).await.refused(404), "unknown_session");
}
