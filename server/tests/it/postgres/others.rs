//! Changes at one server that another one must notice: rows, ended sessions, tickets, changed groups.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidemark::app::SignUp;
use tidemark::domain::{
    Body, ClientId, Content, Conversation, Digest, HistoryId, Kind, MembershipEpoch, MessageId, RangeQuery,
    Timestamp, Uid,
};
use tidemark::notify::postgres::PgHints;
use tidemark::notify::{Heard, Hint, Hints as _};
use tidemark::store::postgres::{PgDb, PgOptions, PostgresStore, listening};
use tidemark::store::{Accept, MessageStore, Outcome, Row, Write};
use tidemark_test_support::until::until;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::servers::{beside, run};
use crate::support::{Database, PATIENCE, Person, Socket, TestApp, client_id, message};

const LOGGED_OUT: u16 = 4401;

fn bearer(who: &Person) -> String {
    format!("Bearer {}", who.token)
}

#[tokio::test]
async fn a_row_that_another_server_wrote_wakes_the_device() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, one.sign_up("bob").await);
    let mut device = Socket::open(&one.address, &bearer(&ann)).await;
    let cursor = device.begin().await;
    for n in 1..=3 {
        other.say(&bob, &ann, n, "hello").await;
        let frame = device.expect("entries").await;
        assert_eq!(frame["entries"].as_array().map(Vec::len), Some(1), "{frame}");
        let synced = frame["synced"].as_u64().expect("a number");
        assert!(synced > cursor, "{frame}");
        device.heartbeat(synced).await;
        device.expect("alive").await;
    }
}

/// A server that dies between its commit and its hint tells nobody. The rows are found all the same, without a word of the device.
#[tokio::test]
async fn a_row_of_which_no_hint_told_is_found_within_a_heartbeat_interval() {
    let app = Database::Postgres.start_with(|config| config.server.heartbeat_seconds = 1).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let mut device = Socket::open(&app.address, &bearer(&ann)).await;
    device.begin().await;

    let (url, options) = (app.config.storage.database_url.with_password(), PgOptions::default());
    let db = PgDb::open(url, &options).await.expect("opened");
    let silent = PostgresStore::open(db, HistoryId(Uuid::nil()), false).await.expect("opened");
    let (ann, bob) = (Uid(ann.uid as u32), Uid(bob.uid as u32));
    let row = |receiver| Row { receiver, message_id: MessageId::ZERO, epoch: MembershipEpoch(0) };
    let target = Conversation::User(ann);
    let content = Content {
        kind: Kind::Message,
        sender: bob,
        target,
        client_id: Some(ClientId(Uuid::from_u128(9))),
        body: Body::text("unheard", 100).expect("short"),
        sent_at: Timestamp(0),
    };
    let accept = Accept {
        digest: Digest::of(target, "unheard"),
        content: Arc::new(content),
        rows: vec![row(bob), row(ann)],
        rest: Vec::new(),
        change: None,
        group_version: None,
        unused: None,
    };
    let outcomes = silent.commit(vec![Write::Accept(accept)]).await.expect("committed");
    assert!(matches!(outcomes[..], [Outcome::Accepted(..)]), "{outcomes:?}");

    let frame = device.expect("entries").await;
    assert_eq!(frame["entries"][0]["body"]["text"], "unheard", "{frame}");
}

#[tokio::test]
async fn a_log_out_on_one_server_closes_the_sockets_on_all() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let ann = one.sign_up("ann").await;
    let second = one.log_in("ann").await;
    let mut here = Socket::open(&one.address, &bearer(&ann)).await;
    here.begin().await;
    let mut stays = Socket::open(&one.address, &bearer(&second)).await;
    stays.begin().await;
    other.delete(&ann, "/api/v1/sessions/current").await.ok(204);
    assert_eq!(here.closed().await, LOGGED_OUT);
    one.get(&ann, "/api/v1/me").await.refused(401);
    let answer = stays.only_answer_to(0).await;
    assert_eq!(answer["type"], "alive", "the other session goes on: {answer}");
}

