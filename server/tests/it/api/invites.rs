//! `/groups/{gid}/invites` and `/invites/{code}`, and the pages that belong to them.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Person, TestApp};

async fn group_of(app: &TestApp, by: &Person) -> u64 {
    let made = app.post(by, "/api/v1/groups", json!({"name": "<walkers>"})).await.ok(201);
    made["gid"].as_u64().expect("a number")
}

/// The code of an invitation with these terms.
async fn invite(app: &TestApp, by: &Person, gid: u64, terms: Value) -> String {
    let made = app.post(by, &format!("/api/v1/groups/{gid}/invites"), terms).await.ok(201);
    let code = made["code"].as_str().expect("a code").to_owned();
    assert_eq!(made["path"], format!("/invites/{code}"));
    code
}

async fn members(app: &TestApp, who: &Person, gid: u64) -> usize {
    let group = app.get(who, &format!("/api/v1/groups/{gid}")).await.ok(200);
    group["members"].as_array().expect("members").len()
}

async fn follow(app: &TestApp, who: &Person, code: &str) -> crate::support::Answer {
    app.post(who, &format!("/api/v1/invites/{code}"), json!({})).await
}

#[tokio::test]
async fn whoever_has_the_link_comes_in() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let gid = group_of(&app, &ann).await;
    let code = invite(&app, &ann, gid, json!({"uses": 1})).await;
    assert_eq!(follow(&app, &bob, &code).await.ok(200), json!({"gid": gid}));
    assert_eq!(members(&app, &bob, gid).await, 2);
    assert_eq!(follow(&app, &bob, &code).await.ok(200), json!({"gid": gid}), "again is no harm");
    let eve = app.sign_up("eve").await;
    assert_eq!(follow(&app, &eve, &code).await.refused(410), "used_up_invite");
    assert_eq!(members(&app, &ann, gid).await, 2);
}

#[tokio::test]
async fn an_invitation_ends_with_its_time_and_with_its_makers_stay() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let gid = group_of(&app, &ann).await;
    app.post(&ann, &format!("/api/v1/groups/{gid}/members"), json!({"uid": bob.uid})).await.ok(204);
    let from_bob = invite(&app, &bob, gid, json!({})).await;
    app.delete(&ann, &format!("/api/v1/groups/{gid}/members/{}", bob.uid)).await.ok(204);
    assert_eq!(follow(&app, &eve, &from_bob).await.refused(410), "expired_invite");

    let short = invite(&app, &ann, gid, json!({"expires_in_seconds": 60})).await;
    app.pass(Duration::from_secs(61)).await;
    assert_eq!(follow(&app, &eve, &short).await.refused(410), "expired_invite");
    assert_eq!(members(&app, &ann, gid).await, 1);
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_its_reason() {
    let app = TestApp::start().await;
    let (ann, eve) = (app.sign_up("ann").await, app.sign_up("eve").await);
    let gid = group_of(&app, &ann).await;
    let path = format!("/api/v1/groups/{gid}/invites");
    for terms in [
        json!({"uses": 0}),
        json!({"uses": 1_001}),
        json!({"expires_in_seconds": 59}),
        json!({"expires_in_seconds": 2_592_001}),
    ] {
        assert_eq!(app.post(&ann, &path, terms.clone()).await.refused(422), "bad_terms", "{terms}");
    }
    assert_eq!(app.post(&eve, &path, json!({})).await.refused(404), "unknown_group");
    for code in ["x", "11111111111", "%F0%9F%8C%8A", &"z".repeat(200)] {
        assert_eq!(follow(&app, &eve, code).await.refused(404), "unknown_invite", "{code}");
    }
    assert_eq!(app.post_as_nobody("/api/v1/invites/x", json!({})).await.refused(401), "unauthorized");
}

#[tokio::test]
async fn a_guest_sees_who_invites_and_a_member_makes_the_link() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let gid = group_of(&app, &ann).await;
    let code = invite(&app, &ann, gid, json!({})).await;
    let page = app.send(app.request(Method::GET, &format!("/invites/{code}"))).await;
    assert_eq!(page.status, 200);
    assert!(
        page.text.contains("ann invites you to") && page.text.contains("&#60;walkers&#62;"),
        "{}",
        page.text
    );
    for way in ["login", "sign-up"] {
        assert!(page.text.contains(&format!("/{way}?next=/invites/{code}")), "{}", page.text);
    }
    let unknown = app.send(app.request(Method::GET, "/invites/nothing")).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.text.contains("Ask for a new one"), "{}", unknown.text);
}

#[tokio::test]
async fn the_form_for_a_link_says_which_field_does_not_fit() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let gid = group_of(&app, &ann).await;
    let own = format!("http://{}", app.address);
    let send = async |form: &'static str| {
        let request = app.request(Method::POST, &format!("/groups/{gid}/invite")).bearer_auth(&ann.token);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        app.send_unjudged(request.header("origin", &own).body(form)).await
    };
    for (form, problem) in [
        ("days=31&uses=10", "Choose 1 to 30 days."),
        ("days=0&uses=10", "Choose 1 to 30 days."),
        ("days=&uses=10", "Choose 1 to 30 days."),
        ("days=99999999999&uses=10", "Choose 1 to 30 days."),
        ("days=7&uses=1001", "Choose 1 to 1000 people."),
        ("days=7&uses=few", "Choose 1 to 1000 people."),
        ("nothing", "Choose 1 to 30 days."),
    ] {
        let answer = send(form).await;
        assert_eq!(answer.status, 422, "{form}");
        assert_eq!(answer.text.matches(problem).count(), 1, "{form}: {}", answer.text);
    }
    let made = send("days=30&uses=1000").await;
    assert_eq!(made.status, 200);
    assert!(made.text.contains(&format!("{own}/invites/")), "{}", made.text);
}

