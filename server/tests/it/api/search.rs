//! Search in one's own messages and moments.

use serde_json::{Value, json};
use tidemark_test_support::until::until;

use crate::support::{Person, TestApp, client_id};

/// Sends a text, and tells its id in the sender's inbox.
async fn say(app: &TestApp, from: &Person, to: &str, n: u128, text: &str) -> u64 {
    let (kind, id) = to.split_once(':').expect("a conversation");
    let kind = if kind == "u" { "user" } else { "group" };
    let to = json!({kind: id.parse::<u64>().expect("a number")});
    let body = json!({"client_id": client_id(n), "to": to, "body": {"text": text}});
    app.post(from, "/api/v1/messages", body).await.ok(201)["message_id"].as_u64().expect("an id")
}

async fn page(app: &TestApp, who: &Person, query: &[(&str, &str)]) -> Value {
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    app.get(who, &format!("/api/v1/search?{}", query.join("&"))).await.ok(200)
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The texts of all that is found, which is one page.
async fn texts(app: &TestApp, who: &Person, query: &[(&str, &str)]) -> Vec<String> {
    let page = page(app, who, query).await;
    assert_eq!((&page["next_before"], &page["complete"]), (&Value::Null, &json!(true)), "{page}");
    let text = |hit: &Value| hit["row"]["body"]["text"].as_str().expect("a text").to_owned();
    page["hits"].as_array().expect("hits").iter().map(text).collect()
}

#[tokio::test]
async fn ones_own_messages_are_found_by_words_people_conversations_and_times() {
    let mut app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let (to_ann, to_bob) = (format!("u:{}", ann.uid), format!("u:{}", bob.uid));
    say(&app, &ann, &to_bob, 1, "Low tide is at nine").await;
    say(&app, &bob, &to_ann, 2, "我们明天去北京开会").await;
    say(&app, &eve, &to_ann, 3, "The Crème brûlée, by the tides").await;
    let gid =
        app.post(&ann, "/api/v1/groups", json!({"name": "walk", "members": [bob.uid]})).await.ok(201)["gid"]
            .clone();
    let group = format!("g:{gid}");
    say(&app, &bob, &group, 4, "High tide at ten 🎉").await;

    for restarted in [false, true] {
        if restarted {
            app.restart().await;
        }
        let tides = ["High tide at ten 🎉", "The Crème brûlée, by the tides", "Low tide is at nine"];
        assert_eq!(texts(&app, &ann, &[("q", "TIDE")]).await, tides);
        assert_eq!(texts(&app, &bob, &[("q", "tide")]).await, [tides[0], tides[2]]);
        assert_eq!(texts(&app, &ann, &[("q", "北京")]).await, ["我们明天去北京开会"]);
        assert_eq!(texts(&app, &ann, &[("q", "京")]).await.len(), 1);
        assert_eq!(texts(&app, &ann, &[("q", "creme BRULEE")]).await, [tides[1]]);
        assert_eq!(texts(&app, &ann, &[("q", "🎉")]).await, [tides[0]]);
        assert_eq!(texts(&app, &ann, &[("q", "tide"), ("conversation", &group)]).await, [tides[0]]);
        assert_eq!(texts(&app, &ann, &[("sender", &eve.uid.to_string())]).await, [tides[1]]);
        assert_eq!(texts(&app, &ann, &[("conversation", &to_bob)]).await.len(), 2);
        assert_eq!(texts(&app, &ann, &[("q", "tide"), ("from", "4000000000000")]).await, [] as [&str; 0]);
        assert_eq!(texts(&app, &ann, &[("q", "tide"), ("to", "4000000000000")]).await.len(), 3);
        assert_eq!(texts(&app, &eve, &[("q", "nine")]).await, [] as [&str; 0]);
    }
    let found = page(&app, &ann, &[("q", "at tide")]).await;
    assert_eq!(found["hits"][0]["marks"], json!([[5, 9], [10, 12]]));
    let first = page(&app, &ann, &[("q", "tide"), ("limit", "2")]).await;
    assert_eq!(first["hits"].as_array().map(Vec::len), Some(2));
    let before = first["next_before"].to_string();
    assert_eq!(first["hits"][1]["row"]["message_id"].to_string(), before);
    let second = page(&app, &ann, &[("q", "tide"), ("limit", "2"), ("before", &before)]).await;
    assert_eq!((second["hits"].as_array().map(Vec::len), &second["next_before"]), (Some(1), &Value::Null));
}

#[tokio::test]
async fn what_is_found_is_as_it_stands() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let with_bob = format!("u:{}", bob.uid);
    let first = say(&app, &ann, &with_bob, 1, "the harbour").await;
    let second = say(&app, &ann, &with_bob, 2, "the harbour at night").await;
    let third = say(&app, &ann, &with_bob, 3, "no harbour for me").await;
    let at = |id: u64| format!("/api/v1/conversations/{with_bob}/messages/{id}");
    let edit = json!({"client_id": client_id(4), "body": {"text": "the lighthouse"}});
    app.post(&ann, &format!("{}/edit", at(first)), edit).await.ok(201);
    app.post(&ann, &format!("{}/recall", at(second)), json!({"client_id": client_id(5)})).await.ok(201);
    app.post(&ann, &format!("{}/delete", at(third)), json!({"client_id": client_id(6)})).await.ok(201);
    assert_eq!(texts(&app, &ann, &[("q", "harbour")]).await, [] as [&str; 0]);
    assert_eq!(texts(&app, &bob, &[("q", "harbour")]).await, ["no harbour for me"]);
    for who in [&ann, &bob] {
        assert_eq!(texts(&app, who, &[("q", "light")]).await, ["the lighthouse"]);
    }
    // Whom one has blocked stays in the conversation, and is found there.
    let block = json!({"client_id": client_id(7), "value": {"blocked": true}});
    app.put(&bob, &format!("/api/v1/conversations/u:{}/settings/block", ann.uid), block).await.ok(201);
    assert_eq!(texts(&app, &bob, &[("q", "light")]).await, ["the lighthouse"]);
}

