//! On real servers: what is refused, and what is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tidemark_test_support::servers::postgres::{Server, durable_database, url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::*;
use crate::store::StoreError;

mod directory;
mod schema;
mod search;

async fn opened(url: &str) -> Arc<PgDb> {
    PgDb::open(url, &PgOptions::default()).await.expect("opened")
}

async fn refused(url: &str) -> String {
    PgDb::open(url, &PgOptions::default()).await.err().expect("refused").to_string()
}

/// Runs a statement as the owner of the database.
async fn run(url: &str, sql: &str) {
    let mut connection = PgConnection::connect(url).await.expect("connected");
    connection.execute(AssertSqlSafe(sql)).await.expect(sql);
}

#[tokio::test]
async fn a_database_that_would_lose_messages_is_refused() {
    // The shared server of the tests does not sync.
    assert!(refused(url()).await.contains("set fsync to on"));
    let url = durable_database().await;
    for (setting, told) in [
        ("default_transaction_read_only = on", "set default_transaction_read_only to off"),
        (
            "default_transaction_isolation = 'repeatable read'",
            "set default_transaction_isolation to 'read committed'",
        ),
    ] {
        let name = setting.split_once(' ').expect("a name").0;
        run(
            &url,
            &format!(
                "DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET {}', current_database()); END$$",
                setting.replace('\'', "''")
            ),
        )
        .await;
        let why = refused(&url).await;
        assert!(why.contains(told), "{why}");
        run(&url, &format!("BEGIN READ WRITE; DO $$BEGIN EXECUTE format('ALTER DATABASE %I RESET {name}', current_database()); END$$; COMMIT")).await;
    }
    opened(&url).await;
}

#[tokio::test]
async fn every_session_syncs_and_waits_for_bounded_times() {
    let url = durable_database().await;
    run(&url, "DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END$$").await;
    let db = opened(&url).await;
    let connections = [&mut *db.for_queues().await.expect("one"), &mut *db.reader().await.expect("one")];
    for connection in connections {
        for (name, value) in
            [("synchronous_commit", "on"), ("lock_timeout", "2s"), ("statement_timeout", "10s")]
        {
            let set: String = sqlx::query_scalar("SELECT current_setting($1)")
                .bind(name)
                .fetch_one(&mut *connection)
                .await
                .expect("asked");
            assert_eq!(set, value, "{name}");
        }
    }
}

#[tokio::test]
async fn a_full_line_refuses_at_once_and_keeps_no_queue_waiting() {
    let url = durable_database().await;
    let options =
        PgOptions { connections: 1, waiting_reads: 1, queue_connections: 1, ..PgOptions::default() };
    let db = PgDb::open(&url, &options).await.expect("opened");
    let first = db.reader().await.expect("a connection");
    let waiting = tokio::spawn({
        let db = Arc::clone(&db);
        async move { db.reader().await.map(drop) }
    });
    while db.free_places() > 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(db.reader().await.err(), Some(StoreError::Busy)));
    db.for_queues().await.expect("the queues have their own");
    drop(first);
    waiting.await.expect("no panic").expect("served in turn");
}

#[tokio::test]
async fn a_lock_that_is_held_is_not_waited_for_for_ever() {
    let url = durable_database().await;
    let options = PgOptions { lock_timeout: Duration::from_millis(20), ..PgOptions::default() };
    let db = PgDb::open(&url, &options).await.expect("opened");
    let mut holder = PgConnection::connect(&url).await.expect("connected");
    holder.execute("BEGIN; LOCK TABLE accounts").await.expect("held");
    let said = sqlx::query("SELECT FROM accounts").execute(&mut *db.reader().await.expect("one")).await;
    let said = StoreError::from(said.expect_err("not waited for"));
    assert!(matches!(&said, StoreError::Unavailable(why) if why.contains("55P03")), "{said}");
}

#[tokio::test]
async fn a_restarted_database_is_found_again() {
    let server = Server::start_with("-c fsync=on");
    let url = server.new_database().await;
    let db = opened(&url).await;
    drop(db.reader().await.expect("a connection"));
    server.kill();
    server.run();
    let ask = async || -> Result<i32, StoreError> {
        Ok(sqlx::query_scalar("SELECT 1").fetch_one(&mut *db.reader().await?).await?)
    };
    if let Err(error) = ask().await {
        assert!(error.is_retryable(), "{error}");
    }
    assert_eq!(ask().await.expect("found again"), 1);
}

