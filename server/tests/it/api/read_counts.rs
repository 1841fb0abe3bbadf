//! How many members of a group have read, told to the author alone; and ticks that never go back.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_test_support::until::until;

use crate::support::{Person, TestApp, client_id, message};

/// Moves the read marker of `who` to the last message there.
async fn reads(app: &TestApp, who: &Person, conversation: &str) {
    let rows = app.rows(who).await;
    let last = rows.iter().rfind(|row| row["kind"] == "message" && row["conversation"] == conversation);
    let read = json!({"message_id": last.expect("a message")["message_id"]});
    app.put(who, &format!("/api/v1/conversations/{conversation}/read"), read).await.ok(204);
}

/// The read counts that the author knows, the newest message first.
async fn counts(app: &TestApp, who: &Person) -> Vec<(Value, u64)> {
    let list = app.get(who, "/api/v1/conversations").await.ok(200);
    let row = &list[0]["seen"][0];
    let counts = row["body"]["counts"].as_array().cloned().unwrap_or_default();
    counts.iter().map(|one| (one["client_id"].clone(), one["count"].as_u64().expect("a number"))).collect()
}

/// Waits until that is what the author knows. By the database's clock each look is a second later: one row a second may come.
async fn until_counts(app: &TestApp, what: &str, author: &Person, expected: &[(Value, u64)]) {
    until(what, async || {
        app.pass(Duration::from_secs(1)).await;
        counts(app, author).await == expected
    })
    .await;
}

fn seen(rows: &[Value]) -> usize {
    rows.iter().filter(|row| row["kind"] == "seen").count()
}

#[tokio::test]
async fn the_author_alone_is_told_how_many_have_read_and_keeps_one_row_of_it() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let mut others = Vec::new();
    for name in ["bob", "cat", "dan", "eve"] {
        others.push(app.sign_up(name).await);
    }
    let [bob, cat, dan, eve] = &others[..] else { panic!("four") };
    let quiet = json!({"client_id": client_id(1), "value": {"quiet": true}});
    app.put(dan, "/api/v1/settings/privacy", quiet).await.ok(201);
    let members: Vec<u64> = others.iter().map(|person| person.uid).collect();
    let made = json!({"name": "walkers", "members": members});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let walkers = format!("g:{gid}");
    let say = async |app: &TestApp, who: &Person, n: u128| {
        let said = message(n, json!({"group": gid}), "hi");
        app.post(who, "/api/v1/messages", said).await.ok(201);
    };
    say(&app, &ann, 11).await;
    say(&app, dan, 12).await;
    let (first, second) = (json!(client_id(11)), json!(client_id(13)));

    reads(&app, bob, &walkers).await;
    until_counts(&app, "one has read", &ann, &[(first.clone(), 1)]).await;
    say(&app, &ann, 13).await;
    // Half of it lies in the tables.
    app.restart().await;
    for who in [cat, dan, bob] {
        reads(&app, who, &walkers).await;
    }
    // A quiet member is not counted.
    until_counts(&app, "two have read", &ann, &[(second, 2), (first, 2)]).await;
    let told = app.rows(&ann).await.into_iter().rfind(|row| row["kind"] == "seen").expect("a row");
    assert_eq!((&told["conversation"], &told["body"]["state"]), (&json!(walkers), &json!("read_by")));
    let rows = app.rows(&ann).await;
    assert_eq!(seen(&rows), 1, "later counts take the place of earlier ones");
    for who in [bob, cat, dan, eve] {
        assert_eq!(seen(&app.rows(who).await), 0, "nobody else is told, and who is quiet is not");
    }
}