#[tokio::test]
async fn moments_are_found_and_comments_are_not() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let body = json!({"client_id": client_id(1), "text": "A moment at the pier", "except": []});
    let moment = app.post(&ann, "/api/v1/moments", body).await.ok(201)["message_id"].clone();
    let comment = json!({"client_id": client_id(2), "text": "That pier"});
    app.post(&ann, &format!("/api/v1/moments/{moment}/comments"), comment).await.ok(201);
    let found = page(&app, &ann, &[("q", "pier")]).await;
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["hits"][0]["row"]["kind"], "moment");
    assert_eq!(texts(&app, &ann, &[("conversation", "u:0")]).await, ["A moment at the pier"]);
}

#[tokio::test]
async fn what_cannot_be_looked_for_is_refused_in_one_sentence() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    say(&app, &ann, &format!("u:{}", ann.uid), 1, "100% of a*b -- \"quoted\" (or not)").await;
    let many = "w ".repeat(100) + "x";
    for (query, code) in [
        (String::new(), "search_empty"),
        ("q=".to_owned(), "search_empty"),
        (format!("q={}", encoded("*?%_\"'();--")), "search_empty"),
        (format!("q={}", encoded("\0\u{7}\u{200b}")), "search_empty"),
        (format!("q={}", "a".repeat(10_000)), "search_too_long"),
        (format!("q={}", encoded(&many)), "search_too_long"),
        ("q=a&sender=x".to_owned(), "invalid_query"),
        ("q=a&conversation=x".to_owned(), "invalid_query"),
        ("q=a&limit=0".to_owned(), "invalid_query"),
        ("q=a&from=yesterday".to_owned(), "invalid_query"),
    ] {
        assert_eq!(app.get(&ann, &format!("/api/v1/search?{query}")).await.refused(400), code, "{query}");
    }
    // There are no operators.
    for (search, hits) in
        [("a* OR", 1), ("NEAR(100, of)", 0), ("\"quoted\" -", 1), ("(or not", 1), ("a", 1), (".*a.*", 1)]
    {
        assert_eq!(texts(&app, &ann, &[("q", search)]).await.len(), hits, "{search}");
    }
}

