//! Young rows: where a row is, whatever was cut off, and what reads while it moves.

use super::*;
use crate::store::conformance::{accept, row};

/// An installation with four rows of each of two users, none of them flushed.
async fn four_messages() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), SqliteOptions::unflushed()).await;
    for n in 1..=4 {
        send_text(&store, (Uid(1), n), (Uid(2), n), n.into()).await;
    }
    copied(directory.path())
}

/// How many rows the two tables have.
async fn in_tables(directory: &Path) -> (i64, i64) {
    let db = Db::open(&directory.join("tidemark.db")).await.expect("opened");
    let sql = "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM young_entries)";
    let counts = sqlx::query_as(sql).fetch_one(db.readers()).await.expect("read");
    db.close().await.expect("closed");
    counts
}

/// A flush with these options, whole or until before it is noted as done.
async fn flushed(directory: &Path, young_rows: usize, is_whole: bool) -> TempDir {
    let (db, mut flush) = frozen(directory, SqliteOptions { young_rows, ..unflushed() }).await;
    // Twice four rows in chunks of three, and the idempotency records.
    for _ in 0..if is_whole { 100 } else { 4 } {
        if !flush.step(&db).await.expect("flushed") {
            break;
        }
    }
    copied(directory)
}

#[tokio::test]
async fn a_row_is_there_once_wherever_the_flush_that_was_cut_off_put_it() {
    for (before, after) in [(0, 100), (100, 0), (100, 100)] {
        let cut = flushed(four_messages().await.path(), before, false).await;
        let counts = in_tables(cut.path()).await;
        assert!(
            counts.0 + counts.1 > 4 && (counts.0 == 0) != (before == 0),
            "{counts:?}: cut off among them"
        );
        let done = flushed(cut.path(), after, true).await;
        let counts = in_tables(done.path()).await;
        assert_eq!(counts.0 + counts.1, 8, "{before}, then {after}: {counts:?}");
        let store = open(done.path(), SqliteOptions::unflushed()).await;
        assert_eq!(ids(&store, Uid(2)).await, [1, 2, 3, 4]);
    }
}

/// Somebody has put a copy of a young row into the other table by hand.
#[tokio::test]
async fn a_young_row_that_cannot_settle_is_set_aside_and_all_others_settle() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), SqliteOptions { young_parts: 16, ..SqliteOptions::unflushed() }).await;
    for n in 1..=3 {
        send_text(&store, (Uid(1), n), (Uid(2), n), n.into()).await;
    }
    store.close().await;
    drop(store);
    change(
        directory.path(),
        "INSERT INTO entries SELECT partition_key, receiver, 9, kind, conversation, sender, client_id, body, sent_at
         FROM young_entries WHERE receiver = 2 AND message_id = 2",
    )
    .await;
    // All parts have their turn.
    for n in 10..30 {
        let store = open(directory.path(), settling()).await;
        send_text(&store, (Uid(3), n), (Uid(4), n), n.into()).await;
        store.close().await;
        assert_eq!(store.health().set_aside, 1);
        if in_tables(directory.path()).await.1 == 0 {
            break;
        }
    }
    assert_eq!(in_tables(directory.path()).await.1, 0);
    let store = open(directory.path(), SqliteOptions::unflushed()).await;
    assert_eq!(ids(&store, Uid(2)).await, [1, 3, 9]);
    assert_eq!(store.conversations(Uid(2), None, 10).await.expect("read")[0].last.message_id, id(3));
}

#[tokio::test]
async fn a_flush_is_done_when_young_rows_cannot_settle_and_they_do_later() {
    let directory = tempfile::tempdir().expect("a directory");
    open(directory.path(), SqliteOptions::unflushed()).await.close().await;
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'not now'); END";
    change(directory.path(), refuse).await;
    let store = open(directory.path(), settling()).await;
    send_text(&store, (Uid(1), 1), (Uid(2), 1), 1).await;
    store.close().await;
    assert_eq!(store.health().failed_flushes, 0);
    drop(store);
    assert_eq!(in_tables(directory.path()).await, (0, 2));
    change(directory.path(), "DROP TRIGGER refuse").await;
    let store = open(directory.path(), settling()).await;
    assert_eq!(store.shared.memory.active().rows(), 0, "nothing is replayed");
    assert_eq!(ids(&store, Uid(2)).await, [1]);
    send_text(&store, (Uid(1), 2), (Uid(2), 2), 2).await;
    store.close().await;
    drop(store);
    assert_eq!(in_tables(directory.path()).await, (4, 0));
}

async fn change(directory: &Path, sql: &'static str) {
    let db = Db::open(&directory.join("tidemark.db")).await.expect("opened");
    let mut tx = db.write().await.expect("begun");
    sqlx::query(sql).execute(&mut *tx).await.expect("changed");
    tx.commit().await.expect("committed");
    db.close().await.expect("closed");
}

/// Every part settles by and by, and an inbox that gets many rows has none young.
#[tokio::test]
async fn each_part_has_its_turn_and_busy_inboxes_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = SqliteOptions { young_rows: 8, young_parts: 3, ..SqliteOptions::unflushed() };
    for flush in 1..=4_u64 {
        let store = open(directory.path(), options.clone()).await;
        for n in 1..=8 {
            // Uid 1 gets eight rows, each of the others one.
            let name = u128::from(100 * flush + n);
            let content = text_message(Uid(1), Conversation::User(Uid(10 + n as u32)), name, "hi");
            let rows = vec![row(Uid(1), 8 * flush + n), row(Uid(10 + n as u32), flush)];
            let write = Write::Accept(accept(content, rows, vec![]));
            assert!(matches!(
                store.commit(vec![write]).await.expect("committed")[..],
                [Outcome::Accepted(..)]
            ));
        }
        store.close().await;
        drop(store);
        let (settled, young) = in_tables(directory.path()).await;
        assert_eq!(settled + young, 16 * flush as i64);
    }
    let db = Db::open(&directory.path().join("tidemark.db")).await.expect("opened");
    let young: Vec<(i64, i64)> = sqlx::query_as("SELECT receiver, message_id FROM young_entries ORDER BY 2")
        .fetch_all(db.readers())
        .await
        .expect("read");
    assert!(young.iter().all(|(receiver, id)| *receiver > 10 && *id > 1), "{young:?}");
    assert_eq!(young.last().map(|(_, id)| *id), Some(4), "some of the last flush");
}