/// More rows of others than the newest that are looked at.
#[tokio::test]
async fn an_author_is_told_however_much_others_have_said_since() {
    let app = TestApp::start_with(|config| config.limits.sends_per_account_per_second = 0).await;
    let (ann, bob, cat) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("cat").await);
    let made = json!({"name": "walkers", "members": [bob.uid, cat.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let walkers = format!("g:{gid}");
    let said = async |who: &Person, n: u128| {
        let said = message(n, json!({"group": gid}), "hi");
        app.post(who, "/api/v1/messages", said).await.ok(201);
    };
    said(&ann, 1).await;
    for n in 100..230 {
        said(&cat, n).await;
    }
    reads(&app, &bob, &walkers).await;
    until_counts(&app, "one has read", &ann, &[(json!(client_id(1)), 1)]).await;
    said(&ann, 2).await;
    reads(&app, &bob, &walkers).await;
    let both = [(json!(client_id(2)), 1), (json!(client_id(1)), 1)];
    until_counts(&app, "one has read the newer one, too", &ann, &both).await;
    reads(&app, &cat, &walkers).await;
    let both = [(json!(client_id(2)), 2), (json!(client_id(1)), 2)];
    until_counts(&app, "two have read", &ann, &both).await;
}

#[tokio::test]
async fn ticks_never_go_back() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    for n in 1..=3 {
        app.say(&ann, &bob, n, "hi").await;
    }
    let rows = app.rows(&bob).await;
    let mut socket = app.socket(&bob).await;
    socket.begin().await;
    let word = |row: &Value, state: &str| {
        let (conversation, id) = (&row["conversation"], &row["message_id"]);
        json!({"type": "seen", "conversation": conversation, "message_id": id, "state": state})
    };
    let tell = |row: &Value| word(row, "read");
    for at in [1, 2, 0, 1] {
        socket.send(&tell(&rows[at])).await;
    }
    let known = async || {
        let list = app.get(&ann, "/api/v1/conversations").await.ok(200);
        list[0]["seen"][0]["body"]["of"]["client_id"].clone()
    };
    until("all are read", async || known().await == json!(client_id(3))).await;
    // A device that was slow reports an earlier message, and goes on.
    let mut late = app.socket(&bob).await;
    late.begin().await;
    late.send(&tell(&rows[0])).await;
    late.send(&word(&rows[2], "delivered")).await;
    until("the second word has come", async || seen(&app.rows(&ann).await) == 2).await;
    let list = app.get(&ann, "/api/v1/conversations").await.ok(200);
    let states: Vec<_> = list[0]["seen"].as_array().expect("rows").iter().map(|row| &row["body"]).collect();
    let of = json!({"sender": ann.uid, "client_id": client_id(3)});
    assert_eq!(states, [&json!({"of": of, "state": "delivered"}), &json!({"of": of, "state": "read"})]);
}

#[tokio::test]
async fn the_author_asks_who_has_read_in_a_group_that_is_not_large() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let [bob, cat, dan] = [app.sign_up("bob").await, app.sign_up("cat").await, app.sign_up("dan").await];
    let made = json!({"name": "walkers", "members": [bob.uid, cat.uid, dan.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let walkers = format!("g:{gid}");
    let say = async |who: &Person, n: u128| {
        let said = app.post(who, "/api/v1/messages", message(n, json!({"group": gid}), "hi")).await.ok(201);
        said["message_id"].clone()
    };
    let ask = async |who: &Person, message_id: &Value| {
        app.get(who, &format!("/api/v1/groups/{gid}/messages/{message_id}/readers")).await
    };
    let quiet = |on: bool| json!({"client_id": client_id(if on { 1 } else { 2 }), "value": {"quiet": on}});
    let first = say(&ann, 11).await;
    assert_eq!(ask(&ann, &first).await.ok(200), json!({"readers": []}));
    for who in [&cat, &bob, &dan] {
        reads(&app, who, &walkers).await;
    }
    app.put(&dan, "/api/v1/settings/privacy", quiet(true)).await.ok(201);
    let second = say(&ann, 12).await;
    reads(&app, &cat, &walkers).await;
    let named = |people: &[&Person]| {
        let people = people.iter().map(|who| json!({"uid": who.uid, "name": who.name}));
        json!({"readers": people.collect::<Vec<_>>()})
    };
    assert_eq!(ask(&ann, &first).await.ok(200), named(&[&bob, &cat]), "by uid, without who does not tell");
    assert_eq!(ask(&ann, &second).await.ok(200), named(&[&cat]));
    let eve = app.sign_up("eve").await;
    assert_eq!(ask(&eve, &first).await.refused(404), "unknown_group");
    let of_bob = say(&bob, 13).await;
    let copy = app.rows(&ann).await.last().expect("a row")["message_id"].clone();
    assert_eq!(ask(&ann, &copy).await.refused(403), "not_yours");
    assert_eq!(ask(&bob, &of_bob).await.ok(200), named(&[]));
    assert_eq!(ask(&ann, &json!(1)).await.refused(422), "no_message");
    assert_eq!(ask(&ann, &json!(9_999)).await.refused(422), "no_message");
    // Whoever does not tell is not told.
    app.put(&ann, "/api/v1/settings/privacy", quiet(true)).await.ok(201);
    assert_eq!(ask(&ann, &first).await.ok(200), named(&[]));
    app.put(&ann, "/api/v1/settings/privacy", quiet(false)).await.ok(201);
    assert_eq!(ask(&ann, &first).await.ok(200), named(&[&bob, &cat]));
}

#[tokio::test]
async fn in_a_large_group_nobody_is_named() {
    let app = TestApp::start_with(|config| {
        config.limits.sign_ups_per_address_per_minute = 0;
        config.limits.strangers_per_account_per_day = 0;
    })
    .await;
    let ann = app.sign_up("ann").await;
    let mut members = Vec::new();
    for n in 0..50 {
        members.push(app.sign_up(&format!("member {n}")).await.uid);
    }
    let last = members.pop().expect("fifty");
    let made = json!({"name": "walkers", "members": members});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let said = app.post(&ann, "/api/v1/messages", message(11, json!({"group": gid}), "hi")).await.ok(201);
    let path = format!("/api/v1/groups/{gid}/messages/{}/readers", said["message_id"]);
    app.get(&ann, &path).await.ok(200);
    app.post(&ann, &format!("/api/v1/groups/{gid}/members"), json!({"uid": last})).await.ok(204);
    assert_eq!(app.get(&ann, &path).await.refused(422), "too_many_members");
}
