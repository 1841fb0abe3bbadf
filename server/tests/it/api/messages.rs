//! `/messages`, `/messages/batch`.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{TestApp, client_id, message, texts};

const MESSAGES: &str = "/api/v1/messages";
const BATCH: &str = "/api/v1/messages/batch";

#[tokio::test]
async fn a_message_becomes_a_row_in_both_inboxes() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let sent = app.post(&ann, MESSAGES, message(1, json!({"user": bob.uid}), "hi \"Bob\" ☂")).await.ok(201);
    let (anns, bobs) = (app.rows(&ann).await, app.rows(&bob).await);
    assert_eq!(anns[0]["message_id"], sent["message_id"]);
    assert_eq!(anns[0]["conversation"], format!("u:{}", bob.uid));
    let row = &bobs[0];
    assert_eq!(row["conversation"], format!("u:{}", ann.uid));
    assert_eq!((&row["receiver"], &row["sender"]), (&json!(bob.uid), &json!(ann.uid)));
    assert_eq!((&row["kind"], &row["body"]), (&json!("message"), &json!({"text": "hi \"Bob\" ☂"})));
    assert_eq!(row["client_id"], client_id(1));
    assert_eq!(row["sent_at"], sent["sent_at"]);
    assert_eq!(row["partition_key"], "9103", "md5 of 10002");
}

#[tokio::test]
async fn the_same_again_is_the_same_answer_and_another_payload_a_conflict() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let to = json!({"user": bob.uid});
    let first = app.post(&ann, MESSAGES, message(1, to.clone(), "hi")).await.ok(201);
    assert_eq!(app.post(&ann, MESSAGES, message(1, to.clone(), "hi")).await.ok(200), first);
    let other_text = app.post(&ann, MESSAGES, message(1, to, "ho")).await;
    assert_eq!(other_text.refused(409), "client_id_reused");
    let other_receiver = app.post(&ann, MESSAGES, message(1, json!({"user": ann.uid}), "hi")).await;
    assert_eq!(other_receiver.refused(409), "client_id_reused");
    assert_eq!(texts(&app.rows(&bob).await), ["hi"]);
    app.post(&bob, MESSAGES, message(1, json!({"user": ann.uid}), "my own name")).await.ok(201);
}

#[tokio::test]
async fn bad_messages_are_refused_and_leave_nothing() {
    let app = TestApp::start_with(|config| config.limits.text_characters = 10).await;
    let ann = app.sign_up("ann").await;
    let me = json!({"user": ann.uid});
    let id = client_id(1);
    for (body, status, code) in [
        (message(1, json!({"user": 77}), "hi"), 404, "unknown_user"),
        (message(1, json!({"group": 77}), "hi"), 404, "unknown_group"),
        (message(1, json!({}), "hi"), 422, "invalid_body"),
        (message(1, json!({"user": ann.uid, "group": 1}), "hi"), 422, "invalid_body"),
        (message(1, json!({"user": "ann"}), "hi"), 422, "invalid_body"),
        (message(1, json!({"user": -1}), "hi"), 422, "invalid_body"),
        (message(1, me.clone(), ""), 422, "text_empty"),
        (message(1, me.clone(), " \n\t "), 422, "text_empty"),
        (message(1, me.clone(), "12345678901"), 422, "text_too_long"),
        (message(1, me.clone(), "a\u{0}b"), 422, "text_nul"),
        (json!({"client_id": "7", "to": me, "body": {"text": "hi"}}), 422, "invalid_body"),
        (json!({"client_id": id, "body": {"text": "hi"}}), 422, "invalid_body"),
        (json!({"client_id": id, "to": me}), 422, "invalid_body"),
        (json!({"client_id": id, "to": me, "body": {"text": 7}}), 422, "invalid_body"),
        (json!({"to": me, "body": {"text": "hi"}}), 422, "invalid_body"),
        (json!([]), 422, "invalid_body"),
        (Value::Null, 422, "invalid_body"),
    ] {
        assert_eq!(app.post(&ann, MESSAGES, body.clone()).await.refused(status), code, "{body}");
    }
    assert_eq!(app.rows(&ann).await, Vec::<Value>::new());
    app.post(&ann, MESSAGES, message(1, me, "éééééééééé")).await.ok(201);
}

#[tokio::test]
async fn bytes_that_are_no_json_are_refused() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    for (bytes, status, code) in [
        (&b""[..], 400, "malformed_json"),
        (b"{\"client_id\":", 400, "malformed_json"),
        (b"{\"text\": \"\xff\xfe\"}", 400, "invalid_utf8"),
        (b"{\"client_id\": \"\\ud800\"}", 400, "malformed_json"),
        (&[b'['; 200_000], 413, "body_too_large"),
        (&[b'['; 100_000], 422, "invalid_body"),
    ] {
        let request = app.request(Method::POST, MESSAGES).bearer_auth(&ann.token).body(bytes.to_vec());
        let answer = app.send(request).await;
        assert_eq!(
            answer.refused(status),
            code,
            "{:?}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(30)])
        );
    }
    app.get(&ann, "/api/v1/me").await.ok(200);
}

#[tokio::test]
async fn a_batch_answers_each_message_in_order() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let to = json!({"user": bob.uid});
    let batch = json!({"messages": [
        message(1, to.clone(), "one"),
        message(2, json!({"user": 77}), "to nobody"),
        {"client_id": "no uuid"},
        message(3, to.clone(), "two"),
        message(1, to.clone(), "one"),
    ]});
    let results = app.post(&ann, BATCH, batch).await.ok(200)["results"].as_array().expect("results").clone();
    assert_eq!(results.len(), 5);
    assert_eq!(results[1]["error"]["code"], "unknown_user");
    assert_eq!(results[2]["error"]["code"], "invalid_body");
    assert!(results[0]["message_id"].as_u64() < results[3]["message_id"].as_u64());
    assert_eq!(results[4], results[0], "a repetition, also within a batch");
    assert_eq!(texts(&app.rows(&bob).await), ["one", "two"]);
}

#[tokio::test]
async fn a_batch_has_1_to_200_messages() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let batch = |n: u128| -> Value {
        let messages = (0..n).map(|n| message(n, json!({"user": ann.uid}), "hi"));
        json!({"messages": messages.collect::<Vec<_>>()})
    };
    for n in [0, 201] {
        assert_eq!(app.post(&ann, BATCH, batch(n)).await.refused(422), "invalid_body");
    }
    let results = app.post(&ann, BATCH, batch(200)).await.ok(200);
    assert_eq!(results["results"].as_array().map(Vec::len), Some(200));
    assert_eq!(app.rows(&ann).await.len(), 200);
}

#[tokio::test]
async fn messages_survive_a_restart_and_ids_never_go_back() {
    let mut app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let before = app.say(&ann, &bob, 1, "before").await;
    app.restart().await;
    let after = app.say(&ann, &bob, 2, "after").await;
    assert!(after > before);
    assert_eq!(texts(&app.rows(&bob).await), ["before", "after"]);
    let again = app.post(&ann, MESSAGES, message(1, json!({"user": bob.uid}), "before")).await.ok(200);
    assert_eq!(again["message_id"], before);
}
