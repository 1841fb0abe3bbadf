//! Moments: what friends share.

use serde_json::{Value, json};

use crate::support::{Person, TestApp, client_id};

async fn befriend(app: &TestApp, one: &Person, other: &Person) {
    for (who, with) in [(one, other), (other, one)] {
        let n = 1_000 + u128::from(with.uid);
        let body = json!({"client_id": client_id(n), "wanted": true});
        app.put(who, &format!("/api/v1/friends/{}", with.uid), body).await.ok(201);
    }
}

async fn post(app: &TestApp, who: &Person, n: u128, text: &str, except: &[&Person]) -> u64 {
    let except: Vec<u64> = except.iter().map(|person| person.uid).collect();
    let body = json!({"client_id": client_id(n), "text": text, "except": except});
    app.post(who, "/api/v1/moments", body).await.ok(201)["message_id"].as_u64().expect("an id")
}

/// The rows of a person's feed, oldest first: kind, sender, and the text or whether it is liked.
async fn feed(app: &TestApp, who: &Person) -> Vec<(String, u64, Value)> {
    let page = app.get(who, "/api/v1/moments").await.ok(200);
    let line = |row: &Value| {
        assert_eq!(row["conversation"], "u:0");
        let body = &row["body"];
        let said = if body["text"].is_null() { &body["liked"] } else { &body["text"] };
        let sender = row["sender"].as_u64().expect("a uid");
        (row["kind"].as_str().expect("a kind").to_owned(), sender, said.clone())
    };
    page["rows"].as_array().expect("rows").iter().rev().map(line).collect()
}

async fn row(app: &TestApp, who: &Person, kind: &str) -> u64 {
    let rows = app.rows(who).await;
    let row = rows.iter().find(|row| row["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"));
    row["message_id"].as_u64().expect("an id")
}

fn moment(who: &Person, text: &str) -> (String, u64, Value) {
    ("moment".to_owned(), who.uid, json!(text))
}

#[tokio::test]
async fn a_moment_reaches_all_friends_but_those_left_out() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let (bob, cat, dan) = (app.sign_up("bob").await, app.sign_up("cat").await, app.sign_up("dan").await);
    befriend(&app, &ann, &bob).await;
    befriend(&app, &ann, &cat).await;
    let mut socket = app.socket(&bob).await;
    let cursor = socket.begin().await;
    socket.heartbeat(cursor).await;
    post(&app, &ann, 1, "for both", &[]).await;
    let told = loop {
        let frame = socket.next().await.expect("open");
        if frame["type"] == "entries" && frame["entries"][0]["kind"] == "moment" {
            break frame["entries"][0]["body"].clone();
        }
        if frame["type"] == "entries" {
            socket.heartbeat(frame["synced"].as_u64().expect("an id")).await;
        }
    };
    assert_eq!(told, json!({"text": "for both"}));
    post(&app, &ann, 2, "not for cat", &[&cat]).await;
    app.restart().await;
    let both = [moment(&ann, "for both"), moment(&ann, "not for cat")];
    assert_eq!(feed(&app, &ann).await, both);
    assert_eq!(feed(&app, &bob).await, both);
    assert_eq!(feed(&app, &cat).await, both[..1]);
    assert_eq!(feed(&app, &dan).await, []);
    // The feed is no conversation, and has its own read marker.
    assert_eq!(app.get(&bob, "/api/v1/conversations").await.ok(200), json!([]));
    let read = row(&app, &bob, "moment").await;
    app.put(&bob, "/api/v1/conversations/u:0/read", json!({"message_id": read})).await;
    assert_eq!(app.get(&bob, "/api/v1/moments").await.ok(200)["read_to"], read);
}