#[tokio::test]
async fn an_account_that_is_deleted_on_one_server_is_gone_on_all() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, one.sign_up("bob").await);
    // The other server has its name in memory.
    other.say(&bob, &ann, 1, "hello").await;
    let mut socket = Socket::open(&other.address, &bearer(&ann)).await;
    socket.begin().await;
    one.post(&ann, "/api/v1/me/delete", json!({"password": "correct horse"})).await.ok(204);
    assert_eq!(socket.closed().await, LOGGED_OUT);
    assert_eq!(other.get(&ann, "/api/v1/me").await.refused(401), "unauthorized");
    let more = message(2, json!({"user": ann.uid}), "hello?");
    assert_eq!(other.post(&bob, "/api/v1/messages", more).await.refused(410), "account_deleted");
}

/// Both see to it at the same moment.
#[tokio::test]
async fn two_servers_that_clear_a_deleted_account_change_nothing_twice() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, one.sign_up("bob").await);
    for (who, with) in [(&ann, &bob), (&bob, &ann)] {
        let wish = json!({"client_id": client_id(1), "wanted": true});
        one.put(who, &format!("/api/v1/friends/{}", with.uid), wish).await.ok(201);
    }
    for n in 10..40 {
        let moment = json!({"client_id": client_id(n), "text": "sun"});
        one.post(&ann, "/api/v1/moments", moment).await.ok(201);
    }
    one.post(&ann, "/api/v1/groups", json!({"name": "us", "members": [bob.uid]})).await.ok(201);
    one.post(&ann, "/api/v1/me/delete", json!({"password": "correct horse"})).await.ok(204);
    let rows = async |is: fn(&Value) -> bool| {
        let rows = other.rows(&bob).await;
        rows.iter().filter(|row| row["sender"] == ann.uid && is(row)).count()
    };
    until("she has left", async || rows(|row| row["body"]["action"] == "left").await > 0).await;
    assert_eq!(rows(|row| row["body"]["action"] == "left").await, 1);
    assert_eq!(rows(|row| row["kind"] == "moment").await, 0);
    assert_eq!(rows(|row| row["kind"] == "deleted").await, 30);
    assert_eq!(rows(|row| row["kind"] == "delete").await, 30);
    assert_eq!(rows(|row| row["kind"] == "friend" && row["body"]["deleted"] == true).await, 1);

    // Her own rows go when no server can write for her any more.
    let (url, options) = (one.config.storage.database_url.with_password(), PgOptions::default());
    let db = PgDb::open(url, &options).await.expect("opened");
    let store = PostgresStore::open(db, HistoryId(Uuid::nil()), false).await.expect("opened");
    let of_ann = Uid(ann.uid as u32);
    let last = store.watermark(of_ann).await.expect("read");
    let all = RangeQuery::after(MessageId::ZERO, RangeQuery::MAX_ROWS);
    assert!(!store.range(of_ann, all).await.expect("read").rows.is_empty());
    TestApp::pass_together(&[&one, &other], Duration::from_secs(61)).await;
    until("nothing is left", async || store.range(of_ann, all).await.expect("read").rows.is_empty()).await;
    assert_eq!(store.watermark(of_ann).await.expect("read"), last, "no id comes twice");
}

#[tokio::test]
async fn a_session_that_is_ended_by_its_id_on_one_server_ends_on_all() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let ann = one.sign_up("ann").await;
    let listed = other.get(&ann, "/api/v1/sessions").await.ok(200);
    let id = listed[0]["id"].as_str().expect("an id");
    let second = other.log_in("ann").await;
    let mut ends = Socket::open(&one.address, &bearer(&ann)).await;
    ends.begin().await;
    other.delete(&second, &format!("/api/v1/sessions/{id}")).await.ok(204);
    assert_eq!(ends.closed().await, LOGGED_OUT);
    one.get(&ann, "/api/v1/me").await.refused(401);
    one.get(&second, "/api/v1/me").await.ok(200);
}

#[tokio::test]
async fn a_password_changed_on_one_server_ends_the_other_sessions_on_all() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let ann = one.sign_up("ann").await;
    let second = one.log_in("ann").await;
    let mut ends = Socket::open(&one.address, &bearer(&second)).await;
    ends.begin().await;
    let mut stays = Socket::open(&one.address, &bearer(&ann)).await;
    stays.begin().await;
    let change = json!({"current": "correct horse", "new": "battery staple"});
    other.put(&ann, "/api/v1/me/password", change).await.ok(204);
    assert_eq!(ends.closed().await, LOGGED_OUT);
    one.get(&second, "/api/v1/me").await.refused(401);
    let answer = stays.only_answer_to(0).await;
    assert_eq!(answer["type"], "alive", "the session that asked goes on: {answer}");
}

