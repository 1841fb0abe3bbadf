//! Two versions over one database: servers of this one serve on over the tables and functions of a newer one.

use std::fs;
use std::path::Path;

use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;
use tidemark_client::{Client, Draft, Entry, Http, MemoryStore, Options, RangeQuery, Recipient};
use tidemark_test_support::servers::postgres::durable_database;
use tidemark_test_support::until::until;
use tidemark_trials::server::Server;

/// Additions of the newer version. A statement that is prepared already could stumble over new columns.
const EXPANDS: &str = "ALTER TABLE accounts ADD COLUMN picture text;
     ALTER TABLE entries ADD COLUMN edited_at bigint;
     ALTER TABLE heads ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
     ALTER TABLE groups ADD COLUMN picture text NOT NULL DEFAULT '';
     ALTER TABLE sessions ADD COLUMN device text;
     ALTER TABLE sent ADD COLUMN note text;
     CREATE TABLE reactions (partition_key text PRIMARY KEY);
     CREATE SEQUENCE commits_of_the_newer_function;";

/// Does what the start of a program does that has one more migration, and counts in `commit_messages`.
async fn start_as_newer(url: &str) {
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations/postgres");
    let folder = TempDir::new().expect("a folder");
    for file in fs::read_dir(&migrations).expect("readable") {
        let file = file.expect("readable");
        // The others are no migrations.
        if file.file_name().as_encoded_bytes()[0].is_ascii_digit() {
            fs::copy(file.path(), folder.path().join(file.file_name())).expect("copied");
        }
    }
    fs::write(folder.path().join("9000_expand.sql"), EXPANDS).expect("written");
    let mut migrator = Migrator::new(folder.path()).await.expect("migrations");
    migrator.set_locking(false);
    let text = fs::read_to_string(migrations.join("functions/commit_messages.sql")).expect("read");
    let newer = text.replace(
        "    verdict := 'stored';\n",
        "    PERFORM nextval('commits_of_the_newer_function');\n    verdict := 'stored';\n",
    );
    assert_ne!(newer, text);

    let mut connection = PgConnection::connect(url).await.expect("connected");
    until("the database is changed", async || {
        let mut tx = connection.begin().await.expect("begun");
        let done = migrator.run_direct(None, &mut *tx, false).await;
        // As the program does it: where a server writes to the same tables in another order, the migration begins anew.
        if let Err(why) = &done {
            assert!(why.to_string().contains("deadlock detected"), "{why}");
            return false;
        }
        tx.execute(AssertSqlSafe(newer.clone())).await.expect("replaced");
        tx.execute("UPDATE functions SET sum = 'newer' WHERE name = 'commit_messages'").await.expect("noted");
        tx.commit().await.expect("committed");
        true
    })
    .await;
}

/// Everything that somebody does, through a server.
async fn everything(http: &Http, name: &str) {
    let password = "a long enough password";
    let account = http.sign_up(name, password).await.expect("signed up");
    let own = http.with_token(&http.log_in(name, password).await.expect("logged in").token);
    let gid = own.create_group("walkers", &[]).await.expect("made");
    own.send(&Draft::text(Recipient::Group(gid), "to all")).await.expect("sent");
    own.send(&Draft::text(Recipient::User(account.uid), "to me")).await.expect("sent");
    own.conversations().await.expect("listed");
    own.group(gid).await.expect("seen");
    own.me().await.expect("known");
    assert_eq!(own.range(&RangeQuery::after(0)).await.expect("read").rows.len(), 3);
}

async fn commits_of_the_newer_function(url: &str) -> i64 {
    let mut connection = PgConnection::connect(url).await.expect("connected");
    let asked = sqlx::query_scalar("SELECT last_value FROM commits_of_the_newer_function");
    asked.fetch_one(&mut connection).await.expect("asked")
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_this_version_serve_over_what_a_newer_one_added() {
    let url = durable_database().await;
    let settings = [("TIDEMARK_STORAGE__DATABASE_URL", url.clone())];
    let binary = Path::new(env!("CARGO_BIN_EXE_tidemark"));
    let folders = [TempDir::new().expect("a folder"), TempDir::new().expect("a folder")];
    let start =
        async |n: usize| Server::start_with(&settings, 0, binary, folders[n].path()).await.expect("starts");
    let before = start(0).await;
    let http = before.http().expect("an address");
    // Every statement is prepared before the tables change.
    for n in 0..3 {
        everything(&http, &format!("before {n}")).await;
    }
    let ann = http.sign_up("ann", "a long enough password").await.expect("signed up");
    let store = MemoryStore::new();
    let (client, mut events) = Client::start(http.with_token(&ann.token), store.clone(), Options::default());
    let watching = tokio::spawn(async move { while events.next().await.is_some() {} });
    let send =
        async |n: usize| client.send_text(Recipient::User(ann.uid), &n.to_string()).await.expect("sent");
    for n in 0..20 {
        send(n).await;
    }
    tokio::join!(start_as_newer(&url), async {
        for n in 20..60 {
            send(n).await;
        }
    });

    // One that was there, and one that starts now, by turns.
    let after = start(1).await;
    let other = after.http().expect("an address");
    let counted = commits_of_the_newer_function(&url).await;
    for (n, http) in [&http, &other].into_iter().enumerate() {
        everything(http, &format!("after {n}")).await;
    }
    let from_the_other = other.with_token(&ann.token);
    for n in 60..80 {
        if n % 2 == 0 {
            send(n).await;
        } else {
            from_the_other.send(&Draft::text(Recipient::User(ann.uid), &n.to_string())).await.expect("sent");
        }
    }
    let expected: Vec<String> = (0..80).map(|n| n.to_string()).collect();
    until("the device has all", async || store.rows().len() >= expected.len()).await;
    let texts: Vec<_> = store.rows().iter().filter_map(Entry::text).collect();
    assert_eq!(texts, expected);
    for http in [http.with_token(&ann.token), from_the_other] {
        let page = http.range(&RangeQuery::after(0)).await.expect("read");
        assert_eq!(page.rows.iter().filter_map(Entry::text).collect::<Vec<_>>(), expected);
    }
    let of_both = commits_of_the_newer_function(&url).await - counted;
    assert!(of_both >= 20, "the older program has not put its function back: {of_both} of 20 and more");
    drop(client);
    watching.await.expect("no panic");
    for server in [before, after] {
        assert!(server.stop().await.expect("stops").success());
    }
}
