//! Friends, blocks, and who may write to whom.

use serde_json::{Value, json};

use crate::support::{Person, TestApp, client_id, message};

async fn wish(app: &TestApp, who: &Person, other: &Person, n: u128, wanted: bool) -> crate::support::Answer {
    let body = json!({"client_id": client_id(n), "wanted": wanted, "text": "hello"});
    app.put(who, &format!("/api/v1/friends/{}", other.uid), body).await
}

async fn friends(app: &TestApp, who: &Person) -> Vec<(String, bool, bool)> {
    let page = app.get(who, "/api/v1/friends").await.ok(200);
    let line = |line: &Value| {
        let is = |name: &str| line[name].as_bool().expect("a boolean");
        (line["name"].as_str().expect("a name").to_owned(), is("mine"), is("theirs"))
    };
    page["friends"].as_array().expect("a list").iter().map(line).collect()
}

fn rows_of<'a>(rows: &'a [Value], kind: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["kind"] == kind).collect()
}

fn line(name: &str, mine: bool, theirs: bool) -> (String, bool, bool) {
    (name.to_owned(), mine, theirs)
}

#[tokio::test]
async fn friends_are_two_who_both_want_it() {
    let mut app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let asked = wish(&app, &ann, &bob, 1, true).await.ok(201);
    assert_eq!(wish(&app, &ann, &bob, 1, true).await.ok(200), asked);
    assert_eq!(friends(&app, &ann).await, [line("bob", true, false)]);
    assert_eq!(friends(&app, &bob).await, [line("ann", false, true)]);
    let told = app.rows(&bob).await;
    assert_eq!(told[0]["body"], json!({"wanted": true, "text": "hello"}));
    assert_eq!(
        (&told[0]["kind"], &told[0]["conversation"]),
        (&json!("friend"), &json!(format!("u:{}", ann.uid)))
    );
    wish(&app, &bob, &ann, 1, true).await.ok(201);
    app.restart().await;
    assert_eq!(friends(&app, &ann).await, [line("bob", true, true)]);
    assert_eq!(friends(&app, &bob).await, [line("ann", true, true)]);

    wish(&app, &bob, &ann, 2, false).await.ok(201);
    assert_eq!(friends(&app, &ann).await, [line("bob", true, false)]);
    wish(&app, &ann, &bob, 2, false).await.ok(201);
    assert_eq!(friends(&app, &ann).await, []);
    // The wishes of both are two rows, however often they change.
    for n in 3..13 {
        wish(&app, &ann, &bob, n, n % 2 == 1).await.ok(201);
    }
    assert_eq!(rows_of(&app.rows(&bob).await, "friend").len(), 2);
}

#[tokio::test]
async fn a_declined_request_stays_a_matter_of_who_declines() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    wish(&app, &ann, &bob, 1, true).await.ok(201);
    wish(&app, &bob, &ann, 1, false).await.ok(201);
    assert_eq!(rows_of(&app.rows(&ann).await, "friend").len(), 1);
    assert_eq!(friends(&app, &ann).await, [line("bob", true, false)]);
}

#[tokio::test]
async fn asking_again_tells_nobody_anything() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let asked = wish(&app, &ann, &bob, 1, true).await.ok(201);
    wish(&app, &bob, &ann, 1, false).await.ok(201);
    let before = app.rows(&bob).await;
    assert_eq!(wish(&app, &ann, &bob, 2, true).await.ok(200)["message_id"], asked["message_id"]);
    assert_eq!(app.rows(&bob).await, before);
    // Taking the request back does.
    wish(&app, &ann, &bob, 3, false).await.ok(201);
    assert_eq!(friends(&app, &bob).await, []);
}

/// A hidden friend cannot be taken back, so it must not count.
#[tokio::test]
async fn friends_whose_accounts_are_deleted_leave_room_for_others() {
    let app = TestApp::start_with(|config| config.limits.friends = 1).await;
    let (ann, bob, cat) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("cat").await);
    wish(&app, &ann, &bob, 1, true).await.ok(201);
    assert_eq!(wish(&app, &ann, &cat, 2, true).await.refused(422), "too_many_friends");
    app.post(&bob, "/api/v1/me/delete", json!({"password": "correct horse"})).await.ok(204);
    wish(&app, &ann, &cat, 2, true).await.ok(201);
}

#[tokio::test]
async fn a_wish_that_cannot_be_is_refused_by_its_reason() {
    let app = TestApp::start_with(|config| config.limits.friends = 2).await;
    let ann = app.sign_up("ann").await;
    let others = [app.sign_up("bob").await, app.sign_up("cat").await, app.sign_up("dan").await];
    assert_eq!(wish(&app, &ann, &ann, 1, true).await.refused(404), "unknown_user");
    let path = "/api/v1/friends/77";
    let body = json!({"client_id": client_id(1), "wanted": true});
    assert_eq!(app.put(&ann, path, body).await.refused(404), "unknown_user");
    let body = json!({"client_id": client_id(1), "wanted": true, "text": "a".repeat(201)});
    assert_eq!(
        app.put(&ann, &format!("/api/v1/friends/{}", others[0].uid), body).await.refused(422),
        "greeting_too_long"
    );
    wish(&app, &ann, &others[0], 1, true).await.ok(201);
    wish(&app, &ann, &others[1], 2, true).await.ok(201);
    assert_eq!(wish(&app, &ann, &others[2], 3, true).await.refused(422), "too_many_friends");
    wish(&app, &ann, &others[1], 4, false).await.ok(201);
    wish(&app, &ann, &others[2], 5, true).await.ok(201);
}