#[tokio::test]
async fn a_ticket_of_one_server_opens_one_socket_on_another() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let ann = one.sign_up("ann").await;
    let given = one.post(&ann, "/api/v1/sessions/current/ticket", json!({})).await.ok(200);
    let path = format!("/ws?ticket={}", given["ticket"].as_str().expect("a ticket"));
    let mut socket = Socket::dial(&other.address, &path, &[]).await.expect("opened elsewhere");
    socket.begin().await;
    for app in [&one, &other] {
        assert_eq!(Socket::dial(&app.address, &path, &[]).await.err(), Some(401), "it is used up");
    }
}

#[tokio::test]
async fn a_device_that_got_rows_elsewhere_is_believed_and_not_told_to_forget_them() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, one.sign_up("bob").await);
    let mut device = Socket::open(&one.address, &bearer(&ann)).await;
    let cursor = device.begin().await;
    let id = other.say(&bob, &ann, 1, "hello").await;
    // Whether the hint came before or not, the cursor is good.
    device.heartbeat(cursor + id).await;
    loop {
        let frame = device.next().await.expect("open");
        if frame["type"] == "alive" {
            assert_eq!(frame["seq"], cursor + id, "{frame}");
            break;
        }
        device.heartbeat(cursor + id).await;
    }
}

#[tokio::test]
async fn who_was_removed_on_one_server_sends_nothing_through_another() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, one.sign_up("bob").await);
    let made = json!({"name": "walkers", "members": [bob.uid]});
    let group = one.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let to_group = |n: u128| json!({"client_id": crate::support::client_id(n), "to": {"group": group}, "body": {"text": "hi"}});
    for round in 0..5 {
        // The other server has the group in memory.
        other.post(&bob, "/api/v1/messages", to_group(2 * round)).await.ok(201);
        one.delete(&ann, &format!("/api/v1/groups/{group}/members/{}", bob.uid)).await.ok(204);
        let refused = other.post(&bob, "/api/v1/messages", to_group(2 * round + 1)).await;
        assert_eq!(refused.refused(404), "unknown_group");
        one.post(&ann, &format!("/api/v1/groups/{group}/members"), json!({"uid": bob.uid})).await;
    }
}

/// Sessions, tickets, invitations and the times that people see go by the database's clock, on every server.
#[tokio::test]
async fn a_server_whose_clock_is_off_judges_and_shows_every_time_as_the_others_do() {
    let one = Database::Postgres.start_with(|config| config.accounts.session_days = 1).await;
    let url = one.config.storage.database_url.clone();
    let late = Database::Postgres
        .start_late(Duration::from_secs(25 * 60 * 60), |config| {
            config.storage.database_url = url;
            config.accounts.session_days = 1;
        })
        .await;
    let (ann, bob, cem) = (one.sign_up("ann").await, late.sign_up("bob").await, one.sign_up("cem").await);
    let all = [(&one, &ann), (&one, &bob), (&late, &ann), (&late, &bob)];
    for (app, who) in all {
        app.get(who, "/api/v1/me").await.ok(200);
    }
    for (given, used) in [(&one, &late), (&late, &one)] {
        let ticket = given.post(&ann, "/api/v1/sessions/current/ticket", json!({})).await.ok(200);
        let path = format!("/ws?ticket={}", ticket["ticket"].as_str().expect("a ticket"));
        Socket::dial(&used.address, &path, &[]).await.expect("opened");
    }
    let group = one.post(&ann, "/api/v1/groups", json!({"name": "walkers"})).await.ok(201)["gid"].clone();
    let invites = format!("/api/v1/groups/{group}/invites");
    let mut codes = Vec::new();
    for app in [&one, &late] {
        let made = app.post(&ann, &invites, json!({"expires_in_seconds": 60})).await.ok(201);
        codes.push(made["code"].as_str().expect("a code").to_owned());
    }
    for (app, code) in [(&late, &codes[0]), (&one, &codes[1])] {
        app.post(&bob, &format!("/api/v1/invites/{code}"), json!({})).await.ok(200);
    }
    one.say(&ann, &bob, 1, "from one").await;
    late.say(&ann, &bob, 2, "from the other").await;
    let rows = one.rows(&bob).await;
    assert_eq!(rows[0]["sent_at"], rows[1]["sent_at"], "at the same moment");

    let day = Duration::from_secs(24 * 60 * 60);
    TestApp::pass_together(&[&one, &late], day - Duration::from_secs(1)).await;
    for (app, who) in all {
        app.get(who, "/api/v1/me").await.ok(200);
    }
    for (app, code) in [(&one, &codes[0]), (&one, &codes[1]), (&late, &codes[0]), (&late, &codes[1])] {
        let accepted = app.post(&cem, &format!("/api/v1/invites/{code}"), json!({})).await;
        assert_eq!(accepted.refused(410), "expired_invite");
    }
    TestApp::pass_together(&[&one, &late], Duration::from_secs(1)).await;
    for (app, who) in all {
        app.get(who, "/api/v1/me").await.refused(401);
    }
}