#[tokio::test]
async fn likes_and_comments_are_for_common_friends_who_have_the_moment() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let (bob, cat, dan) = (app.sign_up("bob").await, app.sign_up("cat").await, app.sign_up("dan").await);
    // Bob and cat know each other, dan knows ann alone; eve knows all, and the moment is not for her.
    let eve = app.sign_up("eve").await;
    for (one, other) in
        [(&ann, &bob), (&ann, &cat), (&ann, &dan), (&bob, &cat), (&ann, &eve), (&bob, &eve), (&cat, &eve)]
    {
        befriend(&app, one, other).await;
    }
    post(&app, &ann, 1, "sun", &[&eve]).await;
    let at = row(&app, &bob, "moment").await;
    let like = |n: u128, liked| json!({"client_id": client_id(n), "liked": liked});
    app.put(&bob, &format!("/api/v1/moments/{at}/like"), like(1, true)).await.ok(201);
    let comment = json!({"client_id": client_id(2), "text": "at last"});
    app.post(&bob, &format!("/api/v1/moments/{at}/comments"), comment).await.ok(201);
    let told = [
        moment(&ann, "sun"),
        ("like".into(), bob.uid, json!(true)),
        ("comment".into(), bob.uid, json!("at last")),
    ];
    for who in [&ann, &bob, &cat] {
        assert_eq!(feed(&app, who).await, told, "{}", who.uid);
    }
    assert_eq!(feed(&app, &dan).await, told[..1]);
    assert_eq!(feed(&app, &eve).await, []);
    // A like is one row, however often it changes.
    for n in 3..13 {
        app.put(&bob, &format!("/api/v1/moments/{at}/like"), like(n, n % 2 == 0)).await.ok(201);
    }
    assert_eq!(feed(&app, &ann).await.len(), 3);

    // A like needs a visible moment: other rows, rows of others, and rows of former friends are refused.
    let refused = async |who: &Person, at: u64| {
        app.put(who, &format!("/api/v1/moments/{at}/like"), like(99, true)).await.refused(404)
    };
    assert_eq!(refused(&eve, 1).await, "unknown_moment");
    assert_eq!(refused(&bob, at + 1).await, "unknown_moment");
    let wish = json!({"client_id": client_id(77), "wanted": false});
    app.put(&ann, &format!("/api/v1/friends/{}", bob.uid), wish).await.ok(201);
    assert_eq!(refused(&bob, at).await, "unknown_moment");
}

#[tokio::test]
async fn deleting_takes_back_from_all_who_have_it() {
    let app = TestApp::start().await;
    let (ann, bob, cat) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("cat").await);
    befriend(&app, &ann, &bob).await;
    befriend(&app, &ann, &cat).await;
    befriend(&app, &bob, &cat).await;
    let own = post(&app, &ann, 1, "secret", &[]).await;
    let at = row(&app, &bob, "moment").await;
    let comment = json!({"client_id": client_id(2), "text": "private"});
    let said = app.post(&bob, &format!("/api/v1/moments/{at}/comments"), comment).await.ok(201);
    let delete = async |who: &Person, row: u64, n| {
        let body = json!({"client_id": client_id(n)});
        app.post(who, &format!("/api/v1/moments/{row}/delete"), body).await
    };
    assert_eq!(delete(&bob, at, 3).await.refused(403), "not_yours");
    delete(&bob, said["message_id"].as_u64().expect("an id"), 4).await.ok(201);
    // One who is no friend any more still has it.
    let wish = json!({"client_id": client_id(77), "wanted": false});
    app.put(&cat, &format!("/api/v1/friends/{}", ann.uid), wish).await.ok(201);
    let ack = delete(&ann, own, 5).await.ok(201);
    assert_eq!(delete(&ann, own, 5).await.ok(200), ack);
    for who in [&ann, &bob, &cat] {
        let rows = app.rows(who).await;
        let text = serde_json::to_string(&rows).expect("JSON");
        assert!(!text.contains("secret") && !text.contains("private"), "{text}");
        assert_eq!(rows.iter().filter(|row| row["kind"] == "deleted").count(), 2);
    }
}

