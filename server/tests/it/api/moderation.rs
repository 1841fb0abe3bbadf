//! What administrators do about members of their group: taking back messages, muting, slow mode.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Person, TestApp, client_id, message};

/// A group of Ann, who owns it, Bob, who is an administrator, and Eve; with its number.
async fn walkers(app: &TestApp) -> (Person, Person, Person, u64) {
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let made = json!({"name": "walkers", "members": [bob.uid, eve.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].as_u64().expect("a number");
    let path = format!("/api/v1/groups/{gid}/members/{}/role", bob.uid);
    app.put(&ann, &path, json!({"role": "administrator"})).await.ok(204);
    (ann, bob, eve, gid)
}

async fn say(app: &TestApp, who: &Person, gid: u64, n: u128, text: &str) -> Answer {
    app.post(who, "/api/v1/messages", message(n, json!({"group": gid}), text)).await
}

/// Takes back the message of the group that `who` has with this text.
async fn recall(app: &TestApp, who: &Person, gid: u64, n: u128, text: &str) -> Answer {
    let rows = app.rows(who).await;
    let row = rows.iter().find(|row| row["body"]["text"] == text).expect("a message");
    let path = format!("/api/v1/conversations/g:{gid}/messages/{}/recall", row["message_id"]);
    app.post(who, &path, json!({"client_id": client_id(n)})).await
}

async fn slow(app: &TestApp, who: &Person, gid: u64, seconds: u32) -> Answer {
    let request = app.request(Method::PATCH, &format!("/api/v1/groups/{gid}")).bearer_auth(&who.token);
    app.send(request.json(&json!({"slow_seconds": seconds}))).await
}

fn recalled(rows: &[Value]) -> Vec<Value> {
    rows.iter().filter(|row| row["kind"] == "recalled").map(|row| row["body"].clone()).collect()
}

#[tokio::test]
async fn administrators_take_back_any_message_of_their_group_at_any_time() {
    let mut app = TestApp::start().await;
    let (ann, bob, eve, gid) = walkers(&app).await;
    for (n, who, text) in [(1, &eve, "buy this"), (2, &ann, "no secrets"), (3, &bob, "mine")] {
        say(&app, who, gid, n, text).await.ok(201);
    }
    app.pass(Duration::from_secs(7 * 86_400)).await;
    assert_eq!(recall(&app, &eve, gid, 11, "no secrets").await.refused(403), "not_yours");
    assert_eq!(recall(&app, &eve, gid, 12, "buy this").await.refused(403), "too_late");
    let first = recall(&app, &bob, gid, 13, "buy this").await.ok(201);
    let edit = json!({"client_id": client_id(14), "body": {"text": "again"}});
    let row = &app.rows(&eve).await[2]["message_id"];
    let path = format!("/api/v1/conversations/g:{gid}/messages/{row}");
    assert_eq!(app.post(&eve, &format!("{path}/edit"), edit).await.refused(410), "recalled");
    // The owner's, too, as well as the administrator's own.
    recall(&app, &bob, gid, 15, "no secrets").await.ok(201);
    recall(&app, &bob, gid, 16, "mine").await.ok(201);
    app.restart().await;
    for who in [&ann, &bob, &eve] {
        let rows = app.rows(who).await;
        let by_bob = json!({"recalled": true, "by": bob.uid});
        assert_eq!(recalled(&rows), [by_bob.clone(), by_bob, json!({"recalled": true})]);
        assert!(rows.iter().all(|row| row["body"]["text"].is_null()), "{rows:?}");
        let list = app.get(who, "/api/v1/conversations").await.ok(200);
        assert_eq!((&list[0]["last"]["kind"], &list[0]["unread"]), (&json!("recalled"), &json!(0)));
    }
    let rows = app.rows(&bob).await;
    let own = rows.iter().find(|row| row["message_id"] == first["message_id"]).expect("the first recall");
    assert_eq!((&own["kind"], &own["sender"]), (&json!("recall"), &json!(bob.uid)));
}

#[tokio::test]
async fn whoever_is_no_administrator_any_more_takes_back_nothing_of_others() {
    let app = TestApp::start().await;
    let (ann, bob, eve, gid) = walkers(&app).await;
    say(&app, &eve, gid, 1, "hello").await.ok(201);
    let path = format!("/api/v1/groups/{gid}/members/{}/role", bob.uid);
    app.put(&ann, &path, json!({"role": "member"})).await.ok(204);
    assert_eq!(recall(&app, &bob, gid, 2, "hello").await.refused(403), "not_yours");
    app.say(&eve, &ann, 3, "to you alone").await;
    let rows = app.rows(&ann).await;
    let row = rows.iter().find(|row| row["body"]["text"] == "to you alone").expect("a message");
    let path = format!("/api/v1/conversations/u:{}/messages/{}/recall", eve.uid, row["message_id"]);
    let recall = app.post(&ann, &path, json!({"client_id": client_id(4)})).await;
    assert_eq!(recall.refused(403), "not_yours");
}

/// The newest change of the group in an inbox.
async fn newest(app: &TestApp, who: &Person) -> Value {
    let rows = app.rows(who).await;
    rows.iter().rev().find(|row| row["kind"] == "membership").expect("a change")["body"].clone()
}

#[tokio::test]
async fn a_muted_member_is_refused_until_the_time_has_passed_or_somebody_lifts_it() {
    let mut app = TestApp::start().await;
    let (ann, bob, eve, gid) = walkers(&app).await;
    say(&app, &eve, gid, 1, "hello").await.ok(201);
    let path = format!("/api/v1/groups/{gid}/members/{}/mute", eve.uid);
    let seconds = |seconds: Value| json!({"seconds": seconds});
    assert_eq!(app.put(&eve, &path, json!({})).await.refused(403), "administrators_only");
    for bad in [json!(59), json!(31_536_001), json!("good")] {
        assert_eq!(app.put(&bob, &path, seconds(bad)).await.refused(422), "invalid_body");
    }
    app.put(&bob, &path, seconds(json!(3_600))).await.ok(204);
    let told = newest(&app, &eve).await;
    assert_eq!(
        (&told["action"], &told["by"], &told["uid"]),
        (&json!("muted"), &json!(bob.uid), &json!(eve.uid))
    );
    let group = app.get(&ann, &format!("/api/v1/groups/{gid}")).await.ok(200);
    let member = group["members"].as_array().expect("members").iter().find(|each| each["uid"] == eve.uid);
    assert_eq!(member.expect("a member")["muted"]["until"], told["until"]);
    app.restart().await;

    let refused = say(&app, &eve, gid, 2, "still here").await;
    assert_eq!(refused.refused(403), "muted");
    let wait = refused.json()["retry_after"].as_u64().expect("seconds");
    assert!((3_000..=3_600).contains(&wait), "{wait}");
    let detail = refused.json()["detail"].as_str().expect("words").to_owned();
    assert!(detail.contains(told["until"].as_str().expect("a time")), "{detail}");
    let rows = app.rows(&eve).await;
    let row = &rows.iter().find(|row| row["kind"] == "message").expect("hello")["message_id"];
    let message_path = format!("/api/v1/conversations/g:{gid}/messages/{row}");
    let edit = json!({"client_id": client_id(3), "body": {"text": "spam"}});
    assert_eq!(app.post(&eve, &format!("{message_path}/edit"), edit).await.refused(403), "muted");
    let reaction = json!({"client_id": client_id(4), "emoji": ["👍"]});
    app.post(&eve, &format!("{message_path}/reaction"), reaction).await.ok(201);
    app.say(&eve, &ann, 5, "why?").await;
    // It goes on when she leaves and comes back.
    app.delete(&eve, &format!("/api/v1/groups/{gid}/members/{}", eve.uid)).await.ok(204);
    app.post(&bob, &format!("/api/v1/groups/{gid}/members"), json!({"uid": eve.uid})).await.ok(204);
    assert_eq!(say(&app, &eve, gid, 6, "back").await.refused(403), "muted");
    app.pass(Duration::from_secs(3_600)).await;
    say(&app, &eve, gid, 7, "at last").await.ok(201);

    app.put(&bob, &path, json!({})).await.ok(204);
    assert_eq!(newest(&app, &eve).await.get("until"), None);
    let mut socket = app.socket(&eve).await;
    socket.begin().await;
    let frame =
        json!({"type": "send", "client_id": client_id(8), "to": {"group": gid}, "body": {"text": "?"}});
    socket.send(&frame).await;
    let error = socket.expect("error").await;
    assert_eq!((&error["code"], &error["retryable"]), (&json!("muted"), &json!(false)));
    assert_eq!(error.get("retry_after"), None, "for good");
    assert_eq!(app.delete(&eve, &path).await.refused(403), "administrators_only");
    app.delete(&bob, &path).await.ok(204);
    app.delete(&bob, &path).await.ok(204);
    assert_eq!(newest(&app, &eve).await["action"], "unmuted");
    say(&app, &eve, gid, 9, "free").await.ok(201);
    let owner = format!("/api/v1/groups/{gid}/members/{}/mute", ann.uid);
    assert_eq!(app.put(&bob, &owner, json!({})).await.refused(409), "owner_stays");
    let stranger = app.sign_up("max").await;
    let outside = format!("/api/v1/groups/{gid}/members/{}/mute", stranger.uid);
    assert_eq!(app.put(&bob, &outside, json!({})).await.refused(404), "not_member");
}

#[tokio::test]
async fn in_slow_mode_a_member_waits_between_messages_and_administrators_do_not() {
    let mut app = TestApp::start().await;
    let (ann, bob, eve, gid) = walkers(&app).await;
    assert_eq!(slow(&app, &eve, gid, 30).await.refused(403), "administrators_only");
    assert_eq!(slow(&app, &bob, gid, 3_601).await.refused(422), "invalid_body");
    slow(&app, &bob, gid, 30).await.ok(204);
    let told = newest(&app, &eve).await;
    assert_eq!((&told["action"], &told["slow_seconds"]), (&json!("slow"), &json!(30)));
    assert_eq!(app.get(&eve, &format!("/api/v1/groups/{gid}")).await.ok(200)["slow_seconds"], 30);

    let first = say(&app, &eve, gid, 1, "one").await.ok(201);
    for who in [&ann, &bob] {
        say(&app, who, gid, 2, "two").await.ok(201);
        say(&app, who, gid, 3, "three").await.ok(201);
    }
    // The server that has started again knows it, too.
    app.restart().await;
    assert_eq!(say(&app, &eve, gid, 1, "one").await.ok(200), first);
    let refused = say(&app, &eve, gid, 2, "two").await;
    assert_eq!(refused.refused(429), "slow_mode");
    let wait = refused.json()["retry_after"].as_u64().expect("seconds");
    assert!((1..=30).contains(&wait), "{wait}");
    app.say(&eve, &ann, 3, "elsewhere").await;
    // What was taken back counts all the same.
    recall(&app, &eve, gid, 4, "one").await.ok(201);
    assert_eq!(say(&app, &eve, gid, 5, "two").await.refused(429), "slow_mode");
    app.pass(Duration::from_secs(30)).await;
    say(&app, &eve, gid, 6, "two").await.ok(201);
    let batch = [7, 8].map(|n| message(n, json!({"group": gid}), "more"));
    app.pass(Duration::from_secs(30)).await;
    let results = app.post(&eve, "/api/v1/messages/batch", json!({"messages": batch})).await.ok(200);
    assert_eq!(results["results"][1]["error"]["code"], "slow_mode", "{results}");
    assert_eq!(results["results"][1]["error"]["retry_after"], 30);
    slow(&app, &bob, gid, 0).await.ok(204);
    say(&app, &eve, gid, 9, "at once").await.ok(201);
}
