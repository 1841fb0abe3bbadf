//! Reports of messages and people: who gets them, what is kept, and how many one account makes.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_test_support::until::until;

use crate::support::{Answer, Person, TestApp, client_id, message};

fn report(n: u128, reason: &str, text: &str) -> Value {
    json!({"client_id": client_id(n), "reason": reason, "text": text})
}

/// The row with this text in the inbox of `who`, in an address.
async fn message_path(app: &TestApp, who: &Person, text: &str) -> String {
    let rows = app.rows(who).await;
    let row = rows.iter().find(|row| row["body"]["text"] == text).expect("a message");
    let conversation = row["conversation"].as_str().expect("a conversation");
    format!("/api/v1/conversations/{conversation}/messages/{}", row["message_id"])
}

async fn report_message(app: &TestApp, who: &Person, text: &str, body: Value) -> Answer {
    app.post(who, &format!("{}/report", message_path(app, who, text).await), body).await
}

/// A group of Ann, who owns it, Bob and Eve, in which Eve has said something; with the address of the group.
async fn walkers(app: &TestApp) -> (Person, Person, Person, String) {
    let (ann, bob, eve) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("eve").await);
    let made = json!({"name": "walkers", "members": [bob.uid, eve.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    app.post(&eve, "/api/v1/messages", message(1, json!({"group": gid}), "buy this")).await.ok(201);
    (ann, bob, eve, format!("/api/v1/groups/{gid}"))
}

async fn listed(app: &TestApp, who: &Person, group: &str) -> Vec<Value> {
    let page = app.get(who, &format!("{group}/reports")).await.ok(200);
    page["reports"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn administrators_get_reports_of_their_groups_messages_and_act_on_them() {
    let mut app = TestApp::start().await;
    let (ann, bob, eve, group) = walkers(&app).await;
    let first = report(11, "spam", " every day ");
    report_message(&app, &bob, "buy this", first.clone()).await.ok(204);
    report_message(&app, &bob, "buy this", first).await.ok(204);
    let another = report_message(&app, &bob, "buy this", report(11, "illegal", "")).await;
    assert_eq!(another.refused(409), "client_id_reused");
    app.restart().await;
    let reports = listed(&app, &ann, &group).await;
    assert_eq!(reports.len(), 1);
    let (number, own) = (&reports[0]["number"], &app.rows(&ann).await[1]["message_id"]);
    assert_eq!((&reports[0]["reason"], &reports[0]["text"]), (&json!("spam"), &json!("every day")));
    assert_eq!(reports[0]["about"], json!({"uid": eve.uid, "name": "eve"}));
    assert_eq!(
        (&reports[0]["message"]["text"], &reports[0]["message"]["message_id"]),
        (&json!("buy this"), own)
    );
    assert!(!reports[0].to_string().contains("bob"), "who reports is not named: {}", reports[0]);

    let dismiss = format!("{group}/reports/{number}");
    assert_eq!(app.get(&eve, &format!("{group}/reports")).await.refused(403), "administrators_only");
    assert_eq!(app.delete(&eve, &dismiss).await.refused(403), "administrators_only");
    let outside = app.sign_up("max").await;
    assert_eq!(app.get(&outside, &format!("{group}/reports")).await.refused(404), "unknown_group");
    assert_eq!(app.delete(&ann, &format!("{group}/reports/999")).await.refused(404), "unknown_report");
    // The text stays with the report when the message is gone.
    let recall = format!("{}/recall", message_path(&app, &ann, "buy this").await);
    app.post(&ann, &recall, json!({"client_id": client_id(12)})).await.ok(201);
    let removed = &listed(&app, &ann, &group).await[0]["message"];
    assert_eq!((&removed["text"], removed.get("message_id")), (&json!("buy this"), None));
    app.delete(&ann, &dismiss).await.ok(204);
    app.delete(&ann, &dismiss).await.ok(204);
    assert_eq!(listed(&app, &ann, &group).await, Vec::<Value>::new());
}

#[tokio::test]
async fn what_is_for_one_alone_is_not_told_to_a_group() {
    let app = TestApp::start().await;
    let (ann, bob, eve, group) = walkers(&app).await;
    app.say(&eve, &bob, 2, "between us").await;
    report_message(&app, &bob, "between us", report(21, "harassment", "")).await.ok(204);
    app.post(&bob, &format!("/api/v1/users/{}/report", eve.uid), report(22, "other", "a fake")).await.ok(204);
    assert_eq!(listed(&app, &ann, &group).await, Vec::<Value>::new());
    // The account's own data has them.
    let data = app.get(&bob, "/api/v1/me/data").await.text;
    let own: Vec<Value> = data.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let own: Vec<&Value> = own.iter().filter(|line| line["type"] == "report").collect();
    assert_eq!((&own[0]["message"], &own[1]["text"]), (&json!("between us"), &json!("a fake")));
    assert_eq!((own.len(), &own[1]["about"]), (2, &json!(eve.uid)));
}

#[tokio::test]
async fn a_report_that_makes_no_sense_is_refused_by_its_reason() {
    let app = TestApp::start().await;
    let (ann, bob, eve, _) = walkers(&app).await;
    let person = |who: &Person| format!("/api/v1/users/{}/report", who.uid);
    assert_eq!(app.post(&bob, &person(&bob), report(1, "spam", "")).await.refused(422), "bad_report");
    assert_eq!(
        report_message(&app, &eve, "buy this", report(2, "spam", "")).await.refused(422),
        "bad_report"
    );
    let long = "é".repeat(1_001);
    assert_eq!(app.post(&bob, &person(&eve), report(3, "spam", &long)).await.refused(422), "bad_report");
    assert_eq!(app.post(&bob, &person(&eve), report(4, "rude", "")).await.refused(422), "invalid_body");
    let nobody = app.post(&bob, "/api/v1/users/99999/report", report(5, "spam", "")).await;
    assert_eq!(nobody.refused(404), "unknown_user");
    // The row that says that the group was made.
    let row = &app.rows(&bob).await[0];
    let path = |conversation: &Value| {
        let conversation = conversation.as_str().expect("a conversation");
        format!("/api/v1/conversations/{conversation}/messages/{}/report", row["message_id"])
    };
    let change = app.post(&bob, &path(&row["conversation"]), report(6, "spam", "")).await;
    assert_eq!(change.refused(422), "no_message");
    let elsewhere = app.post(&bob, &path(&json!(format!("u:{}", ann.uid))), report(7, "spam", "")).await;
    assert_eq!(elsewhere.refused(422), "not_in_conversation");
    app.post(&bob, &person(&eve), report(8, "spam", &"é".repeat(1_000))).await.ok(204);
}

#[tokio::test]
async fn an_account_makes_few_reports_a_day() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let path = format!("/api/v1/users/{}/report", bob.uid);
    for n in 1..=20 {
        app.post(&ann, &path, report(n, "spam", "")).await.ok(204);
    }
    let refused = app.post(&ann, &path, report(21, "spam", "")).await;
    assert_eq!(refused.refused(429), "too_many_reports");
    app.post(&ann, &path, report(20, "spam", "")).await.ok(204);
    app.pass(Duration::from_secs(86_400)).await;
    app.post(&ann, &path, report(21, "spam", "")).await.ok(204);
}

#[tokio::test]
async fn a_deleted_account_takes_what_reports_say_of_it_along() {
    let app = TestApp::start().await;
    let (ann, bob, eve, group) = walkers(&app).await;
    report_message(&app, &bob, "buy this", report(31, "spam", "I am Bob, and she writes this daily"))
        .await
        .ok(204);
    app.post(&bob, "/api/v1/me/delete", json!({"password": "correct horse"})).await.ok(204);
    until("the reporter's words are gone", async || listed(&app, &ann, &group).await[0]["text"] == "").await;
    assert_eq!(listed(&app, &ann, &group).await[0]["message"]["text"], "buy this");
    app.post(&eve, "/api/v1/me/delete", json!({"password": "correct horse"})).await.ok(204);
    let is_gone = async || listed(&app, &ann, &group).await.is_empty();
    until("the report about a deleted account is gone", is_gone).await;
}
