//! `/groups` and what lies beneath.

use serde_json::{Value, json};

use crate::support::{Person, TestApp, message, texts};

async fn group_of(app: &TestApp, by: &Person, others: &[&Person]) -> u64 {
    let members: Vec<u64> = others.iter().map(|person| person.uid).collect();
    let made = app.post(by, "/api/v1/groups", json!({"name": "walkers", "members": members})).await.ok(201);
    made["gid"].as_u64().expect("a number")
}

/// The membership rows of an inbox: action and whom it is about.
async fn changes(app: &TestApp, who: &Person) -> Vec<(String, u64)> {
    let rows = app.rows(who).await;
    let memberships = rows.iter().filter(|row| row["kind"] == "membership");
    let of = |row: &Value| {
        let body = &row["body"];
        (body["action"].as_str().expect("an action").to_owned(), body["uid"].as_u64().expect("a uid"))
    };
    memberships.map(of).collect()
}

#[tokio::test]
async fn everyone_in_a_group_learns_of_it_by_rows_and_hears_what_is_reported() {
    let app = TestApp::start_with(|config| config.queues.count = 4).await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let gid = group_of(&app, &ann, &[&bob]).await;
    let shown = app.get(&bob, &format!("/api/v1/groups/{gid}")).await.ok(200);
    let members = json!([
        {"uid": ann.uid, "name": "ann", "role": "owner"},
        {"uid": bob.uid, "name": "bob", "role": "member"},
    ]);
    assert_eq!(
        (&shown["members"], &shown["member_count"], &shown["role"]),
        (&members, &json!(2), &json!("member"))
    );
    app.post(&bob, "/api/v1/messages", message(1, json!({"group": gid}), "hi all")).await.ok(201);
    app.post(&ann, &format!("/api/v1/groups/{gid}/members"), json!({"uid": eve.uid})).await.ok(204);
    app.post(&eve, "/api/v1/messages", message(1, json!({"group": gid}), "thanks")).await.ok(201);
    for (who, heard) in
        [(&ann, &["hi all", "thanks"][..]), (&bob, &["hi all", "thanks"]), (&eve, &["thanks"])]
    {
        heard_by(&app, who, heard).await;
    }
    let list = app.get(&eve, "/api/v1/conversations").await.ok(200);
    assert_eq!((&list[0]["id"], &list[0]["title"]), (&json!(format!("g:{gid}")), &json!("walkers")));
    assert_eq!(changes(&app, &eve).await, [("added".to_owned(), eve.uid)]);
}

/// Copies for others may be written after the sender's answer, so this waits for them by their own sockets.
async fn heard_by(app: &TestApp, who: &Person, expected: &[&str]) {
    let mut socket = app.socket(who).await;
    socket.expect("welcome").await;
    let (mut cursor, mut heard) = (0, Vec::new());
    socket.heartbeat(cursor).await;
    while heard.len() < expected.len() {
        let frame = socket.next().await.expect("open");
        if frame["type"] == "entries" {
            heard.extend(texts(frame["entries"].as_array().expect("rows")).into_iter().map(str::to_owned));
            cursor = frame["synced"].as_u64().expect("a cursor");
            socket.heartbeat(cursor).await;
        }
    }
    assert_eq!(heard, expected);
}

#[tokio::test]
async fn one_who_left_or_was_put_out_hears_and_says_no_more() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let gid = group_of(&app, &ann, &[&bob, &eve]).await;
    app.delete(&bob, &format!("/api/v1/groups/{gid}/members/{}", bob.uid)).await.ok(204);
    app.delete(&ann, &format!("/api/v1/groups/{gid}/members/{}", eve.uid)).await.ok(204);
    app.post(&ann, "/api/v1/messages", message(1, json!({"group": gid}), "alone")).await.ok(201);
    for gone in [&bob, &eve] {
        let reported = app.post(gone, "/api/v1/messages", message(1, json!({"group": gid}), "hello?")).await;
        assert_eq!(reported.refused(404), "unknown_group");
        assert_eq!(app.get(gone, &format!("/api/v1/groups/{gid}")).await.refused(404), "unknown_group");
        assert_eq!(texts(&app.rows(gone).await), Vec::<&str>::new());
    }
    let anns = changes(&app, &ann).await;
    assert!(anns.contains(&("left".to_owned(), bob.uid)) && anns.contains(&("removed".to_owned(), eve.uid)));
}

#[tokio::test]
async fn a_repeated_send_gets_its_answer_also_after_the_sender_was_put_out() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let gid = group_of(&app, &ann, &[&bob]).await;
    let hello = || message(1, json!({"group": gid}), "hello");
    let first = app.post(&bob, "/api/v1/messages", hello()).await.ok(201);
    app.delete(&ann, &format!("/api/v1/groups/{gid}/members/{}", bob.uid)).await.ok(204);
    assert_eq!(app.post(&bob, "/api/v1/messages", hello()).await.ok(200), first);
}

#[tokio::test]
async fn what_cannot_be_done_to_a_group_is_refused() {
    let app = TestApp::start_with(|config| config.limits.group_members = 3).await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let max = app.sign_up("max").await;
    let gid = group_of(&app, &ann, &[&bob]).await;
    let members = format!("/api/v1/groups/{gid}/members");
    let add = async |by: &Person, uid: u64| app.post(by, &members, json!({"uid": uid})).await;
    assert_eq!(add(&eve, eve.uid).await.refused(404), "unknown_group", "not in it");
    assert_eq!(add(&ann, bob.uid).await.refused(409), "already_member");
    assert_eq!(add(&ann, 77).await.refused(404), "unknown_user");
    add(&ann, eve.uid).await.ok(204);
    assert_eq!(add(&ann, max.uid).await.refused(422), "group_full");
    let remove = async |by: &Person, uid: u64| app.delete(by, &format!("{members}/{uid}")).await;
    assert_eq!(remove(&ann, max.uid).await.refused(404), "not_member");
    assert_eq!(remove(&max, ann.uid).await.refused(404), "unknown_group");
    assert_eq!(app.get(&max, &format!("/api/v1/groups/{gid}")).await.refused(404), "unknown_group");
    assert_eq!(app.get(&ann, "/api/v1/groups/x").await.refused(400), "invalid_query");
    for (body, status, code) in [
        (json!({"name": "", "members": []}), 422, "group_name"),
        (json!({"name": "x".repeat(81), "members": []}), 422, "group_name"),
        (json!({"name": "wal\u{200d}kers", "members": []}), 422, "group_name"),
        (json!({"name": "g", "members": [77]}), 404, "unknown_user"),
        (json!({"name": "g", "members": [bob.uid, eve.uid, max.uid]}), 422, "group_full"),
        (json!({"name": "g", "members": "bob"}), 422, "invalid_body"),
        (json!({"members": []}), 422, "invalid_body"),
    ] {
        assert_eq!(app.post(&ann, "/api/v1/groups", body.clone()).await.refused(status), code, "{body}");
    }
}