async fn set(app: &TestApp, who: &Person, path: &str, n: u128, value: Value) {
    app.put(who, path, json!({"client_id": client_id(n), "value": value})).await.ok(201);
}

#[tokio::test]
async fn after_a_block_neither_reaches_the_other_and_is_told_so() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let own = app.say(&bob, &ann, 1, "hi").await;
    let block = format!("/api/v1/conversations/u:{}/settings/block", bob.uid);
    set(&app, &ann, &block, 1, json!({"blocked": true})).await;
    let to_ann = json!({"user": ann.uid});
    let send = async |n| app.post(&bob, "/api/v1/messages", message(n, to_ann.clone(), "hello?")).await;
    assert_eq!(send(2).await.refused(403), "blocked");
    assert_eq!(wish(&app, &bob, &ann, 3, true).await.refused(403), "blocked");
    let at = |what: &str| format!("/api/v1/conversations/u:{}/messages/{own}/{what}", ann.uid);
    let edit = json!({"client_id": client_id(4), "body": {"text": "hello"}});
    assert_eq!(app.post(&bob, &at("edit"), edit).await.refused(403), "blocked");
    // A sent message can be taken back, and a send that is repeated still gets the first answer.
    app.post(&bob, &at("recall"), json!({"client_id": client_id(5)})).await.ok(201);
    app.post(&bob, "/api/v1/messages", message(1, to_ann.clone(), "hi")).await.ok(200);
    // In groups both hear each other; here the one who blocks writes to nobody, either.
    let to_bob = json!({"user": bob.uid});
    let write = async |n| app.post(&ann, "/api/v1/messages", message(n, to_bob.clone(), "no")).await;
    assert_eq!(write(2).await.refused(403), "blocks");
    assert_eq!(wish(&app, &ann, &bob, 6, true).await.refused(403), "blocks");
    let thumb = json!({"client_id": client_id(7), "emoji": ["👍"]});
    let react = format!("/api/v1/conversations/u:{}/messages/1/reaction", bob.uid);
    assert_eq!(app.post(&ann, &react, thumb).await.refused(403), "blocks");
    set(&app, &ann, &block, 3, Value::Null).await;
    write(4).await.ok(201);
    send(6).await.ok(201);
}

#[tokio::test]
async fn one_who_hears_friends_alone_is_written_to_by_friends_alone() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    set(&app, &ann, "/api/v1/settings/privacy", 1, json!({"write": "friends"})).await;
    let send = async |n| app.post(&bob, "/api/v1/messages", message(n, json!({"user": ann.uid}), "hi")).await;
    assert_eq!(send(1).await.refused(403), "friends_only");
    wish(&app, &bob, &ann, 2, true).await.ok(201);
    assert_eq!(send(3).await.refused(403), "friends_only");
    wish(&app, &ann, &bob, 2, true).await.ok(201);
    send(4).await.ok(201);
    wish(&app, &ann, &bob, 3, false).await.ok(201);
    assert_eq!(send(5).await.refused(403), "friends_only");
    app.say(&ann, &ann, 9, "a note to oneself").await;
    set(&app, &ann, "/api/v1/settings/privacy", 4, Value::Null).await;
    send(6).await.ok(201);
}

#[tokio::test]
async fn an_account_writes_to_few_strangers_a_day() {
    let app = TestApp::start_with(|config| config.limits.first_messages_per_account_per_day = 2).await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let (max, known, friend) =
        (app.sign_up("max").await, app.sign_up("known").await, app.sign_up("friend").await);
    let write = async |to: &Person, n: u128| {
        app.post(&ann, "/api/v1/messages", message(n, json!({"user": to.uid}), "hello")).await
    };
    app.say(&known, &ann, 1, "it is me").await;
    for (n, wanted) in [(2, &ann), (3, &friend)] {
        let other = if n == 2 { &friend } else { &ann };
        wish(&app, wanted, other, n, true).await.ok(201);
    }
    // Neither a request nor a setting makes anybody known.
    wish(&app, &ann, &max, 4, true).await.ok(201);
    let muted = json!({"client_id": client_id(5), "value": {}});
    app.put(&ann, &format!("/api/v1/conversations/u:{}/settings/mute", max.uid), muted).await.ok(201);

    write(&bob, 11).await.ok(201);
    write(&bob, 11).await.ok(200);
    for n in 12..16 {
        write(&bob, n).await.ok(201);
    }
    write(&ann, 16).await.ok(201);
    let nobody = message(17, json!({"user": 4_000_000}), "hello");
    assert_eq!(app.post(&ann, "/api/v1/messages", nobody).await.refused(404), "unknown_user");
    let empty = message(18, json!({"user": eve.uid}), "");
    assert_eq!(app.post(&ann, "/api/v1/messages", empty.clone()).await.refused(422), "text_empty");
    write(&eve, 19).await.ok(201);
    let refused = write(&max, 20).await;
    assert_eq!(refused.refused(429), "too_many_first_messages");
    assert_eq!(refused.json()["retryable"], false);
    for (to, n) in [(&known, 21), (&friend, 22), (&bob, 23), (&eve, 24)] {
        write(to, n).await.ok(201);
    }
    app.say(&max, &ann, 25, "write to me").await;
    write(&max, 26).await.ok(201);
    app.pass(std::time::Duration::from_secs(86_400)).await;
    write(&bob, 27).await.ok(201);
}
