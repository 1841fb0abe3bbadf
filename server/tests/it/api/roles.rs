//! Roles, bans, names and topics of groups, the keys by which what is made is made once, and whom one may put into groups.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Person, TestApp, client_id};

async fn group_of(app: &TestApp, by: &Person, others: &[&Person]) -> u64 {
    let members: Vec<u64> = others.iter().map(|person| person.uid).collect();
    let made = app.post(by, "/api/v1/groups", json!({"name": "walkers", "members": members})).await.ok(201);
    made["gid"].as_u64().expect("a number")
}

async fn role(app: &TestApp, by: &Person, gid: u64, of: &Person, role: &str) -> Answer {
    app.put(by, &format!("/api/v1/groups/{gid}/members/{}/role", of.uid), json!({"role": role})).await
}

async fn describe(app: &TestApp, by: &Person, path: &str, body: Value) -> Answer {
    app.send(app.request(Method::PATCH, path).bearer_auth(&by.token).json(&body)).await
}

/// Name and role of everybody in it, by uid.
async fn roles(app: &TestApp, who: &Person, gid: u64) -> Vec<(String, String)> {
    let group = app.get(who, &format!("/api/v1/groups/{gid}")).await.ok(200);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let members = group["members"].as_array().expect("members").iter();
    members.map(|member| (text(&member["name"]), text(&member["role"]))).collect()
}

/// The newest change of a group in an inbox.
async fn newest(app: &TestApp, who: &Person) -> Value {
    let rows = app.rows(who).await;
    let row = rows.iter().rev().find(|row| row["kind"] == "membership");
    row.expect("a change")["body"].clone()
}

async fn keyed(app: &TestApp, by: &Person, path: &str, key: &str, body: Value) -> Answer {
    let request = app.request(Method::POST, path).header("idempotency-key", key);
    app.send(request.bearer_auth(&by.token).json(&body)).await
}

#[tokio::test]
async fn roles_are_given_and_everybody_learns_of_it_by_a_row() {
    let mut app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let gid = group_of(&app, &ann, &[&bob, &eve]).await;
    assert_eq!(role(&app, &bob, gid, &eve, "administrator").await.refused(403), "owner_only");
    role(&app, &ann, gid, &bob, "administrator").await.ok(204);
    role(&app, &ann, gid, &bob, "administrator").await.ok(204);
    let row = newest(&app, &eve).await;
    assert_eq!(
        (&row["action"], &row["role"], &row["uid"]),
        (&json!("role"), &json!("administrator"), &json!(bob.uid))
    );
    let path = format!("/api/v1/groups/{gid}");
    describe(&app, &bob, &path, json!({"name": "hikers", "topic": "Sundays"})).await.ok(204);
    assert_eq!(newest(&app, &eve).await["topic"], "Sundays");
    assert_eq!(describe(&app, &eve, &path, json!({"topic": ""})).await.refused(403), "administrators_only");
    assert_eq!(describe(&app, &bob, &path, json!({"name": "\u{200b}"})).await.refused(422), "group_name");
    assert_eq!(describe(&app, &bob, &path, json!({"topic": "a\nb"})).await.refused(422), "group_topic");

    role(&app, &ann, gid, &eve, "owner").await.ok(204);
    app.restart().await;
    let expected = [("ann", "administrator"), ("bob", "administrator"), ("eve", "owner")];
    let expected = expected.map(|(name, role)| (name.to_owned(), role.to_owned()));
    assert_eq!(roles(&app, &bob, gid).await, expected);
    let shown = app.get(&bob, &path).await.ok(200);
    assert_eq!((&shown["name"], &shown["topic"]), (&json!("hikers"), &json!("Sundays")));
    assert_eq!(role(&app, &eve, gid, &eve, "member").await.refused(409), "owner_stays");
    assert_eq!(app.delete(&bob, &format!("{path}/members/{}", ann.uid)).await.refused(403), "owner_only");
    assert_eq!(app.delete(&bob, &format!("{path}/members/{}", eve.uid)).await.refused(409), "owner_stays");
    assert_eq!(role(&app, &eve, gid, &bob, "boss").await.refused(422), "invalid_body");
}

#[tokio::test]
async fn an_owner_who_leaves_is_followed_by_who_stands_longest() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let gid = group_of(&app, &ann, &[&bob]).await;
    app.post(&ann, &format!("/api/v1/groups/{gid}/members"), json!({"uid": eve.uid})).await.ok(204);
    role(&app, &ann, gid, &eve, "administrator").await.ok(204);
    app.delete(&ann, &format!("/api/v1/groups/{gid}/members/{}", ann.uid)).await.ok(204);
    let row = newest(&app, &bob).await;
    assert_eq!(
        (&row["action"], &row["owner"], &row["owner_name"]),
        (&json!("left"), &json!(eve.uid), &json!("eve"))
    );
    app.delete(&eve, &format!("/api/v1/groups/{gid}/members/{}", eve.uid)).await.ok(204);
    assert_eq!(roles(&app, &bob, gid).await, [("bob".to_owned(), "owner".to_owned())]);
}