#[tokio::test]
async fn numbers_of_people_and_groups_go_on_after_a_restart() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let gid = group_of(&app, &ann).await;
    let code = invite(&app, &ann, gid, json!({})).await;
    app.restart().await;
    let bob = app.sign_up("bob").await;
    assert!(bob.uid > ann.uid);
    assert!(group_of(&app, &bob).await > gid);
    assert_eq!(follow(&app, &bob, &code).await.ok(200), json!({"gid": gid}), "the code is still good");
}

#[tokio::test]
async fn a_refusal_names_the_request() {
    let app = TestApp::start().await;
    let refused = app.post_as_nobody("/api/v1/invites/x", json!({})).await;
    let trace_id = refused.json()["trace_id"].as_str().expect("a name").to_owned();
    assert_eq!(trace_id, refused.header("x-request-id"));
    let next = app.post_as_nobody("/api/v1/invites/x", json!({})).await;
    let number = |text: &str| text.parse::<u64>().expect("digits");
    assert!(number(next.header("x-request-id")) > number(&trace_id), "names grow");
}

#[tokio::test]
async fn invitations_are_listed_and_revoked_by_their_makers_and_administrators() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let gid = group_of(&app, &ann).await;
    let group = format!("/api/v1/groups/{gid}");
    for person in [&bob, &eve] {
        app.post(&ann, &format!("{group}/members"), json!({"uid": person.uid})).await.ok(204);
    }
    let list = format!("{group}/invites");
    let codes = async |who: &Person, query: &str| {
        let page = app.get(who, &format!("{list}{query}")).await.ok(200);
        let codes = page["invites"].as_array().expect("a list").iter();
        (
            codes.map(|one| one["code"].as_str().expect("a code").to_owned()).collect::<Vec<_>>(),
            page["next"].clone(),
        )
    };
    let by_bob = invite(&app, &bob, gid, json!({"uses": 2})).await;
    let by_eve = invite(&app, &eve, gid, json!({})).await;
    let guest = app.sign_up("max").await;
    follow(&app, &guest, &by_bob).await.ok(200);
    assert_eq!(codes(&ann, "").await, (vec![by_bob.clone(), by_eve.clone()], Value::Null));
    assert_eq!(codes(&eve, "").await, (vec![by_eve.clone()], Value::Null), "members see their own");
    let (first, next) = codes(&ann, "?limit=1").await;
    assert_eq!((&first[..], &next), (&[by_bob.clone()][..], &json!(by_bob)));
    assert_eq!(codes(&ann, &format!("?limit=1&after={by_bob}")).await, (vec![by_eve.clone()], Value::Null));
    let shown = &app.get(&ann, &list).await.ok(200)["invites"][0];
    assert_eq!(
        (&shown["uses"], &shown["uses_left"], &shown["made_by"]["name"]),
        (&json!(2), &json!(1), &json!("bob"))
    );
    assert_eq!(app.get(&ann, &format!("{list}?limit=0")).await.refused(400), "invalid_query");
    assert_eq!(app.get(&ann, &format!("{list}?after=x")).await.refused(404), "unknown_invite");

    let revoke = async |who: &Person, code: &str| app.delete(who, &format!("{list}/{code}")).await;
    assert_eq!(revoke(&eve, &by_bob).await.refused(403), "administrators_only");
    assert_eq!(revoke(&ann, "x").await.refused(404), "unknown_invite");
    revoke(&ann, &by_bob).await.ok(204);
    revoke(&ann, &by_bob).await.ok(204);
    let late = app.sign_up("late").await;
    assert_eq!(follow(&app, &late, &by_bob).await.refused(410), "expired_invite");
    app.delete(&eve, &format!("{group}/members/{}", eve.uid)).await.ok(204);
    assert_eq!(codes(&ann, "").await, (vec![], Value::Null), "it ended with its maker's membership");
}

#[tokio::test]
async fn an_invitation_that_is_made_under_a_key_is_made_once() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let gid = group_of(&app, &ann).await;
    let make = async |app: &TestApp, terms: Value| {
        let request = app.request(Method::POST, &format!("/api/v1/groups/{gid}/invites"));
        let request = request.header("idempotency-key", crate::support::client_id(7));
        app.send(request.bearer_auth(&ann.token).json(&terms)).await
    };
    let made = make(&app, json!({"uses": 3})).await.ok(201);
    assert_eq!(make(&app, json!({"uses": 3})).await.ok(201), made);
    app.restart().await;
    app.pass(Duration::from_secs(60)).await;
    assert_eq!(make(&app, json!({"uses": 3})).await.ok(201), made);
    assert_eq!(make(&app, json!({"uses": 4})).await.refused(409), "client_id_reused");
    let listed = app.get(&ann, &format!("/api/v1/groups/{gid}/invites")).await.ok(200);
    assert_eq!(listed["invites"].as_array().map(Vec::len), Some(1));
}