/// Messages of a batch, and how many batches: more than a segment of the index.
const BATCH: u128 = 200;
const BATCHES: u128 = 12;

/// Sends notes to oneself, each with a number of its own, and tells the first one's id.
async fn say_many(app: &TestApp, who: &Person) -> u64 {
    let mut first = None;
    for batch in 0..BATCHES {
        let note = |n: u128| {
            let n = batch * BATCH + n;
            json!({"client_id": client_id(1_000 + n), "to": {"user": who.uid}, "body": {"text": format!("note {n} of the tide")}})
        };
        let messages: Vec<Value> = (0..BATCH).map(note).collect();
        let sent = app.post(who, "/api/v1/messages/batch", json!({"messages": messages})).await.ok(200);
        first = first.or(sent["results"][0]["message_id"].as_u64());
    }
    first.expect("an id")
}

/// Waits until all that can be is indexed.
async fn until_indexed(app: &TestApp, rows: f64) {
    until("it is indexed", async || {
        let metrics = app.send_unjudged(app.request(reqwest::Method::GET, "/metrics")).await.text;
        let of = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse::<f64>().ok()).unwrap_or_else(|| panic!("{name} in {metrics}"))
        };
        of("tidemark_search_waiting") == 0.0 && of("tidemark_search_indexed_total") >= rows
    })
    .await;
}

/// How many hits all pages have.
async fn count(app: &TestApp, who: &Person, words: &str) -> usize {
    let (mut count, mut before) = (0, String::from("9007199254740991"));
    loop {
        let page = page(app, who, &[("q", words), ("limit", "200"), ("before", &before)]).await;
        assert_eq!(page["complete"], true);
        count += page["hits"].as_array().expect("hits").len();
        match page["next_before"].as_u64() {
            Some(next) => before = next.to_string(),
            None => return count,
        }
    }
}

#[tokio::test]
async fn a_large_inbox_is_indexed_and_found_as_it_stands() {
    let mut app = TestApp::start_with(|config| {
        config.limits.sends_per_account_per_second = 0;
        config.limits.read_kib_per_account_per_second = 0;
    })
    .await;
    let ann = app.sign_up("ann").await;
    let first = say_many(&app, &ann).await;
    until_indexed(&app, 2_048.0).await;
    let all = (BATCHES * BATCH) as usize;
    for restarted in [false, true] {
        if restarted {
            app.restart().await;
        }
        assert_eq!(count(&app, &ann, "tid").await, all);
        assert_eq!(count(&app, &ann, "note tide 1234").await, 1);
        assert_eq!(count(&app, &ann, "lighthouse").await, 0);
    }
    let at = |id: u64, what: &str| format!("/api/v1/conversations/u:{}/messages/{id}/{what}", ann.uid);
    let edit = json!({"client_id": client_id(1), "body": {"text": "the lighthouse"}});
    app.post(&ann, &at(first, "edit"), edit).await.ok(201);
    app.post(&ann, &at(first + 1, "recall"), json!({"client_id": client_id(2)})).await.ok(201);
    assert_eq!(count(&app, &ann, "lighthouse").await, 1);
    assert_eq!(count(&app, &ann, "tide").await, all - 2);
    // Also on a page that begins below the row of its edit.
    let indexed =
        async || page(&app, &ann, &[("q", "lighthouse"), ("before", &(first + 1).to_string())]).await;
    assert_eq!(indexed().await["hits"][0]["row"]["message_id"], first);
}
