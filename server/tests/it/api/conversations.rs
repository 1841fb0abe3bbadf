//! `/conversations` and what lies beneath.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{TestApp, message, texts};

#[tokio::test]
async fn the_list_is_newest_first_with_titles_and_unread_counts() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    app.say(&bob, &ann, 1, "one").await;
    app.say(&bob, &ann, 2, "two").await;
    app.say(&ann, &eve, 1, "hello").await;
    let list = app.get(&ann, "/api/v1/conversations").await.ok(200);
    let line = |at: usize| (list[at]["id"].clone(), list[at]["title"].clone(), list[at]["unread"].clone());
    assert_eq!(line(0), (json!(format!("u:{}", eve.uid)), json!("eve"), json!(0)));
    assert_eq!(line(1), (json!(format!("u:{}", bob.uid)), json!("bob"), json!(2)));
    assert_eq!(list[1]["last"]["body"]["text"], "two");
    assert_eq!(list[1]["read_to"], 0);
}

#[tokio::test]
async fn the_list_comes_in_pages_that_follow_one_another() {
    let mut app = TestApp::start_with(|config| config.limits.conversations = 5).await;
    let ann = app.sign_up("ann").await;
    let mut expected = Vec::new();
    for n in 0..7 {
        let other = app.sign_up(&format!("other {n}")).await;
        app.say(&ann, &other, n, "hi").await;
        expected.insert(0, format!("u:{}", other.uid));
        // Half of them in the tables, half in memory.
        if n == 3 {
            app.restart().await;
        }
    }
    let page = async |app: &TestApp, query: &str| {
        let answer = app.get(&ann, &format!("/api/v1/conversations{query}")).await;
        let ids: Vec<String> = answer
            .json()
            .as_array()
            .expect("a list")
            .iter()
            .map(|line| line["id"].as_str().expect("an id").to_owned())
            .collect();
        let link = (ids.len() == 5 || query.contains("limit=3")).then(|| answer.header("link").to_owned());
        (ids, link)
    };
    let (all, link) = page(&app, "").await;
    assert_eq!(all, expected[..5], "as ever, at most so many");
    let next = link.expect("a full page names the next one");
    let next =
        next.strip_prefix("</api/v1/conversations").and_then(|link| link.split('>').next()).expect("a link");
    assert_eq!(page(&app, next).await.0, expected[5..]);
    let (first, link) = page(&app, "?limit=3").await;
    assert_eq!(first, expected[..3]);
    assert!(link.expect("a link").contains("limit=3&after="));
    assert_eq!(page(&app, "?after=1").await.0, Vec::<String>::new());
    assert_eq!(app.get(&ann, "/api/v1/conversations?limit=0").await.refused(400), "invalid_query");
}

#[tokio::test]
async fn a_read_marker_only_grows_and_follows_the_user_as_a_row() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    for n in 1..=3 {
        app.say(&bob, &ann, n, "hi").await;
    }
    let ids: Vec<u64> = app.rows(&ann).await.iter().filter_map(|row| row["message_id"].as_u64()).collect();
    let path = format!("/api/v1/conversations/u:{}/read", bob.uid);
    let read_to = async |id: u64| app.put(&ann, &path, json!({"message_id": id})).await;
    read_to(ids[1]).await.ok(204);
    let rows = app.rows(&ann).await;
    assert_eq!(rows.len(), 4);
    assert_eq!((&rows[3]["kind"], &rows[3]["body"]), (&json!("receipt"), &json!({"read_to": ids[1]})));
    assert_eq!(rows[3].get("client_id"), None);
    let list = app.get(&ann, "/api/v1/conversations").await.ok(200);
    assert_eq!((&list[0]["unread"], &list[0]["read_to"]), (&json!(1), &json!(ids[1])));

    read_to(ids[0]).await.ok(204);
    read_to(ids[1]).await.ok(204);
    assert_eq!(app.rows(&ann).await.len(), 4, "an older mark writes nothing");
    assert_eq!(app.rows(&bob).await.len(), 3, "a mark is one's own affair");
}

#[tokio::test]
async fn a_read_marker_names_a_row_of_that_conversation() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&bob, &ann, 1, "hi").await;
    let id = app.rows(&ann).await[0]["message_id"].as_u64().expect("an id");
    let read = async |conversation: &str, body: Value| {
        app.put(&ann, &format!("/api/v1/conversations/{conversation}/read"), body).await
    };
    let bobs = format!("u:{}", bob.uid);
    for (conversation, body, status, code) in [
        (bobs.as_str(), json!({"message_id": id + 1}), 422, "not_in_conversation"),
        (&bobs, json!({"message_id": 9_007_199_254_740_992_u64}), 422, "invalid_body"),
        (&bobs, json!({"message_id": "1"}), 422, "invalid_body"),
        ("u:77", json!({"message_id": id}), 422, "not_in_conversation"),
        ("g:1", json!({"message_id": id}), 422, "not_in_conversation"),
        ("bob", json!({"message_id": id}), 400, "invalid_query"),
        ("u:010", json!({"message_id": id}), 400, "invalid_query"),
    ] {
        assert_eq!(read(conversation, body.clone()).await.refused(status), code, "{conversation} {body}");
    }
    assert_eq!(app.rows(&ann).await.len(), 1);
}

