//! Disks that are full, journals that are not what they were.

use super::*;
use crate::store::conformance::{accept, row, said};

/// A store whose journal is given by the caller.
async fn over(directory: &Path, prepare: impl AsyncFnOnce(&mut Journal)) -> SqliteStore {
    let db = Db::open(&directory.join("tidemark.db")).await.expect("opened");
    let mut journal = Journal::open(&Journal::path_beside(db.path()), &unfolded(), 0).await.expect("opened");
    prepare(&mut journal).await;
    SqliteStore::start(db, journal, unfolded(), HistoryId(Uuid::nil())).await.expect("started")
}

fn long_message(name: u128, n: u64) -> Write {
    let content = said(Uid(1), Conversation::User(Uid(1)), name, &"x".repeat(200_000));
    Write::Accept(accept(content, vec![row(Uid(1), n)], vec![]))
}

#[tokio::test]
async fn a_full_disk_refuses_and_is_survived_without_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = over(directory.path(), async |journal| journal.limit_pages(60).await).await;
    told(&store, (Uid(1), 1), (Uid(2), 1), 1).await;
    let refused = store.commit(vec![long_message(2, 2), long_message(3, 3)]).await;
    assert!(matches!(refused, Err(CommitError::Refused(StoreError::Unavailable(_)))), "{refused:?}");
    assert_eq!(ids(&store, Uid(1)).await, [1]);
    // Reopened, the journal has no limit any more: the disk has room again.
    assert!(store.healthy());
    let done = store.commit(vec![long_message(2, 2)]).await.expect("there is room");
    assert!(matches!(done[..], [Done::Accepted(AcceptanceId(2), _)]), "{done:?}");
    assert_eq!(ids(&store, Uid(1)).await, [1, 2]);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_what_was_stored_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = over(directory.path(), async |journal| journal.lose_next_answer()).await;
    let unknown = store.commit(vec![long_message(1, 1)]).await;
    assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    assert_eq!(ids(&store, Uid(1)).await, [1]);
    let again = store.commit(vec![long_message(1, 2)]).await.expect("committed");
    assert!(matches!(again[..], [Done::Rejected(_)]), "{again:?}");
    let next = store.commit(vec![long_message(2, 2)]).await.expect("committed");
    assert!(matches!(next[..], [Done::Accepted(AcceptanceId(2), _)]), "{next:?}");
}

async fn refused(directory: &Path) -> OpenError {
    let db = Db::open(&directory.join("tidemark.db")).await.expect("opened");
    SqliteStore::open(db, unfolded(), HistoryId(Uuid::nil())).await.err().expect("refused")
}

async fn change_journal(directory: &Path, sql: &'static str) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(directory.join("tidemark.journal.db"));
    let mut connection =
        <sqlx::SqliteConnection as sqlx::Connection>::connect_with(&options).await.expect("open");
    sqlx::query(sql).execute(&mut connection).await.expect("changed");
}

#[tokio::test]
async fn a_damaged_journal_is_refused_by_name() {
    for damage in [
        "UPDATE journal SET batch = CAST(substr(batch, 1, 20) || x'7f' || substr(batch, 22) AS BLOB) WHERE seq = 9",
        "DELETE FROM journal WHERE seq = 9",
        "DELETE FROM journal WHERE seq <= 9",
        "UPDATE journal SET batch = (SELECT batch FROM journal WHERE seq = 8) WHERE seq = 9",
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        some_life(directory.path()).await;
        let damaged = copied(directory.path());
        change_journal(damaged.path(), damage).await;
        let error = refused(damaged.path()).await.to_string();
        assert!(error.contains("batch 9") || error.contains("batch 7"), "{damage}: {error}");
    }
}

#[tokio::test]
async fn a_journal_older_than_the_database_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    some_life(directory.path()).await;
    let folded = copied(directory.path());
    let (db, fold) = frozen(folded.path()).await;
    fold.run(&db, |_| ()).await.expect("folded");
    let mixed = copied(folded.path());
    change_journal(mixed.path(), "DELETE FROM journal WHERE seq > 8").await;
    let error = refused(mixed.path()).await.to_string();
    assert!(error.contains("do not belong together"), "{error}");
}

#[tokio::test]
async fn a_fold_that_cannot_go_on_stops_commits_before_memory_overflows() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = SqliteOptions { fold_rows: 4, ..SqliteOptions::default() };
    let store = open(directory.path(), options).await;
    // A row that is in the way of the unique index: the fold must see it, not pass over it.
    let mut tx = store.shared.db.write().await.expect("begun");
    sqlx::query(
        "INSERT INTO entries VALUES (?, 2, 9, 1, 'u:1', 1, unhex('00000000000000000000000000000001'), '{}', 0)",
    )
    .bind(Uid(2).partition_key().as_str().to_owned())
    .execute(&mut *tx)
    .await
    .expect("put");
    tx.commit().await.expect("committed");
    let mut stored = 0;
    let refused = loop {
        stored += 1;
        let content = said(Uid(1), Conversation::User(Uid(2)), stored.into(), "hi");
        let write = accept(content, vec![row(Uid(1), stored), row(Uid(2), 10 + stored)], vec![]);
        if let Err(error) = store.commit(vec![Write::Accept(write)]).await {
            break error;
        }
    };
    assert!(matches!(refused, CommitError::Refused(StoreError::Unavailable(_))), "{refused}");
    assert!((4..=8).contains(&stored), "refused after {stored}");
    assert!(!store.healthy());
    assert_eq!(ids(&store, Uid(1)).await.len() as u64, stored - 1);
}
