//! Several servers on distributed tables, and what a server leaves that dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tidemark::boot;
use tidemark::domain::{
    Body, ClientId, Clock, Content, Conversation, Digest, HistoryId, Kind, MembershipEpoch, MessageId,
    Timestamp, Uid,
};
use tidemark::store::postgres::{PgDb, PgOptions, PostgresStore, Replication};
use tidemark::store::{Accept, MessageStore, Outcome, Recipient, Row, Write};
use tidemark_process::Version;
use uuid::Uuid;

use crate::support::{Database, Person, Socket, TestApp, client_id, texts};

/// Another server on the same database.
async fn beside(app: &TestApp) -> TestApp {
    let url = app.config.storage.database_url.clone();
    Database::Distributed.start_with(|config| config.storage.database_url = url).await
}

fn bearer(who: &Person) -> String {
    format!("Bearer {}", who.token)
}

#[tokio::test]
async fn servers_wake_each_other_and_whoever_was_removed_sends_nothing() {
    let one = Database::Distributed.start().await;
    let other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, other.sign_up("bob").await);
    let mut device = Socket::open(&one.address, &bearer(&ann)).await;
    device.begin().await;
    other.say(&bob, &ann, 1, "hello").await;
    let frame = device.expect("entries").await;
    assert_eq!(frame["entries"][0]["body"]["text"], "hello", "{frame}");

    let made = json!({"name": "walkers", "members": [bob.uid]});
    let group = one.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let to_group =
        |n: u128| json!({"client_id": client_id(n), "to": {"group": group}, "body": {"text": "hi"}});
    for round in 1..4 {
        other.post(&bob, "/api/v1/messages", to_group(2 * round)).await.ok(201);
        one.delete(&ann, &format!("/api/v1/groups/{group}/members/{}", bob.uid)).await.ok(204);
        let refused = other.post(&bob, "/api/v1/messages", to_group(2 * round + 1)).await;
        assert_eq!(refused.refused(404), "unknown_group");
        one.post(&ann, &format!("/api/v1/groups/{group}/members"), json!({"uid": bob.uid})).await.ok(204);
    }
    assert_eq!(texts(&one.rows(&ann).await), ["hello", "hi", "hi", "hi"]);
}

#[tokio::test]
async fn tables_of_other_programs_are_refused_at_the_start() {
    let app = Database::Distributed.start().await;
    let mut config = app.config.clone();
    config.table.listen = "127.0.0.1:0".into();
    let refused =
        boot::start(&config, Clock::system(), Version::default()).await.err().expect("refused").to_string();
    assert!(refused.contains("[table]") && refused.contains("distributed"), "{refused}");
}

/// A server that dies between the acceptance and the delivery: another one delivers, and wakes the device.
#[tokio::test]
async fn a_copy_that_a_dead_server_owes_is_delivered_by_the_others() {
    let app = Database::Distributed.start_with(|config| config.server.heartbeat_seconds = 1).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let mut device = Socket::open(&app.address, &bearer(&ann)).await;
    device.begin().await;

    let url = app.config.storage.database_url.with_password();
    let options = PgOptions { replication: Replication::Synchronous, ..PgOptions::default() };
    let db = PgDb::open(url, &options).await.expect("opened");
    let dead = PostgresStore::open(db, HistoryId(Uuid::nil()), false).await.expect("opened");
    let (from, to) = (Uid(bob.uid as u32), Uid(ann.uid as u32));
    let target = Conversation::User(to);
    let content = Content {
        kind: Kind::Message,
        sender: from,
        target,
        client_id: Some(ClientId(Uuid::from_u128(9))),
        body: Body::text("owed", 100).expect("short"),
        sent_at: Timestamp(0),
    };
    let epoch = MembershipEpoch(0);
    let accept = Accept {
        digest: Digest::of(target, "owed"),
        content: Arc::new(content),
        rows: vec![Row { receiver: from, message_id: MessageId::ZERO, epoch }],
        rest: vec![Recipient { uid: to, epoch }],
        change: None,
        group_version: None,
        unused: None,
    };
    let outcomes = dead.commit(vec![Write::Accept(accept)]).await.expect("committed");
    assert!(matches!(outcomes[..], [Outcome::Accepted(..)]), "{outcomes:?}");
    dead.close().await;

    let frame = device.expect("entries").await;
    assert_eq!(frame["entries"][0]["body"]["text"], "owed", "{frame}");
    // The next one comes after it.
    app.say(&bob, &ann, 1, "next").await;
    assert_eq!(texts(&app.rows(&ann).await), ["owed", "next"]);
}

#[tokio::test]
async fn a_server_that_starts_again_goes_on() {
    let mut app = Database::Distributed.start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "before").await;
    app.stop().await;
    app.start_again().await;
    app.say(&ann, &bob, 2, "after").await;
    assert_eq!(texts(&app.rows(&bob).await), ["before", "after"]);
}

/// Each start compares heads with rows while another server moves both.
#[tokio::test]
async fn a_server_starts_beside_one_that_writes() {
    let app = Database::Distributed.start_with(|config| config.limits.sends_per_account_per_second = 0).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let is_over = AtomicBool::new(false);
    let writes = async {
        let mut n = 0;
        while !is_over.load(Ordering::Relaxed) {
            n += 1;
            app.say(&ann, &bob, n, "hello").await;
        }
        n
    };
    let starts = async {
        for _ in 0..10 {
            let mut other = beside(&app).await;
            other.stop().await;
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let (written, ()) = tokio::join!(writes, Box::pin(starts));
    assert!(written > 10, "{written} messages beside ten starts");
}

/// As when a node is away that has a part of it: what is owed cannot be read.
#[tokio::test]
async fn while_it_cannot_be_read_what_is_owed_the_others_go_on() {
    let mut app = Database::Distributed.start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let url = app.config.storage.database_url.with_password().to_owned();
    let mut owner = PgConnection::connect(&url).await.expect("connected");
    app.say(&ann, &bob, 1, "before").await;
    owner.execute("ALTER TABLE pending RENAME TO away").await.expect("the owner may");
    app.restart().await;
    // A note to oneself owes nobody anything.
    app.say(&ann, &ann, 2, "a note").await;
    owner.execute("ALTER TABLE away RENAME TO pending").await.expect("the owner may");
    app.say(&ann, &bob, 3, "after").await;
    assert_eq!(texts(&app.rows(&bob).await), ["before", "after"]);
}
