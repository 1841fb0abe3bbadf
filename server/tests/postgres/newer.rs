//! A newer program has changed the tables, while processes of this one serve.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use sqlx::migrate::Migrator;
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use tidemark_client::{Client, Http, MemoryStore, Options, RangeQuery, Recipient};
use tidemark_test_support::servers::postgres::durable_database;
use tidemark_test_support::until::until;
use tidemark_trials::server::Server;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use super::refusals::{refused, served};
use crate::support::PATIENCE;

/// Applies the migrations of a program that knows those of this one, and these.
async fn migrate_as_newer(url: &str, later: &[(&str, &str)]) {
    let folder = tempfile::tempdir().expect("a folder");
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations/postgres");
    for file in known.read_dir().expect("the migrations").flatten() {
        // `distribute.sql` is none.
        if file.file_name().to_string_lossy().starts_with(|first: char| first.is_ascii_digit()) {
            fs::copy(file.path(), folder.path().join(file.file_name())).expect("copied");
        }
    }
    for (name, sql) in later {
        fs::write(folder.path().join(name), sql).expect("written");
    }
    let mut migrator = Migrator::new(folder.path()).await.expect("migrations");
    let mut connection = PgConnection::connect(url).await.expect("connected");
    migrator.set_locking(false);
    until("the migrations are applied", async || {
        let done = migrator.run(&mut connection).await;
        // As the program does it: where a server writes to the same tables in another order, the migration begins anew.
        if let Err(why) = &done {
            assert!(why.to_string().contains("deadlock detected"), "{why}");
        }
        done.is_ok()
    })
    .await;
}

/// What a release adds that its predecessor need not know. Columns are what a statement that is prepared already could stumble over.
const EXPANDS: (&str, &str) = (
    "9000_expand.sql",
    "ALTER TABLE accounts ADD COLUMN picture text;
     ALTER TABLE entries ADD COLUMN edited_at bigint;
     ALTER TABLE heads ADD COLUMN epoch_2 bigint NOT NULL DEFAULT 0;
     ALTER TABLE groups ADD COLUMN picture text NOT NULL DEFAULT '';
     ALTER TABLE sessions ADD COLUMN device text;
     ALTER TABLE sent ADD COLUMN note text;
     CREATE TABLE reactions (partition_key text PRIMARY KEY);",
);
const NEEDS_ITSELF: (&str, &str) =
    ("9001_contract.sql", "UPDATE meta SET value = '9001' WHERE key = 'oldest_program';");

/// Everything that somebody does, through a server.
async fn everything(http: &Http, name: &str) {
    let password = "a long enough password";
    let account = http.sign_up(name, password).await.expect("signed up");
    let own = http.with_token(&http.log_in(name, password).await.expect("logged in").token);
    let gid = own.create_group("walkers", &[]).await.expect("made");
    own.send(&tidemark_client::Draft::text(Recipient::Group(gid), "to all")).await.expect("sent");
    own.send(&tidemark_client::Draft::text(Recipient::User(account.uid), "to me")).await.expect("sent");
    own.conversations().await.expect("listed");
    own.group(gid).await.expect("seen");
    own.me().await.expect("known");
    assert_eq!(own.range(&RangeQuery::after(0)).await.expect("read").rows.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_this_version_serves_on_over_what_a_newer_one_added() {
    let url = durable_database().await;
    let folder = TempDir::new().expect("a folder");
    let settings = [("TIDEMARK_STORAGE__DATABASE_URL", url.clone())];
    let binary = Path::new(env!("CARGO_BIN_EXE_tidemark"));
    let server = Server::start_with(&settings, 0, binary, folder.path()).await.expect("starts");
    let http = server.http().expect("an address");
    // Every statement is prepared before the tables change.
    for n in 0..3 {
        everything(&http, &format!("before {n}")).await;
    }
    let ann = http.sign_up("ann", "a long enough password").await.expect("signed up");
    let store = MemoryStore::new();
    let (client, mut events) = Client::start(http.with_token(&ann.token), store.clone(), Options::default());
    let watching = tokio::spawn(async move { while events.next().await.is_some() {} });
    let send = async |text: &str| client.send_text(Recipient::User(ann.uid), text).await.expect("sent");
    for n in 0..20 {
        send(&n.to_string()).await;
    }
    let migrating = migrate_as_newer(&url, &[EXPANDS]);
    tokio::join!(migrating, async {
        for n in 20..60 {
            send(&n.to_string()).await;
        }
    });
    for n in 0..3 {
        everything(&http, &format!("after {n}")).await;
    }
    send("60").await;
    until("the device has all", async || store.rows().len() >= 61).await;
    let texts: Vec<_> = store.rows().iter().filter_map(tidemark_client::Entry::text).collect();
    assert_eq!(texts, (0..=60).map(|n| n.to_string()).collect::<Vec<_>>());
    served(&url).await;
    drop(client);
    watching.await.expect("no panic");
    assert!(server.stop().await.expect("stops").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_too_old_ends_and_does_not_start_again() {
    let url = durable_database().await;
    let place = tempfile::tempdir().expect("a directory");
    let mut serving = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    serving.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(&place).kill_on_drop(true);
    serving.env("TIDEMARK_DATABASE_URL", &url).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut serving = serving.spawn().expect("runs");
    let mut first = [0];
    let out = serving.stdout.as_mut().expect("piped");
    timeout(PATIENCE, out.read_exact(&mut first)).await.expect("in time").expect("listens");
    migrate_as_newer(&url, &[EXPANDS, NEEDS_ITSELF]).await;
    // It looks every ten seconds.
    let ended = timeout(PATIENCE, serving.wait_with_output()).await.expect("in time").expect("ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let last = said.lines().last().expect("a line").to_owned();
    for line in [last, refused(&url).await] {
        let wanted = "was changed by a newer version: a program must know migration 9001 to use it";
        assert!(line.contains(wanted) && line.contains("run that version"), "{line}");
    }
}