#[tokio::test]
async fn a_history_is_paged_newest_first() {
    let app = TestApp::start_with(|config| config.limits.page_rows = 4).await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    for n in 0..5 {
        app.say(&ann, &bob, n, &n.to_string()).await;
        app.say(&ann, &eve, 100 + n, "aside").await;
    }
    let path = format!("/api/v1/conversations/u:{}/messages", bob.uid);
    let page = app.get(&ann, &format!("{path}?limit=1000")).await.ok(200);
    assert_eq!(texts(page["rows"].as_array().expect("rows")), ["4", "3", "2", "1"], "the limit's limit");
    let before = page["next_before"].as_u64().expect("more");
    let page = app.get(&ann, &format!("{path}?before={before}")).await.ok(200);
    assert_eq!(texts(page["rows"].as_array().expect("rows")), ["0"]);
    assert_eq!(page["next_before"], Value::Null);
    for bad in ["limit=0", "limit=x", "before=x", "before=-1"] {
        assert_eq!(app.get(&ann, &format!("{path}?{bad}")).await.refused(400), "invalid_query", "{bad}");
    }
    assert_eq!(app.get(&ann, "/api/v1/conversations/x/messages").await.refused(400), "invalid_query");
}

#[tokio::test]
async fn a_history_is_read_at_a_place_and_goes_on_from_there_both_ways() {
    let mut app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    for n in 0..10 {
        app.say(&ann, &bob, n, &n.to_string()).await;
        app.say(&eve, &bob, 100 + n, "aside").await;
        app.pass(Duration::from_secs(60)).await;
        // Half of them in the tables, half in memory.
        if n == 4 {
            app.restart().await;
        }
    }
    let path = format!("/api/v1/conversations/u:{}/messages", ann.uid);
    let rows = app.get(&bob, &path).await.ok(200)["rows"].as_array().expect("rows").clone();
    let id = |text: &str| {
        let row = rows.iter().find(|row| row["body"]["text"] == text).expect("a row");
        row["message_id"].as_u64().expect("an id")
    };
    let page = async |query: String| {
        let page = app.get(&bob, &format!("{path}?{query}")).await.ok(200);
        let texts = texts(page["rows"].as_array().expect("rows")).into_iter().map(str::to_owned);
        (texts.collect::<Vec<_>>(), page["next_before"].clone(), page["next_after"].clone())
    };
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
    assert_eq!(
        page(format!("after={}&limit=3", id("2"))).await,
        (words("5 4 3"), Value::Null, json!(id("5")))
    );
    assert_eq!(
        page(format!("after={}&before={}", id("2"), id("5"))).await,
        (words("4 3"), Value::Null, Value::Null)
    );
    assert_eq!(
        page(format!("around={}&limit=4", id("5"))).await,
        (words("6 5 4 3"), json!(id("3")), json!(id("6")))
    );
    // The row of another conversation is as good a place as any.
    assert_eq!(page(format!("around={}&limit=2", id("5") + 1)).await.0, words("6 5"));
    assert_eq!(
        page(format!("around={}&limit=4", id("9"))).await,
        (words("9 8 7"), json!(id("7")), Value::Null)
    );
    assert_eq!(page("around=0&limit=2".to_owned()).await, (words("1 0"), Value::Null, json!(id("1"))));
    assert_eq!(
        page(format!("around={}&before={}&limit=4", id("5"), id("6"))).await,
        (words("5 4 3"), json!(id("3")), Value::Null)
    );
    let row = rows.iter().find(|row| row["body"]["text"] == "5").expect("a row");
    let (sender, client_id) = (&row["sender"], row["client_id"].as_str().expect("a key"));
    assert_eq!(page(format!("sender={sender}&client_id={client_id}&limit=2")).await.0, words("5 4"));
    let since = async |time: u64| page(format!("since={time}&limit=2")).await.0;
    assert_eq!(since(0).await, words("1 0"));
    assert_eq!(since(1 << 60).await, words("9"));
    let at = row["sent_at"].as_str().expect("a time");
    let at = time::OffsetDateTime::parse(at, &time::format_description::well_known::Rfc3339).expect("a time");
    let at = u64::try_from(at.unix_timestamp_nanos() / 1_000_000).expect("after 1970");
    assert_eq!(since(at).await, words("5 4"));
    assert_eq!(since(at + 1).await, words("6 5"));

    let unknown = format!("{path}?sender={}&client_id={client_id}", eve.uid);
    assert_eq!(app.get(&bob, &unknown).await.refused(404), "unknown_message");
    let elsewhere =
        format!("/api/v1/conversations/u:{}/messages?sender={sender}&client_id={client_id}", eve.uid);
    assert_eq!(app.get(&bob, &elsewhere).await.refused(404), "unknown_message");
    for bad in ["after=1&around=2", "sender=1", &format!("client_id={client_id}"), "since=x", "after=-1"] {
        assert_eq!(app.get(&bob, &format!("{path}?{bad}")).await.refused(400), "invalid_query", "{bad}");
    }
}

#[tokio::test]
async fn a_note_to_oneself_is_one_row_and_never_unread() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    app.post(&ann, "/api/v1/messages", message(1, json!({"user": ann.uid}), "milk")).await.ok(201);
    assert_eq!(app.rows(&ann).await.len(), 1);
    let list = app.get(&ann, "/api/v1/conversations").await.ok(200);
    assert_eq!((&list[0]["title"], &list[0]["unread"]), (&json!("ann"), &json!(0)));
}
