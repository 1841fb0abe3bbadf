//! An account that its owner deletes: what ends at once, what is taken back from others, and what stays.

use serde_json::{Value, json};
use tidemark_test_support::until::until;

use crate::support::{Person, TestApp, client_id, message, texts};

const LOGGED_OUT: u16 = 4401;

async fn befriend(app: &TestApp, one: &Person, other: &Person) {
    for (who, with) in [(one, other), (other, one)] {
        let body = json!({"client_id": client_id(1_000 + u128::from(with.uid)), "wanted": true});
        app.put(who, &format!("/api/v1/friends/{}", with.uid), body).await.ok(201);
    }
}

async fn delete(app: &TestApp, who: &Person) {
    app.post(who, "/api/v1/me/delete", json!({"password": "correct horse"})).await.ok(204);
}

/// The rows of a person's feed, oldest first: kind and sender.
async fn feed(app: &TestApp, who: &Person) -> Vec<(String, u64)> {
    let page = app.get(who, "/api/v1/moments").await.ok(200);
    let line = |row: &Value| {
        let kind = row["kind"].as_str().expect("a kind").to_owned();
        (kind, row["sender"].as_u64().expect("a uid"))
    };
    page["rows"].as_array().expect("rows").iter().rev().map(line).collect()
}

#[tokio::test]
async fn the_password_ends_the_account_and_everything_that_opens_it() {
    let app = TestApp::start().await;
    let made = json!({"name": "ann", "password": "correct horse"});
    let made = app.post_as_nobody("/api/v1/accounts", made).await.ok(201);
    let code = made["recovery_codes"][0].clone();
    let ann = app.log_in("ann").await;
    let mut socket = app.socket(&ann).await;
    socket.begin().await;
    let wrong = app.post(&ann, "/api/v1/me/delete", json!({"password": "wrong horse"})).await;
    assert_eq!(wrong.refused(401), "wrong_credentials");
    let none = app.post(&ann, "/api/v1/me/delete", json!({})).await;
    assert_eq!(none.refused(422), "invalid_body");
    app.get(&ann, "/api/v1/me").await.ok(200);

    let deleted = app.post(&ann, "/api/v1/me/delete", json!({"password": "correct horse"})).await;
    deleted.ok(204);
    assert!(deleted.header("set-cookie").contains("Max-Age=0"), "{:?}", deleted.headers);
    assert_eq!(socket.closed().await, LOGGED_OUT);
    assert_eq!(app.get(&ann, "/api/v1/me").await.refused(401), "unauthorized");
    let log_in = json!({"name": "ann", "password": "correct horse"});
    assert_eq!(app.post_as_nobody("/api/v1/sessions", log_in).await.refused(401), "wrong_credentials");
    let recover = json!({"name": "ann", "code": code, "password": "battery staple"});
    assert_eq!(app.post_as_nobody("/api/v1/recovery", recover).await.refused(401), "wrong_recovery_code");
    for (name, code) in [("ANN", "name_taken"), ("deleted account", "name_resembles")] {
        let again = json!({"name": name, "password": "correct horse"});
        assert_eq!(app.post_as_nobody("/api/v1/accounts", again).await.refused(409), code);
    }
}

#[tokio::test]
async fn attempts_to_delete_are_counted_like_attempts_to_log_in() {
    let app = TestApp::start_with(|config| config.limits.log_ins_per_name_per_minute = 1).await;
    let ann = app.sign_up("ann").await;
    for _ in 0..10 {
        let wrong = app.post(&ann, "/api/v1/me/delete", json!({"password": "wrong horse"})).await;
        assert_eq!(wrong.refused(401), "wrong_credentials");
    }
    let right = app.post(&ann, "/api/v1/me/delete", json!({"password": "correct horse"})).await;
    assert_eq!(right.refused(429), "rate_limited");
}

#[tokio::test]
async fn what_is_for_a_deleted_account_is_refused_by_one_code_and_what_it_said_can_be_read() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let privacy = json!({"client_id": client_id(1), "value": {"write": "friends", "groups": "friends"}});
    app.put(&ann, "/api/v1/settings/privacy", privacy).await.ok(201);
    let said = app.say(&ann, &bob, 2, "hello").await;
    let gid = app.post(&bob, "/api/v1/groups", json!({"name": "us"})).await.ok(201)["gid"].clone();
    delete(&app, &ann).await;

    let to_ann = message(3, json!({"user": ann.uid}), "are you there?");
    assert_eq!(app.post(&bob, "/api/v1/messages", to_ann).await.refused(410), "account_deleted");
    let wish = json!({"client_id": client_id(4), "wanted": true});
    let path = format!("/api/v1/friends/{}", ann.uid);
    assert_eq!(app.put(&bob, &path, wish).await.refused(410), "account_deleted");
    let group = json!({"name": "both", "members": [ann.uid]});
    assert_eq!(app.post(&bob, "/api/v1/groups", group).await.refused(410), "account_deleted");
    let add = app.post(&bob, &format!("/api/v1/groups/{gid}/members"), json!({"uid": ann.uid})).await;
    assert_eq!(add.refused(410), "account_deleted");
    let conversation = format!("/api/v1/conversations/u:{}", ann.uid);
    let react = json!({"client_id": client_id(5), "emoji": ["👍"]});
    let react = app.post(&bob, &format!("{conversation}/messages/{said}/reaction"), react).await;
    assert_eq!(react.refused(410), "account_deleted");

    let shown = json!({"uid": ann.uid, "name": "Deleted account", "deleted": true});
    assert_eq!(app.get(&bob, &format!("/api/v1/users/{}", ann.uid)).await.ok(200), shown);
    let several = app.get(&bob, &format!("/api/v1/profiles?uids={},{}", ann.uid, bob.uid)).await.ok(200);
    assert_eq!(several, json!([shown, {"uid": bob.uid, "name": "bob"}]));
    assert_eq!(app.get(&bob, "/api/v1/users?name=ann").await.ok(200), json!([]));
    let list = app.get(&bob, "/api/v1/conversations").await.ok(200);
    let line = list.as_array().expect("lines").iter().find(|line| line["id"] == format!("u:{}", ann.uid));
    let line = line.expect("still listed");
    assert_eq!((&line["title"], &line["deleted"]), (&json!("Deleted account"), &json!(true)));
    let page = app.get(&bob, &format!("{conversation}/messages")).await.ok(200);
    assert_eq!(texts(page["rows"].as_array().expect("rows")), ["hello"]);
    // Actions that concern the own device alone go on.
    let copy = page["rows"][0]["message_id"].clone();
    app.put(&bob, &format!("{conversation}/read"), json!({"message_id": copy})).await.ok(204);
    let mute = json!({"client_id": client_id(6), "value": {}});
    app.put(&bob, &format!("{conversation}/settings/mute"), mute).await.ok(201);
    let own = json!({"client_id": client_id(7)});
    app.post(&bob, &format!("{conversation}/messages/{copy}/delete"), own).await.ok(201);
}