#[tokio::test]
async fn sign_ups_and_log_ins_are_counted_by_all_servers_together() {
    let one = Database::Postgres
        .start_with(|config| {
            config.limits.log_ins_per_name_per_minute = 1;
            config.limits.sign_ups_per_address_per_minute = 2;
        })
        .await;
    let config = one.config.clone();
    let other = Database::Postgres
        .start_with(|own| {
            own.storage.database_url = config.storage.database_url;
            own.limits = config.limits;
        })
        .await;
    let wrong = json!({"name": "ann", "password": "guess guess"});
    one.sign_up("ann").await;
    other.sign_up("bob").await;
    for n in 0..10 {
        let app = if n % 2 == 0 { &one } else { &other };
        app.post_as_nobody("/api/v1/sessions", wrong.clone()).await.refused(401);
    }
    for app in [&one, &other] {
        let refused = app.post_as_nobody("/api/v1/sessions", wrong.clone()).await;
        assert_eq!(refused.refused(429), "rate_limited");
        let wait: u64 = refused.header("retry-after").parse().expect("seconds");
        assert!((1..=60).contains(&wait), "{wait}");
    }
    other.log_in("bob").await;
    one.sign_up("cem").await;
    other.sign_up("dea").await;
    for app in [&one, &other] {
        let body = json!({"name": "eve", "password": "correct horse"});
        assert_eq!(app.post_as_nobody("/api/v1/accounts", body).await.refused(429), "rate_limited");
    }
    // By the database's clock; of the servers' own limits each is used by half.
    one.pass(Duration::from_secs(60)).await;
    one.sign_up("eve").await;
}

#[tokio::test]
async fn an_operator_makes_accounts_while_servers_run() {
    let app = Database::Postgres.start_with(|config| config.accounts.sign_up = SignUp::Closed).await;
    let url = app.config.storage.database_url.with_password();
    let place = tempfile::tempdir().expect("a directory");
    let (code, password, reported) = run(place.path(), url, &["user", "add", "ann"]).await;
    assert_eq!(code, 0, "{reported}");
    let body = json!({"name": "ann", "password": password.trim()});
    app.post_as_nobody("/api/v1/sessions", body.clone()).await.ok(201);
    assert_eq!(app.post_as_nobody("/api/v1/accounts", body).await.refused(403), "sign_up_closed");
    let (code, _, reported) = run(place.path(), url, &["user", "add", "Ann"]).await;
    assert!(code == 1 && reported.contains("the name is taken"), "{reported}");
}

#[tokio::test]
async fn a_command_that_ends_sessions_tells_the_servers() {
    let app = Database::Postgres.start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let url = app.config.storage.database_url.with_password();
    let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
    let beside = PgHints::open(listening(url).expect("a URL"), &closing, &tasks).await.expect("listens");
    let place = tempfile::tempdir().expect("a directory");
    for (command, who) in [(["user", "disable", "ann"], &ann), (["user", "reset-password", "bob"], &bob)] {
        let mut socket = app.socket(who).await;
        socket.begin().await;
        let (code, _, said) = run(place.path(), url, &command).await;
        assert_eq!(code, 0, "{said}");
        let told = timeout(PATIENCE, beside.hear()).await.expect("told");
        assert_eq!(told, Heard::Hint(Hint::SessionsEnded(Uid(who.uid as u32))));
        assert_eq!(socket.closed().await, LOGGED_OUT);
    }
    closing.cancel();
}
