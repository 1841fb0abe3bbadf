//! Locks that are held too long, sessions that end, a server that dies.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tidemark_test_support::servers::postgres::Server;
use tidemark_test_support::until::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

use super::*;

#[tokio::test]
async fn a_lock_that_does_not_come_refuses_the_commit_and_is_tried_a_few_times() {
    let url = durable_database().await;
    let patience = Duration::from_millis(20);
    let store = open_with(&url, PgOptions { lock_timeout: patience, ..PgOptions::default() }).await;
    one(&store, Write::Accept(say(ANN, BOB, 1))).await;
    let mut beside = connection(&url).await;
    run(&mut beside, "BEGIN").await;
    run(&mut beside, &lock_head(BOB)).await;
    let refused = store.commit(vec![Write::Accept(say(ANN, BOB, 2))]).await;
    assert!(
        matches!(&refused, Err(CommitError::Refused(why)) if why.to_string().contains("55P03")),
        "{refused:?}"
    );
    assert!(store.health().trouble.is_some());
    assert_eq!(store.health().refused_commits, 1);

    run(&mut beside, "COMMIT").await;
    one(&store, Write::Accept(say(ANN, BOB, 2))).await;
    assert_eq!(store.health().trouble, None);
    assert_eq!(ids(&store, BOB).await, [1, 2]);
}

/// Of a server that stands still between two statements of a transaction, as only rare ones have, the database ends the session.
#[tokio::test]
async fn a_session_that_stands_still_with_a_lock_is_ended_and_holds_nobody_up() {
    let url = durable_database().await;
    let still = PgOptions { idle_in_transaction_timeout: Duration::from_millis(500), ..PgOptions::default() };
    let (stopped, store) = (open_with(&url, still).await, open(&url).await);
    one(&store, Write::Accept(say(ANN, BOB, 1))).await;
    let mut held = stopped.db.for_queues().await.expect("a connection");
    run(&mut held, "BEGIN").await;
    run(&mut held, &lock_head(BOB)).await;
    one(&store, Write::Accept(say(ANN, BOB, 2))).await;
    assert_eq!(ids(&store, BOB).await, [1, 2]);
    held.execute("COMMIT").await.expect_err("its session is over");
}

/// A commit whose session is ended may have been stored; when the caller hears so, it is not running any more.
#[tokio::test]
async fn a_commit_whose_session_ends_has_an_unknown_outcome() {
    let (store, other, url) = two().await;
    one(&other, Write::Accept(say(ANN, BOB, 1))).await;
    let mut beside = connection(&url).await;
    run(&mut beside, "BEGIN").await;
    run(&mut beside, &lock_head(BOB)).await;
    let write = || vec![Write::Accept(say(ANN, BOB, 2))];
    // Within its transaction the other connection would see the sessions as they were first.
    let mut operator = connection(&url).await;
    let (unknown, ()) = tokio::join!(store.commit(write()), async {
        until("the commit is ended", async || {
            let ended =
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
                AND datname = current_database()";
            sqlx::query_scalar::<_, i64>(ended).fetch_one(&mut operator).await.expect("ended") > 0
        })
        .await;
        run(&mut beside, "COMMIT").await;
    });
    assert!(matches!(&unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    assert_eq!(store.keys(&[(ANN, client_id(2))]).await.expect("read")[0].record(), None);
    store.commit(write()).await.expect("committed");
    assert_eq!(ids(&store, BOB).await, [1, 2]);
}

/// The URL of a way to the database at `url`. A connection that sends `mark` is held back from there on, until it is told to go on.
async fn held_back(url: &str, mark: &'static [u8]) -> (String, watch::Sender<bool>) {
    let options: PgConnectOptions = url.parse().expect("a URL");
    let socket = options.get_socket().expect("a socket").join(format!(".s.PGSQL.{}", options.get_port()));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let (goes_on, told) = watch::channel(false);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = UnixStream::connect(&socket).await.expect("the server's socket");
            let (mut told, (mut from_near, mut to_near)) = (told.clone(), near.into_split());
            let (mut from_far, mut to_far) = far.into_split();
            tokio::spawn(async move { copy(&mut from_far, &mut to_near).await });
            tokio::spawn(async move {
                let mut bytes = vec![0; 64 << 10];
                while let Ok(read @ 1..) = from_near.read(&mut bytes).await {
                    if bytes[..read].windows(mark.len()).any(|part| part == mark) {
                        told.wait_for(|goes_on| *goes_on).await.expect("the test goes on");
                    }
                    to_far.write_all(&bytes[..read]).await.expect("the database reads");
                }
            });
        }
    });
    let database = options.get_database().expect("named");
    (format!("postgres://postgres@127.0.0.1:{port}/{database}?sslmode=disable"), goes_on)
}

