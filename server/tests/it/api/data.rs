//! `/me/data`: all that is kept of an account, as one file.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::TestApp;

#[tokio::test]
async fn an_account_downloads_all_that_is_kept_of_it_and_nothing_of_others() {
    let app = TestApp::start_with(|config| config.limits.downloads_per_account_per_day = 2).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.post(&ann, "/api/v1/groups", json!({"name": "walkers", "members": [bob.uid]})).await.ok(201);
    // More than are read at a time.
    for n in 0..450 {
        app.say(&bob, &ann, n, &format!("message {n}")).await;
    }
    app.say(&bob, &bob, 1_000, "a note of Bob").await;
    let download = async || {
        let request = app.request(Method::GET, "/api/v1/me/data").bearer_auth(&ann.token);
        app.send(request).await
    };
    let file = download().await;
    assert_eq!(file.status, 200);
    assert_eq!(file.header("content-type"), "application/x-ndjson");
    assert_eq!(
        file.header("content-disposition"),
        format!("attachment; filename=\"tidemark-{}.jsonl\"", ann.uid)
    );
    let lines: Vec<Value> = file.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let head = &lines[0];
    assert_eq!(
        (&head["type"], &head["uid"], &head["name"]),
        (&json!("account"), &json!(ann.uid), &json!("ann"))
    );
    assert_eq!((&head["version"], &head["recovery_codes_left"]), (&json!(1), &json!(8)));
    assert_eq!(of("session").len(), 1);
    let titles: Vec<&Value> = of("conversation").iter().map(|line| &line["title"]).collect();
    assert_eq!(titles, [&json!("bob"), &json!("walkers")]);
    let rows: Vec<Value> = of("row").iter().map(|line| line["row"].clone()).collect();
    assert_eq!(rows, app.rows(&ann).await);
    assert!(rows.len() > 450 && !file.text.contains("a note of Bob"));
    let end = lines.last().expect("an end");
    assert_eq!((&end["type"], &end["lines"]), (&json!("end"), &json!(lines.len() - 1)));
    for secret in ["argon2", ann.token.as_str()] {
        assert!(!file.text.contains(secret), "{secret}");
    }
    download().await;
    assert_eq!(download().await.refused(429), "rate_limited");
}