/// A socket in a folder of its own, in front of the database at `url`. Whenever `life` moves, the connections that are there stay open
/// and nothing comes through any more.
async fn relay(url: &str, life: Arc<AtomicU32>) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let (before, real) = url.split_once("host=").expect("a socket");
    let (real, front) = (format!("{real}/.s.PGSQL.5432"), folder.path().join(".s.PGSQL.5432"));
    let listener = UnixListener::bind(&front).expect("bound");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = UnixStream::connect(&real).await.expect("connected");
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            for (mut from, mut to) in [(from_client, to_server), (from_server, to_client)] {
                let (life, own) = (Arc::clone(&life), life.load(Ordering::Relaxed));
                tokio::spawn(async move {
                    let mut some = [0; 4_096];
                    while let Ok(read @ 1..) = from.read(&mut some).await {
                        if own == life.load(Ordering::Relaxed) && to.write_all(&some[..read]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        }
    });
    let url = format!("{before}host={}", folder.path().display());
    (folder, url)
}

#[tokio::test]
async fn a_database_that_is_gone_without_a_word_is_given_up_and_found_again() {
    let life = Arc::new(AtomicU32::new(0));
    let (_folder, url) = relay(&durable_database().await, Arc::clone(&life)).await;
    let options = PgOptions {
        connections: 1,
        waiting_reads: 1,
        statement_timeout: Duration::from_secs(1),
        ..PgOptions::default()
    };
    let db = PgDb::open(&url, &options).await.expect("opened");
    let ask = async || {
        let ask = async { Ok(sqlx::query("SELECT 1").fetch_one(&mut *db.reader().await?).await.map(drop)?) };
        db.limited(ask).await
    };
    ask().await.expect("it answers");
    life.fetch_add(1, Ordering::Relaxed);
    let said = ask().await.expect_err("no answer");
    assert!(
        matches!(&said, StoreError::Unavailable(why) if why.contains("did not answer within 2s")),
        "{said}"
    );
    while let Err(error) = ask().await {
        assert!(error.is_retryable(), "{error}");
    }
}

#[tokio::test]
async fn nothing_that_answers_is_told_without_the_password() {
    let place = tempfile::tempdir().expect("a directory");
    let url = format!("postgres://ann:s3cret@localhost/chat?host={}", place.path().display());
    let why = refused(&url).await;
    assert!(why.contains("cannot connect to") && !why.contains("s3cret"), "{why}");
}

/// The session of a connection of the queues, by its number.
async fn session(db: &PgDb) -> i32 {
    let mut connection = db.for_queues().await.expect("a connection");
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *connection).await.expect("asked")
}

#[tokio::test]
async fn a_connection_of_the_queues_is_kept_and_a_broken_one_is_replaced() {
    let url = durable_database().await;
    let db =
        PgDb::open(&url, &PgOptions { queue_connections: 1, ..PgOptions::default() }).await.expect("opened");
    let first = session(&db).await;
    assert_eq!(session(&db).await, first);

    // Given up in the middle: it comes again when its statement has ended.
    let mut given_up = db.for_queues().await.expect("a connection");
    assert!(given_up.execute("SELECT pg_sleep(0.2)").now_or_never().is_none(), "it takes longer");
    drop(given_up);
    assert_eq!(session(&db).await, first);

    let mut broken = db.for_queues().await.expect("a connection");
    run(&url, &format!("SELECT pg_terminate_backend({first}, 5000)")).await;
    sqlx::query("SELECT 1").execute(&mut *broken).await.expect_err("its session is over");
    drop(broken);
    assert_ne!(session(&db).await, first);
    let second = session(&db).await;
    run(&url, &format!("SELECT pg_terminate_backend({second}, 5000)")).await;
    tokio::time::pause();
    tokio::time::advance(kept::TRIED_AFTER).await;
    tokio::time::resume();
    assert_ne!(session(&db).await, second, "tried before it is given out");
    let of_queues = db.pools().into_iter().find(|pool| pool.name == "queues").expect("shown");
    assert_eq!((of_queues.open, of_queues.idle), (1, 1));
    db.close().await;
    db.for_queues().await.expect_err("closed");
}
