//! How many strangers a day one account puts into groups or writes to, where several servers count them together.

use std::time::Duration;

use serde_json::json;

use crate::support::{Database, TestApp, message};

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn an_account_puts_few_strangers_a_day_into_groups_of_all_servers_together() {
    let one = Database::Postgres.start_with(|config| config.limits.strangers_per_account_per_day = 3).await;
    let url = one.config.storage.database_url.clone();
    let other = Database::Postgres
        .start_with(|config| {
            config.storage.database_url = url;
            config.limits.strangers_per_account_per_day = 3;
        })
        .await;
    let (ann, bob, eve) = (one.sign_up("ann").await, one.sign_up("bob").await, other.sign_up("eve").await);
    let (max, dan) = (other.sign_up("max").await, one.sign_up("dan").await);
    let body = json!({"name": "walkers", "members": [bob.uid, eve.uid]});
    let members =
        format!("/api/v1/groups/{}/members", one.post(&ann, "/api/v1/groups", body).await.ok(201)["gid"]);

    // All of them or none.
    let body = json!({"name": "hikers", "members": [max.uid, dan.uid]});
    assert_eq!(other.post(&ann, "/api/v1/groups", body).await.refused(429), "too_many_strangers");
    // Counted by one server and given back: he is in it.
    let again = other.post(&ann, &members, json!({"uid": bob.uid})).await;
    assert_eq!(again.refused(409), "already_member");
    other.post(&ann, &members, json!({"uid": max.uid})).await.ok(204);
    for server in [&one, &other] {
        let refused = server.post(&ann, &members, json!({"uid": dan.uid})).await;
        assert_eq!(refused.refused(429), "too_many_strangers");
        assert!(refused.header("retry-after").parse::<u64>().expect("seconds") <= DAY.as_secs());
    }
    let body = json!({"name": "hikers", "members": [max.uid, dan.uid]});
    one.post(&bob, "/api/v1/groups", body).await.ok(201);

    TestApp::pass_together(&[&one, &other], DAY).await;
    other.post(&ann, &members, json!({"uid": dan.uid})).await.ok(204);
}

#[tokio::test]
async fn an_account_writes_to_few_strangers_a_day_on_all_servers_together() {
    let one =
        Database::Postgres.start_with(|config| config.limits.first_messages_per_account_per_day = 2).await;
    let url = one.config.storage.database_url.clone();
    let other = Database::Postgres
        .start_with(|config| {
            config.storage.database_url = url;
            config.limits.first_messages_per_account_per_day = 2;
        })
        .await;
    let (ann, bob, eve) = (one.sign_up("ann").await, one.sign_up("bob").await, other.sign_up("eve").await);
    let max = other.sign_up("max").await;
    one.say(&ann, &bob, 1, "hello").await;
    other.say(&ann, &bob, 2, "hello again").await;
    other.say(&ann, &eve, 3, "hello").await;
    for server in [&one, &other] {
        let body = message(4, json!({"user": max.uid}), "hello");
        let refused = server.post(&ann, "/api/v1/messages", body).await;
        assert_eq!(refused.refused(429), "too_many_first_messages");
    }
    TestApp::pass_together(&[&one, &other], DAY).await;
    one.say(&ann, &max, 4, "hello").await;
}