#[tokio::test]
async fn who_was_removed_or_banned_does_not_come_back_by_a_live_link() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let gid = group_of(&app, &ann, &[&bob, &eve]).await;
    let path = format!("/api/v1/groups/{gid}");
    let invite = async || {
        let made = app.post(&eve, &format!("{path}/invites"), json!({})).await.ok(201);
        format!("/api/v1{}", made["path"].as_str().expect("a path"))
    };
    let live = invite().await;
    app.delete(&ann, &format!("{path}/members/{}", bob.uid)).await.ok(204);
    assert_eq!(app.post(&bob, &live, json!({})).await.refused(403), "removed_since");
    app.pass(std::time::Duration::from_secs(1)).await;
    let later = invite().await;
    app.post(&bob, &later, json!({})).await.ok(200);

    let ban = format!("{path}/bans/{}", bob.uid);
    assert_eq!(app.put(&eve, &ban, json!({})).await.refused(403), "administrators_only");
    app.put(&ann, &ban, json!({})).await.ok(204);
    assert_eq!(newest(&app, &bob).await["action"], "banned", "who is put out is told");
    assert_eq!(app.get(&bob, &path).await.refused(404), "unknown_group");
    assert_eq!(app.post(&bob, &later, json!({})).await.refused(403), "banned");
    let add = async || app.post(&eve, &format!("{path}/members"), json!({"uid": bob.uid})).await;
    assert_eq!(add().await.refused(403), "banned");
    let bans = app.get(&ann, &format!("{path}/bans")).await.ok(200);
    assert_eq!(bans, json!([{"uid": bob.uid, "name": "bob"}]));
    assert_eq!(app.get(&eve, &format!("{path}/bans")).await.refused(403), "administrators_only");
    app.delete(&ann, &ban).await.ok(204);
    assert_eq!(newest(&app, &eve).await["action"], "unbanned");
    assert_eq!(app.post(&bob, &later, json!({})).await.refused(403), "removed_since");
    add().await.ok(204);
}

#[tokio::test]
async fn what_is_made_under_a_key_is_made_once() {
    let mut app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let (key, groups) = (client_id(7), "/api/v1/groups");
    let walkers = || json!({"name": "walkers"});
    let made = keyed(&app, &ann, groups, &key, walkers()).await.ok(201);
    assert_eq!(keyed(&app, &ann, groups, &key, walkers()).await.ok(201), made);
    app.restart().await;
    assert_eq!(keyed(&app, &ann, groups, &key, walkers()).await.ok(201), made);
    assert_eq!(
        keyed(&app, &ann, groups, &key, json!({"name": "hikers"})).await.refused(409),
        "client_id_reused"
    );
    assert_ne!(keyed(&app, &bob, groups, &key, walkers()).await.ok(201), made, "keys are of their account");
    assert_eq!(keyed(&app, &ann, groups, "7", walkers()).await.refused(400), "invalid_query");
    assert_eq!(app.rows(&ann).await.len(), 1);

    let members = format!("/api/v1/groups/{}/members", made["gid"]);
    for _ in 0..2 {
        keyed(&app, &ann, &members, &client_id(8), json!({"uid": bob.uid})).await.ok(204);
    }
    app.delete(&bob, &format!("{members}/{}", bob.uid)).await.ok(204);
    keyed(&app, &ann, &members, &client_id(8), json!({"uid": bob.uid})).await.ok(204);
    assert_eq!(app.rows(&ann).await.len(), 3, "made, added, left");
}

#[tokio::test]
async fn an_account_puts_few_strangers_a_day_into_groups() {
    let app = TestApp::start_with(|config| config.limits.strangers_per_account_per_day = 2).await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let (max, known) = (app.sign_up("max").await, app.sign_up("known").await);
    app.say(&known, &ann, 1, "it is me").await;
    app.say(&ann, &eve, 2, "who I write to knows me no better").await;
    let make = async |members: &[&Person], key: u128| {
        let members: Vec<u64> = members.iter().map(|person| person.uid).collect();
        let body = json!({"name": "walkers", "members": members});
        keyed(&app, &ann, "/api/v1/groups", &client_id(key), body).await
    };
    assert_eq!(make(&[&bob, &eve, &max], 11).await.refused(429), "too_many_strangers");
    assert_eq!(make(&[&bob, &eve, &max], 11).await.refused(429), "too_many_strangers", "nothing was counted");
    let gid = make(&[&bob, &eve, &known], 12).await.ok(201)["gid"].clone();
    make(&[&bob, &eve, &known], 12).await.ok(201);
    let members = format!("/api/v1/groups/{gid}/members");
    let refused = app.post(&ann, &members, json!({"uid": max.uid})).await;
    assert_eq!(refused.refused(429), "too_many_strangers");
    assert!(refused.header("retry-after").parse::<u64>().expect("seconds") <= 86_400);
    make(&[&known], 13).await.ok(201);
    app.say(&max, &ann, 3, "let me in").await;
    app.post(&ann, &members, json!({"uid": max.uid})).await.ok(204);
    app.pass(std::time::Duration::from_secs(86_400)).await;
    make(&[&bob, &eve], 14).await.ok(201);
}

#[tokio::test]
async fn who_lets_friends_alone_add_them_is_added_by_no_others() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    app.put(
        &bob,
        "/api/v1/settings/privacy",
        json!({"client_id": client_id(1), "value": {"groups": "friends"}}),
    )
    .await
    .ok(201);
    let gid = group_of(&app, &ann, &[&eve]).await;
    let add = async |who: &Person| {
        app.post(&ann, &format!("/api/v1/groups/{gid}/members"), json!({"uid": who.uid})).await
    };
    assert_eq!(add(&bob).await.refused(403), "friends_add_only");
    let made = app.post(&ann, &format!("/api/v1/groups/{gid}/invites"), json!({})).await.ok(201);
    app.post(&bob, &format!("/api/v1{}", made["path"].as_str().expect("a path")), json!({})).await.ok(200);
    let blocks = format!("/api/v1/conversations/u:{}/settings/block", ann.uid);
    let max = app.sign_up("max").await;
    app.put(&max, &blocks, json!({"client_id": client_id(1), "value": {"blocked": true}})).await.ok(201);
    assert_eq!(add(&max).await.refused(403), "blocked");
}