#[tokio::test]
async fn what_others_have_of_a_deleted_account_is_taken_back() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let (bob, cat, dan) = (app.sign_up("bob").await, app.sign_up("cat").await, app.sign_up("dan").await);
    for (one, other) in [(&ann, &bob), (&ann, &cat), (&bob, &cat)] {
        befriend(&app, one, other).await;
    }
    let post = async |who: &Person, n: u128| {
        let body = json!({"client_id": client_id(n), "text": "sun"});
        app.post(who, "/api/v1/moments", body).await.ok(201)["message_id"].as_u64().expect("an id")
    };
    post(&ann, 1).await;
    post(&bob, 2).await;
    let of_bob = app.rows(&ann).await.into_iter().rfind(|row| row["kind"] == "moment").expect("his");
    let path = format!("/api/v1/moments/{}", of_bob["message_id"]);
    let like = json!({"client_id": client_id(3), "liked": true});
    app.put(&ann, &format!("{path}/like"), like).await.ok(201);
    let comment = json!({"client_id": client_id(4), "text": "rain"});
    app.post(&ann, &format!("{path}/comments"), comment).await.ok(201);
    app.say(&ann, &bob, 5, "hello").await;
    let group = json!({"name": "us", "members": [bob.uid, cat.uid]});
    let gid = app.post(&ann, "/api/v1/groups", group).await.ok(201)["gid"].clone();
    app.post(&cat, "/api/v1/groups", json!({"name": "hers", "members": [ann.uid]})).await.ok(201);
    let alone = app.post(&ann, "/api/v1/groups", json!({"name": "alone"})).await.ok(201)["gid"].clone();
    let made = app.post(&ann, &format!("/api/v1/groups/{gid}/invites"), json!({})).await.ok(201);
    let invite = format!("/api/v1/invites/{}", made["code"].as_str().expect("a code"));
    delete(&app, &ann).await;

    // A server that starts again goes on.
    app.restart().await;
    until("it is in no group", async || {
        let rows = app.rows(&cat).await;
        rows.iter().filter(|row| row["body"]["action"] == "left" && row["sender"] == ann.uid).count() == 2
    })
    .await;
    let shown = app.get(&bob, &format!("/api/v1/groups/{gid}")).await.ok(200);
    let members: Vec<_> =
        shown["members"].as_array().expect("a list").iter().map(|one| &one["uid"]).collect();
    assert_eq!((&shown["role"], members), (&json!("owner"), vec![&json!(bob.uid), &json!(cat.uid)]));
    assert_eq!(app.post(&dan, &invite, json!({})).await.refused(410), "expired_invite");
    assert_eq!(app.get(&bob, &format!("/api/v1/groups/{alone}")).await.refused(404), "unknown_group");

    let friends = app.get(&bob, "/api/v1/friends").await.ok(200);
    let of_ann = friends["friends"].as_array().expect("a list").iter().find(|one| one["uid"] == ann.uid);
    let of_ann = of_ann.expect("his wish stands");
    assert_eq!((&of_ann["theirs"], &of_ann["deleted"]), (&json!(false), &json!(true)));
    let told = app.rows(&bob).await;
    let ended = told.iter().find(|row| row["kind"] == "friend" && row["sender"] == ann.uid).expect("told");
    assert_eq!(ended["body"], json!({"wanted": false, "deleted": true}));
    // He takes his own wish back, which tells nobody.
    let take_back = json!({"client_id": client_id(6), "wanted": false});
    app.put(&bob, &format!("/api/v1/friends/{}", ann.uid), take_back).await.ok(201);

    let kinds = |kind: &str, who: &Person| (kind.to_owned(), who.uid);
    for friend in [&bob, &cat] {
        let feed = feed(&app, friend).await;
        assert!(
            !feed.contains(&kinds("moment", &ann)) && !feed.contains(&kinds("comment", &ann)),
            "{feed:?}"
        );
        assert!(feed.contains(&kinds("moment", &bob)), "{feed:?}");
        let rows = app.rows(friend).await;
        let like = rows.iter().find(|row| row["kind"] == "like").expect("of Ann");
        assert_eq!((&like["sender"], &like["body"]["liked"]), (&json!(ann.uid), &json!(false)));
    }
    assert!(texts(&app.rows(&bob).await).contains(&"hello"), "a message stays");
}