#[tokio::test]
async fn after_a_block_neither_learns_what_the_other_shares() {
    let app = TestApp::start().await;
    let (ann, bob, cat) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("cat").await);
    befriend(&app, &ann, &bob).await;
    befriend(&app, &ann, &cat).await;
    befriend(&app, &bob, &cat).await;
    post(&app, &ann, 1, "sun", &[]).await;
    let block = format!("/api/v1/conversations/u:{}/settings/block", bob.uid);
    let value = json!({"client_id": client_id(2), "value": {"blocked": true}});
    app.put(&ann, &block, value).await.ok(201);
    post(&app, &bob, 1, "not for ann", &[]).await;
    assert_eq!(feed(&app, &ann).await, [moment(&ann, "sun")]);
    assert_eq!(feed(&app, &cat).await, [moment(&ann, "sun"), moment(&bob, "not for ann")]);
    post(&app, &ann, 4, "not for bob", &[]).await;
    assert_eq!(feed(&app, &bob).await, [moment(&ann, "sun"), moment(&bob, "not for ann")]);
    // Ann comments on the moment of a common friend.
    post(&app, &cat, 1, "rain", &[]).await;
    let rain = &app.get(&ann, "/api/v1/moments").await.ok(200)["rows"][0]["message_id"];
    let said = json!({"client_id": client_id(5), "text": "here, too"});
    app.post(&ann, &format!("/api/v1/moments/{rain}/comments"), said).await.ok(201);
    let heard = async |who| feed(&app, who).await.iter().any(|(_, _, said)| said == "here, too");
    assert!(heard(&cat).await && !heard(&bob).await);
    let at = row(&app, &bob, "moment").await;
    let like = json!({"client_id": client_id(3), "liked": true});
    assert_eq!(app.put(&bob, &format!("/api/v1/moments/{at}/like"), like).await.refused(403), "blocked");
}

#[tokio::test]
async fn a_feed_comes_in_pages() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    for n in 1..=5 {
        post(&app, &ann, n, &format!("{n}"), &[]).await;
    }
    let page = app.get(&ann, "/api/v1/moments?limit=2").await.ok(200);
    assert_eq!((&page["rows"][0]["body"]["text"], &page["next_before"]), (&json!("5"), &json!(4)));
    let page = app.get(&ann, "/api/v1/moments?limit=9&before=4").await.ok(200);
    assert_eq!((page["rows"].as_array().expect("rows").len(), &page["next_before"]), (3, &Value::Null));
    assert_eq!(app.get(&ann, "/api/v1/moments?limit=0").await.refused(400), "invalid_query");
    let empty = json!({"client_id": client_id(9), "text": " "});
    assert_eq!(app.post(&ann, "/api/v1/moments", empty).await.refused(422), "text_empty");
}

/// A device whose answer was lost repeats what it said, perhaps after the friendship, the moment or a limit has changed.
#[tokio::test]
async fn a_repetition_gets_the_first_answer_whatever_has_changed_since() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    befriend(&app, &ann, &bob).await;
    post(&app, &ann, 1, "sun", &[]).await;
    let theirs = row(&app, &bob, "moment").await;
    let (like, comment) =
        (format!("/api/v1/moments/{theirs}/like"), format!("/api/v1/moments/{theirs}/comments"));
    let liked = |n: u128, liked: bool| json!({"client_id": client_id(n), "liked": liked});
    let said = |n: u128| json!({"client_id": client_id(n), "text": "warm"});
    let first = (
        app.put(&bob, &like, liked(11, true)).await.ok(201),
        app.post(&bob, &comment, said(12)).await.ok(201),
    );
    let again = async |what: &str| {
        let same = (
            app.put(&bob, &like, liked(11, true)).await.ok(200),
            app.post(&bob, &comment, said(12)).await.ok(200),
        );
        assert_eq!(same, first, "{what}");
        assert_eq!(app.put(&bob, &like, liked(11, false)).await.refused(409), "client_id_reused");
        assert_eq!(app.put(&bob, &like, liked(13, true)).await.refused(404), "unknown_moment");
        assert_eq!(app.post(&bob, &comment, said(14)).await.refused(404), "unknown_moment");
    };
    let wish = json!({"client_id": client_id(77), "wanted": false});
    app.put(&ann, &format!("/api/v1/friends/{}", bob.uid), wish).await.ok(201);
    again("they are friends no more").await;
    let before = feed(&app, &bob).await;
    post(&app, &ann, 2, "rain", &[]).await;
    assert_eq!(feed(&app, &bob).await, before, "who is a friend no more gets nothing new");
    assert!(feed(&app, &ann).await.contains(&moment(&ann, "rain")));
    let own = row(&app, &ann, "moment").await;
    let gone = json!({"client_id": client_id(78)});
    app.post(&ann, &format!("/api/v1/moments/{own}/delete"), gone).await.ok(201);
    assert_eq!(row(&app, &bob, "deleted").await, theirs);
    again("the moment is deleted").await;
}
