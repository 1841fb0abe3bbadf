//! How many have read, where several servers tell the same authors.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_test_support::until::until;

use super::servers::beside;
use crate::support::{Database, Person, TestApp, client_id, message};

/// A group of these people, in which `author` says something under the `n`th name.
async fn said(app: &TestApp, author: &Person, members: &[&Person], n: u128) -> String {
    let uids: Vec<u64> = members.iter().map(|person| person.uid).collect();
    let made = app.post(author, "/api/v1/groups", json!({"name": "walkers", "members": uids})).await.ok(201);
    app.post(author, "/api/v1/messages", message(n, json!({"group": made["gid"]}), "hi")).await.ok(201);
    format!("g:{}", made["gid"])
}

async fn reads(app: &TestApp, who: &Person, conversation: &str) {
    let rows = app.rows(who).await;
    let last = rows.iter().rfind(|row| row["kind"] == "message" && row["conversation"] == conversation);
    let read = json!({"message_id": last.expect("a message")["message_id"]});
    app.put(who, &format!("/api/v1/conversations/{conversation}/read"), read).await.ok(204);
}

/// The row by which `author` knows how many have read there.
async fn told(app: &TestApp, author: &Person, conversation: &str) -> Option<Value> {
    let rows = app.rows(author).await;
    rows.into_iter().rfind(|row| row["kind"] == "seen" && row["conversation"] == conversation)
}

async fn is_told_of(app: &TestApp, author: &Person, conversation: &str, n: u128, count: u64) -> bool {
    let counts = json!([{"client_id": client_id(n), "count": count}]);
    told(app, author, conversation).await.is_some_and(|row| row["body"]["counts"] == counts)
}

/// The database's clock stands still until the test moves it.
#[tokio::test]
async fn an_author_gets_one_row_a_second_from_all_servers_together() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob, cat) = (one.sign_up("ann").await, one.sign_up("bob").await, other.sign_up("cat").await);
    let dan = other.sign_up("dan").await;
    let walkers = said(&one, &ann, &[&bob, &cat, &dan], 1).await;
    let hikers = said(&one, &dan, &[&cat], 2).await;
    reads(&one, &bob, &walkers).await;
    until("one has read", async || is_told_of(&one, &ann, &walkers, 1, 1).await).await;
    let first = told(&one, &ann, &walkers).await;

    // The other server comes to the groups in this order, so it has been at the first one when Dan is told.
    reads(&other, &cat, &walkers).await;
    reads(&other, &cat, &hikers).await;
    until("Dan is told", async || is_told_of(&other, &dan, &hikers, 2, 1).await).await;
    assert_eq!(told(&other, &ann, &walkers).await, first, "a second row within the second");

    let second = Duration::from_secs(1);
    TestApp::pass_together(&[&one, &other], second).await;
    until("two have read", async || is_told_of(&one, &ann, &walkers, 1, 2).await).await;
    // The server that was first has no leave either.
    let news = said(&one, &cat, &[&bob], 3).await;
    reads(&one, &dan, &walkers).await;
    reads(&one, &bob, &news).await;
    until("Cat is told", async || is_told_of(&one, &cat, &news, 3, 1).await).await;
    assert!(is_told_of(&one, &ann, &walkers, 1, 2).await, "a third row within the second");
    TestApp::pass_together(&[&one, &other], second).await;
    until("three have read", async || is_told_of(&one, &ann, &walkers, 1, 3).await).await;
}
