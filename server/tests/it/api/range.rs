//! `/range`, `/seq`.

use serde_json::{Value, json};

use crate::support::{TestApp, texts};

async fn ten_rows() -> (TestApp, crate::support::Person, Vec<u64>) {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let mut ids = Vec::new();
    for n in 0..10 {
        ids.push(app.say(&ann, &ann, n, &n.to_string()).await);
    }
    (app, ann, ids)
}

#[tokio::test]
async fn a_range_is_walked_forward_and_backward_by_next_start() {
    let (app, ann, ids) = ten_rows().await;
    for (direction, start, end) in [("forward", "INF_MIN", "INF_MAX"), ("backward", "INF_MAX", "INF_MIN")] {
        let (mut start, mut seen) = (start.to_owned(), Vec::new());
        loop {
            let path = format!("/api/v1/range?start={start}&end={end}&limit=3&direction={direction}");
            let page = app.get(&ann, &path).await.ok(200);
            let rows = page["rows"].as_array().expect("rows").clone();
            assert!(rows.len() <= 3);
            seen.extend(rows.iter().map(|row| row["message_id"].as_u64().expect("an id")));
            match page["next_start"].as_u64() {
                Some(next) => start = next.to_string(),
                None => break,
            }
        }
        let mut expected = ids.clone();
        if direction == "backward" {
            expected.reverse();
        }
        assert_eq!(seen, expected, "{direction}");
    }
}

#[tokio::test]
async fn start_is_inclusive_and_end_exclusive() {
    let (app, ann, ids) = ten_rows().await;
    let path = format!("/api/v1/range?start={}&end={}", ids[3], ids[6]);
    let page = app.get(&ann, &path).await.ok(200);
    assert_eq!(texts(page["rows"].as_array().expect("rows")), ["3", "4", "5"]);
    assert_eq!(page["next_start"], Value::Null);
    let path = format!("/api/v1/range?start={}&end={}&direction=backward", ids[6], ids[3]);
    let page = app.get(&ann, &path).await.ok(200);
    assert_eq!(texts(page["rows"].as_array().expect("rows")), ["6", "5", "4"]);
    let path = format!("/api/v1/range?start={}&limit=999999999999999999999", ids[9] + 1);
    assert_eq!(app.get(&ann, &path).await.ok(200)["rows"], json!([]));
}

#[tokio::test]
async fn bad_ranges_are_refused() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    for (query, code) in [
        ("start=5&end=5", "bad_range"),
        ("start=6&end=5", "bad_range"),
        ("start=INF_MAX&end=INF_MIN", "bad_range"),
        ("start=5&end=5&direction=backward", "bad_range"),
        ("start=5&end=6&direction=backward", "bad_range"),
        ("limit=0", "bad_range"),
        ("limit=-1", "invalid_query"),
        ("limit=many", "invalid_query"),
        ("start=one", "invalid_query"),
        ("start=1.5", "invalid_query"),
        ("start=99999999999999999999", "invalid_query"),
        ("end=inf", "invalid_query"),
        ("direction=sideways", "invalid_query"),
    ] {
        assert_eq!(app.get(&ann, &format!("/api/v1/range?{query}")).await.refused(400), code, "{query}");
    }
}

#[tokio::test]
async fn consumed_counts_names_and_values_rounded_up_once() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let read =
        async || app.get(&ann, "/api/v1/range").await.ok(200)["consumed"]["read"].as_u64().expect("a number");
    assert_eq!(read().await, 1, "looking costs a unit");
    for n in 0..3 {
        app.say(&ann, &ann, n, &"x".repeat(4_000)).await;
    }
    // A row: 4,011 bytes of body and 172 around it, worked out by hand from names and values.
    let row = 4_011
        + "body".len()
        + ("receiver".len() + 8)
        + ("message_id".len() + 8)
        + ("sender".len() + 8)
        + ("sent_at".len() + 8)
        + ("partition_key".len() + 4)
        + ("kind".len() + "message".len())
        + ("conversation".len() + "u:10001".len())
        + ("client_id".len() + 36);
    assert_eq!(read().await, (3 * row as u64).div_ceil(4_096));
}

#[tokio::test]
async fn nobody_reads_the_rows_of_others() {
    let app = TestApp::start().await;
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    app.say(&ann, &bob, 1, "between us").await;
    for path in [
        "/api/v1/range".to_owned(),
        "/api/v1/conversations".to_owned(),
        format!("/api/v1/conversations/u:{}/messages", ann.uid),
        format!("/api/v1/conversations/u:{}/messages", bob.uid),
    ] {
        let answer = app.get(&eve, &path).await;
        answer.ok(200);
        assert!(!answer.text.contains("between us"), "{path}");
    }
    assert_eq!(app.get(&eve, "/api/v1/seq").await.ok(200)["seq"], 0);
}

#[tokio::test]
async fn seq_is_the_latest_committed_id_also_after_a_restart() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let before = app.get(&ann, "/api/v1/seq").await.ok(200);
    assert_eq!(before["seq"], 0);
    let id = app.say(&ann, &ann, 1, "note").await;
    assert_eq!(app.get(&ann, "/api/v1/seq").await.ok(200)["seq"], id);
    app.restart().await;
    let after = app.get(&ann, "/api/v1/seq").await.ok(200);
    assert_eq!(after["seq"], id, "not the ceiling that the numbers jumped to");
    assert_eq!(after["history"], before["history"]);
}