/// A commit that was still on its way when its outcome was looked for is not stored any more: "try again" was answered.
#[tokio::test]
async fn a_commit_that_arrives_after_its_outcome_was_looked_for_is_not_stored() {
    let url = durable_database().await;
    let (through, goes_on) = held_back(&url, b"message 2").await;
    let impatient = PgOptions {
        queue_connections: 1,
        statement_timeout: Duration::from_secs(1),
        lock_timeout: Duration::from_millis(20),
        ..PgOptions::default()
    };
    let store = open_with(&through, impatient).await;
    one(&store, Write::Accept(say(ANN, BOB, 1))).await;
    let mut operator = connection(&url).await;
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    let unknown = store.commit(vec![Write::Accept(say(ANN, BOB, 2))]).await;
    assert!(matches!(&unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    assert_eq!(store.keys(&[(ANN, client_id(2))]).await.expect("read")[0].record(), None);
    store.close().await;
    goes_on.send_replace(true);
    until("it has arrived, and its session is over", async || {
        sqlx::query_scalar::<_, i64>(sessions).fetch_one(&mut operator).await.expect("counted") == 1
    })
    .await;
    assert_eq!(ids(&open(&url).await, BOB).await, [1]);
}

/// Acknowledged messages are there after the database was killed, and the store goes on without a restart of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_killed_keeps_what_was_acknowledged() {
    let server = Server::start_with("");
    let url = server.new_database().await;
    let store = Arc::new(open(&url).await);
    let sending = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            let mut acknowledged = Vec::new();
            for name in 0.. {
                match store.commit(vec![Write::Accept(say(ANN, BOB, name))]).await {
                    Ok(_) => acknowledged.push(name),
                    Err(error) => return (acknowledged, name, error),
                }
            }
            unreachable!("it goes on until it fails")
        }
    });
    until("a message is stored", async || store.watermark(BOB).await.is_ok_and(|latest| latest >= id(20)))
        .await;
    server.kill();
    let (acknowledged, last, error) = sending.await.expect("ended");
    assert!(matches!(error, CommitError::Unknown(_) | CommitError::Refused(_)), "{error}");
    assert!(store.health().trouble.is_some());
    server.run();
    // Without a commit: nobody sends to a server that is not ready.
    until("the trouble is over", async || store.health().trouble.is_none()).await;
    let keys: Vec<_> = acknowledged.iter().map(|name| (ANN, client_id(*name))).collect();
    // Connections of before are broken; each is noticed by the one that uses it.
    until("the connections are new", async || {
        let (states, read) = tokio::join!(store.keys(&keys), store.watermark(BOB));
        let stored = states.is_ok_and(|states| {
            assert!(states.iter().all(|state| state.record().is_some()), "{states:?}");
            true
        });
        stored && read.is_ok()
    })
    .await;
    // The last one may be stored or not; its record settles what comes of it.
    let again = store.commit(vec![Write::Accept(say(ANN, BOB, last))]).await.expect("committed");
    let rows = match again[..] {
        [Outcome::Accepted(..)] | [Outcome::Rejected(_)] => last as u64 + 1,
        _ => panic!("{again:?}"),
    };
    assert_eq!(ids_after(&store, rows).await, rows);
}

#[tokio::test]
async fn rows_that_cannot_be_read_keep_no_others_from_going_when_they_are_old() {
    let url = durable_database().await;
    let store = open(&url).await;
    for name in 1..=3 {
        store.commit(vec![Write::Accept(say(ANN, BOB, name))]).await.expect("committed");
    }
    let damage = format!("UPDATE entries SET kind = 99 WHERE receiver = {ANN} AND message_id = 2");
    run(&mut connection(&url).await, &damage).await;
    let read = store.range(ANN, RangeQuery::after(MessageId::ZERO, 9)).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    let expired = store.expire_rows(None, Timestamp(i64::MAX), 100).await.expect("removed");
    assert!(expired.is_done && expired.removed == 3, "{expired:?}");
}

/// How many rows Bob has, which all have their ids in a row.
async fn ids_after(store: &PostgresStore, most: u64) -> u64 {
    let (mut cursor, mut rows) = (MessageId::ZERO, 0);
    while rows <= most {
        let page = store.range(BOB, RangeQuery::after(cursor, 100)).await.expect("read");
        for entry in &page.rows {
            rows += 1;
            assert_eq!(entry.message_id.get(), rows);
            cursor = entry.message_id;
        }
        if !page.more {
            break;
        }
    }
    rows
}
