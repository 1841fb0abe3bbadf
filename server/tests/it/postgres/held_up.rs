//! Servers that stand still, a database that takes no connection, and the same request at two servers at once.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tidemark::domain::Uid;
use tidemark_client::{Draft, RangeQuery, Recipient};
use tidemark_test_support::servers::postgres::{Server as DatabaseServer, durable_database};
use tidemark_test_support::until::until;
use tidemark_trials::server::Server;
use tokio::process::Command;
use tokio::time::timeout;

use super::refusals::{as_owner, as_role, refused_with};
use super::servers::beside;
use crate::support::{Database, message, texts};

async fn signal(server: &Server, name: &str) {
    let pid = server.pid().expect("it runs").to_string();
    assert!(Command::new("kill").args([name, &pid]).status().await.expect("runs").success());
}

/// A commit is one call, so the locks of a server that stands still in the middle of it go when the database has carried it out.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_stopped_in_the_middle_of_a_commit_holds_no_inbox_up() {
    let url = durable_database().await;
    let settings = [
        ("TIDEMARK_STORAGE__DATABASE_URL", url.clone()),
        ("TIDEMARK_STORAGE__STATEMENT_SECONDS", "3600".to_owned()),
    ];
    let binary = Path::new(env!("CARGO_BIN_EXE_tidemark"));
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let stopped = Server::start_with(&settings, 0, binary, folders[0].path()).await.expect("starts");
    let other = Server::start_with(&settings, 0, binary, folders[1].path()).await.expect("starts");
    let http = other.http().expect("an address");
    let ann = http.sign_up("ann", "a long enough password").await.expect("signed up");
    let bob = http.sign_up("bob", "a long enough password").await.expect("signed up");
    let (anns, bobs) = (http.with_token(&ann.token), http.with_token(&bob.token));
    anns.send(&Draft::text(Recipient::User(bob.uid), "first")).await.expect("sent");

    // Bob's head is the last one that a message between the two locks, whoever sends it.
    let keys = [ann.uid, bob.uid].map(|uid| Uid(uid).partition_key().as_str().to_owned());
    let last = if (&keys[0], ann.uid) > (&keys[1], bob.uid) { 0 } else { 1 };
    let lock = format!(
        "BEGIN; SELECT FROM heads WHERE partition_key = '{}' AND receiver = {} FOR UPDATE",
        keys[last],
        [ann.uid, bob.uid][last]
    );
    let mut holder = PgConnection::connect(&url).await.expect("connected");
    holder.execute(AssertSqlSafe(lock)).await.expect("held");
    let draft = Draft::text(Recipient::User(bob.uid), "second");
    let sending = tokio::spawn({
        let (http, draft) = (stopped.http().expect("an address").with_token(&ann.token), draft.clone());
        async move { http.send(&draft).await }
    });
    let mut beside = PgConnection::connect(&url).await.expect("connected");
    until("the commit waits with the other head locked", async || {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut beside).await.expect("counted") == 1
    })
    .await;
    signal(&stopped, "-STOP").await;
    holder.execute("COMMIT").await.expect("released");

    // Not the timeouts of the database help here: it would end an idle transaction after five seconds.
    let draft_of_bob = Draft::text(Recipient::User(ann.uid), "third");
    let third = timeout(Duration::from_secs(4), bobs.send(&draft_of_bob))
        .await
        .expect("in time")
        .expect("not held up");
    signal(&stopped, "-CONT").await;
    let second = sending.await.expect("no panic").expect("stored, and answered after all");
    assert!(second.message_id < third.message_id, "it was carried out while its server stood still");
    assert_eq!(anns.send(&draft).await.expect("the first answer"), second);
    for one in [&anns, &bobs] {
        let rows = one.range(&RangeQuery::after(0)).await.expect("read").rows;
        let texts: Vec<_> = rows.iter().filter_map(tidemark_client::Entry::text).collect();
        assert_eq!(texts, ["first", "second", "third"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_takes_no_connection_sends_are_refused_and_heartbeats_answered_and_all_heals() {
    let database = DatabaseServer::start_with("-c fsync=on");
    let owner = database.new_database().await;
    as_owner(&owner, "CREATE ROLE chat LOGIN; GRANT ALL ON SCHEMA public TO chat").await;
    let url = as_role(&owner, "chat");
    let app = Database::Postgres
        .start_prepared(&owner, |config| config.storage.database_url = url.clone().into())
        .await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let mut device = app.socket(&bob).await;
    device.begin().await;
    let cursor = app.say(&ann, &bob, 1, "before").await;
    device.expect("entries").await;
    device.heartbeat(cursor).await;
    device.expect("alive").await;

    as_owner(&owner, "ALTER ROLE chat CONNECTION LIMIT 0").await;
    database.cut_connections().await;
    let to = json!({"user": bob.uid});
    for _ in 0..3 {
        let refused = app.post(&ann, "/api/v1/messages", message(2, to.clone(), "after")).await;
        refused.refused(503);
        assert_eq!(refused.json()["retryable"], true);
    }
    device.heartbeat(cursor).await;
    assert_eq!(device.expect("alive").await["seq"], cursor, "from memory");
    let said = refused_with(&url, &[("TIDEMARK_STORAGE__START_SECONDS", "1")]).await;
    assert!(said.contains("too many connections for role \"chat\""), "{said}");

    as_owner(&owner, "ALTER ROLE chat CONNECTION LIMIT -1").await;
    until("sends are stored again", async || {
        let sent = app.post(&ann, "/api/v1/messages", message(2, to.clone(), "after")).await;
        sent.status.is_success() || sent.refused(503).is_empty()
    })
    .await;
    until("reads go on", async || app.get(&bob, "/api/v1/range").await.status.is_success()).await;
    assert_eq!(texts(&app.rows(&bob).await), ["before", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_at_two_servers_at_once_is_one_message_with_one_answer() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, one.sign_up("bob").await);
    for n in 0..20 {
        let body = message(n, json!({"user": bob.uid}), "once");
        let (here, there) = tokio::join!(
            one.post(&ann, "/api/v1/messages", body.clone()),
            other.post(&ann, "/api/v1/messages", body.clone()),
        );
        let ids = [here, there].map(|answer| {
            assert!(answer.status.is_success(), "{}", answer.text);
            answer.json()["message_id"].as_u64().expect("an id")
        });
        assert_eq!(ids[0], ids[1]);
    }
    assert_eq!(one.rows(&bob).await.len(), 20);
}

/// Nobody asks for anything but this: a proxy must hear of it all the same.
#[tokio::test(flavor = "multi_thread")]
async fn ready_says_that_the_database_is_gone_and_back_also_while_nothing_is_asked() {
    let database = DatabaseServer::start_with("-c fsync=on");
    let url = database.new_database().await;
    let app = Database::Postgres
        .start_prepared(&url, |config| config.storage.database_url = url.clone().into())
        .await;
    let ready = async || app.send(app.request(Method::GET, "/ready")).await.status;
    assert_eq!(ready().await, 200);
    database.kill();
    until("it is not ready", async || ready().await == 503).await;
    let metrics = app.send(app.request(Method::GET, "/metrics")).await;
    assert!(metrics.text.contains("tidemark_storage_ready 0"), "the shipped rules look at this");
    database.run();
    until("it is ready again", async || ready().await == 200).await;
}
