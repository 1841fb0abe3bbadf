//! Disks that are full, journals that are not what they were.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::journal::log;
use super::*;
use crate::domain::{Body, Content, Kind};
use crate::store::Directory;
use crate::store::conformance::{accept, row, text_message};

/// A store whose journal is given by the caller.
pub(super) async fn over(directory: &Path, prepare: impl FnOnce(&mut Journal)) -> SqliteStore {
    let db = Db::open(&directory.join("tidemark.db")).await.expect("opened");
    let mut journal = Journal::open(&db, 0).await.expect("opened");
    prepare(&mut journal);
    SqliteStore::start(db, journal, SqliteOptions::unflushed(), HistoryId(Uuid::nil()))
        .await
        .expect("started")
}

fn long_message(name: u128, n: u64) -> Write {
    let content = text_message(Uid(1), Conversation::User(Uid(1)), name, &"x".repeat(200_000));
    Write::Accept(accept(content, vec![row(Uid(1), n)], vec![]))
}

#[tokio::test]
async fn a_full_disk_refuses_and_is_survived_without_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let room = Arc::new(AtomicU64::new(100_000));
    let store = over(directory.path(), |journal| journal.limit_bytes(&room)).await;
    send_text(&store, (Uid(1), 1), (Uid(2), 1), 1).await;
    let refused = store.commit(vec![long_message(2, 2), long_message(3, 3)]).await;
    assert!(matches!(refused, Err(CommitError::Refused(StoreError::Unavailable(_)))), "{refused:?}");
    assert_eq!(ids(&store, Uid(1)).await, [1]);
    let trouble = store.health().trouble.expect("nothing large can be stored");
    assert!(trouble.contains("tidemark.journal.0.dat: the disk is full"), "{trouble}");
    room.store(u64::MAX, Ordering::Relaxed);
    let done = store.commit(vec![long_message(2, 2)]).await.expect("there is room");
    assert!(matches!(done[..], [Outcome::Accepted(AcceptanceId(2), _)]), "{done:?}");
    assert_eq!(store.health().trouble, None);
    assert_eq!(ids(&store, Uid(1)).await, [1, 2]);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_what_was_stored_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = over(directory.path(), |journal| journal.lose_next_answer()).await;
    let unknown = store.commit(vec![long_message(1, 1)]).await;
    assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    assert_eq!(ids(&store, Uid(1)).await, [1]);
    let again = store.commit(vec![long_message(1, 2)]).await.expect("committed");
    assert!(matches!(again[..], [Outcome::Rejected(_)]), "{again:?}");
    let next = store.commit(vec![long_message(2, 2)]).await.expect("committed");
    assert!(matches!(next[..], [Outcome::Accepted(AcceptanceId(2), _)]), "{next:?}");
}

async fn refused(directory: &Path) -> OpenError {
    let db = Db::open(&directory.join("tidemark.db")).await.expect("opened");
    SqliteStore::open(db, SqliteOptions::unflushed(), HistoryId(Uuid::nil())).await.err().expect("refused")
}

/// The two files of the log.
const LOG: [&str; 2] = ["tidemark.journal.0.dat", "tidemark.journal.1.dat"];

/// The frames of a file of the log.
type Places = BTreeMap<u64, Range<usize>>;

/// Why a copy of the installation in `directory` is refused after this file of its log was changed.
async fn refused_after(directory: &Path, name: &str, change: impl FnOnce(&mut Vec<u8>, &Places)) -> String {
    let damaged = copied(directory);
    let path = damaged.path().join(name);
    let mut bytes = std::fs::read(&path).expect("readable");
    let places = log::places(&bytes);
    change(&mut bytes, &places);
    std::fs::write(path, bytes).expect("written");
    refused(damaged.path()).await.to_string()
}

#[tokio::test]
async fn a_damaged_journal_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let _alive = some_life(directory.path()).await;
    let place = directory.path();
    let changed = "tidemark.journal.0.dat: its checksum is wrong (byte ";
    let a_bit = refused_after(place, LOG[0], |bytes, places| bytes[places[&9].start + 50] ^= 1).await;
    assert!(a_bit.contains(changed), "{a_bit}");
    let zeros = |bytes: &mut Vec<u8>, places: &Places| {
        let last = places.values().last().expect("many").clone();
        bytes[last].fill(0);
    };
    let the_last = refused_after(place, LOG[0], zeros).await;
    assert!(the_last.contains(changed), "{the_last}");
    for name in LOG {
        let length = std::fs::metadata(place.join(name)).expect("there").len() as usize;
        for cut in (4_096..length).step_by(4_096) {
            let error = refused_after(place, name, |bytes, _| bytes.truncate(cut)).await;
            assert!(error.contains(&format!("{name}: it is cut off (byte {cut})")), "{error}");
            let error = refused_after(place, name, |bytes, _| bytes[cut..].fill(0)).await;
            assert!(error.contains(&format!("{name}: its checksum is wrong (byte {cut})")), "{error}");
        }
    }
}

#[tokio::test]
async fn a_journal_older_than_the_database_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let _alive = some_life(directory.path()).await;
    let early = copied(directory.path());
    let last = batches(early.path()).await;
    let db = Db::open(&early.path().join("tidemark.db")).await.expect("opened");
    let mut tx = db.write().await.expect("begun");
    meta::put(&mut tx, meta::FLUSHED, last + 1).await.expect("changed");
    tx.commit().await.expect("committed");
    db.close().await.expect("closed");
    let error = refused(early.path()).await.to_string();
    assert!(
        error.contains(&format!("batch {} is missing; the files do not belong together", last + 1)),
        "{error}"
    );
}

#[tokio::test]
async fn the_log_of_another_moment_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let alive = some_life(directory.path()).await;
    let early = copied(directory.path());
    drop(alive);
    // Opened twice since then.
    for _ in 0..2 {
        batches(early.path()).await;
    }
    for name in LOG {
        let (late, path) = (copied(early.path()), early.path().join(name));
        let good = std::fs::read(&path).expect("readable");
        std::fs::copy(directory.path().join(name), &path).expect("put back");
        let error = refused(early.path()).await.to_string();
        assert!(error.contains(&format!("{name}: it is of another moment")), "{error}");
        std::fs::remove_file(&path).expect("removed");
        let error = refused(early.path()).await.to_string();
        assert!(error.contains(&format!("{name}: it is missing")), "{error}");
        std::fs::write(&path, good).expect("put back");
        let _store = open(late.path(), SqliteOptions::unflushed()).await;
    }
}

#[tokio::test]
async fn a_flush_that_cannot_go_on_stops_commits_before_memory_overflows() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = SqliteOptions { flush_rows: 4, ..SqliteOptions::default() };
    let store = open(directory.path(), options).await;
    // Nothing comes into the tables; what refuses it is no property of a row.
    let refuse =
        "CREATE TRIGGER refuse BEFORE INSERT ON young_entries BEGIN SELECT RAISE(ABORT, 'not now'); END";
    change_database(&store, refuse).await;
    let mut stored = 0;
    let refused = loop {
        stored += 1;
        let content = text_message(Uid(1), Conversation::User(Uid(2)), stored.into(), "hi");
        let write = accept(content, vec![row(Uid(1), stored), row(Uid(2), 10 + stored)], vec![]);
        if let Err(error) = store.commit(vec![Write::Accept(write)]).await {
            break error;
        }
    };
    assert!(matches!(refused, CommitError::Refused(StoreError::Unavailable(_))), "{refused}");
    assert!((4..=8).contains(&stored), "refused after {stored}");
    let health = store.health();
    assert!(health.trouble.is_some_and(|trouble| trouble.contains("memory is full")));
    assert!(health.refused_commits == 1 && health.failed_flushes > 0);
    assert_eq!(ids(&store, Uid(1)).await.len() as u64, stored - 1);
    // It heals by itself, also when nobody sends any more.
    change_database(&store, "DROP TRIGGER refuse").await;
    while store.health().trouble.is_some() {
        tokio::task::yield_now().await;
    }
    let content = text_message(Uid(1), Conversation::User(Uid(2)), 99, "hi");
    let write = accept(content, vec![row(Uid(1), stored), row(Uid(2), 10 + stored)], vec![]);
    store.commit(vec![Write::Accept(write)]).await.expect("stored again");
}

async fn change_database(store: &SqliteStore, sql: &'static str) {
    let mut tx = store.shared.db.write().await.expect("begun");
    sqlx::query(sql).execute(&mut *tx).await.expect("changed");
    tx.commit().await.expect("committed");
}

/// A copy for user 2 is owed; then the same message comes into the inbox another way, as by an import.
#[tokio::test]
async fn a_row_that_can_never_be_flushed_is_set_aside_and_all_else_goes_on() {
    let message = text_message(Uid(1), Conversation::User(Uid(2)), 1, "hi");
    let body = Body::from_stored(
        r#"{"emoji":["👍"],"of":{"client_id":"11111111-1111-4111-8111-000000000001","sender":2}}"#,
    );
    // Of this one the newest row alone stays, which is not one that is set aside.
    let reaction = Content { kind: Kind::Reaction, body, ..(*message).clone() };
    for content in [message, Arc::new(reaction)] {
        set_aside(content).await;
    }
}

async fn set_aside(content: Arc<Content>) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), SqliteOptions::unflushed()).await;
    let owed = crate::store::Recipient { uid: Uid(2), epoch: crate::domain::MembershipEpoch(0) };
    let write = accept(content.clone(), vec![row(Uid(1), 1)], vec![owed]);
    store.commit(vec![Write::Accept(write)]).await.expect("committed");
    store.close().await;
    drop(store);

    let db = Db::open(&directory.path().join("tidemark.db")).await.expect("opened");
    let mut inbox =
        SqliteInboxImport::open(Arc::clone(&db), &SqliteOptions::unflushed()).await.expect("opened");
    let entry = Entry { receiver: Uid(2), message_id: id(9), content: content.clone() };
    crate::store::archive::InboxImport::append(&mut inbox, vec![entry], vec![]).await.expect("appended");
    drop(inbox);
    db.close().await.expect("closed");
    drop(db);

    let store = open(directory.path(), SqliteOptions::unflushed()).await;
    let rows = vec![row(Uid(2), 10)];
    let owed = Write::Deliver(crate::store::Deliver {
        acceptance: AcceptanceId(1),
        content,
        rows,
        earlier: Vec::new(),
    });
    store.commit(vec![owed]).await.expect("committed");
    send_text(&store, (Uid(1), 2), (Uid(2), 11), 2).await;
    send_text(&store, (Uid(3), 1), (Uid(2), 12), 3).await;
    store.close().await;
    drop(store);

    let store = open(directory.path(), SqliteOptions::unflushed()).await;
    assert_eq!(store.health().set_aside, 1);
    assert_eq!(store.shared.memory.view().latest_id(Uid(2)), None, "all is flushed");
    assert_eq!(ids(&store, Uid(2)).await, [9, 11, 12]);
    assert_eq!(store.conversations(Uid(2), None, 10).await.expect("read").len(), 2);
    assert!(store.pending(PendingKey::default(), 1).await.expect("read").is_empty());
}

#[tokio::test]
async fn a_committer_that_panics_reads_everything_back_and_goes_on() {
    for after in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let store = over(directory.path(), |journal| journal.panic_next(after)).await;
        let unknown = store.commit(vec![long_message(1, 1)]).await;
        assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
        assert_eq!(store.health().trouble, None, "what is there is known again");
        let there = ids(&store, Uid(1)).await;
        assert_eq!(there, if after { vec![1] } else { vec![] });
        store.commit(vec![long_message(2, 2)]).await.expect("committed");
        assert_eq!(ids(&store, Uid(1)).await.last(), Some(&2));
    }
}

#[tokio::test]
async fn reads_that_hold_every_connection_keep_no_writer_waiting() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = SqliteOptions { readers: 2, waiting_reads: 1, ..SqliteOptions::default() };
    let store = open(directory.path(), options.clone()).await;
    send_text(&store, (Uid(1), 1), (Uid(2), 1), 1).await;
    store.close().await;
    drop(store);
    let store = open(directory.path(), options).await;
    let db = &store.shared.db;
    // All that readers may hold, and all that may wait: four connections' places and one in line.
    let held = (db.reader().await.expect("free"), db.reader().await.expect("free"));
    let places: Vec<_> = (0..3).map(|_| db.place().expect("room")).collect();
    let refused = store.watermark(Uid(1)).await;
    assert!(matches!(refused, Err(StoreError::Busy)), "{refused:?}");
    // Everything that a queue asks and does goes on, with nothing of it in memory.
    let (own, to_other) = (Uid(1), Conversation::User(Uid(2)));
    let names = Directory::on_sqlite(Arc::clone(db), 1).for_queues();
    assert_eq!(names.names(&[own]).await.expect("read"), [None]);
    assert_eq!(store.latest_ids(&[own, Uid(3)]).await.expect("read"), [id(1), MessageId::ZERO]);
    let key = (own, crate::store::conformance::client_id(1));
    assert!(store.keys(&[key]).await.expect("read")[0].record().is_some());
    assert!(store.entries(&[(own, id(1)), (own, id(2))]).await.expect("read")[0].is_some());
    assert_eq!(store.read_markers(&[(own, to_other)]).await.expect("read"), [MessageId::ZERO]);
    assert!(store.group(GroupId(1)).await.expect("read").is_none());
    send_text(&store, (Uid(1), 2), (Uid(2), 2), 2).await;
    drop((held, places));
    assert_eq!(store.watermark(Uid(1)).await.expect("read"), id(2));
}

#[tokio::test]
async fn at_its_limit_memory_forgets_what_is_used_least_and_not_everything() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = SqliteOptions { known_latest_ids: 100, known_groups: 4, ..SqliteOptions::unflushed() };
    let store = open(directory.path(), options).await;
    let often = Uid(1);
    for n in 1..=400 {
        let other = Uid(1_000 + n as u32);
        send_text(&store, (often, n), (other, 1), u128::from(n)).await;
    }
    store.close().await;
    let mut ledger = ledger::StoreLedger::default();
    for n in 1..=400 {
        ledger.learn_latest_id(often, id(n));
        ledger.learn_latest_id(Uid(1_000 + n as u32), id(1));
        ledger.settle(100, 4);
        let mut needs = ledger::Needs::default();
        let content = text_message(often, Conversation::User(often), 1, "hi");
        ledger.needs(&Write::Accept(accept(content, vec![row(often, n + 1)], vec![])), &mut needs);
        assert!(needs.latest_ids.is_empty(), "forgotten after {n}, although it is used all the time");
    }
}

#[tokio::test]
async fn rows_that_cannot_be_read_keep_no_others_from_going_when_they_are_old() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), flushing()).await;
    for n in 1..=3 {
        send_text(&store, (Uid(1), n), (Uid(2), n), n.into()).await;
    }
    store.close().await;
    let store = open(directory.path(), flushing()).await;
    let damage = |connection: &rusqlite::Connection| {
        let damaged = ["entries", "young_entries"].map(|rows| {
            connection
                .execute(&format!("UPDATE {rows} SET kind = 99 WHERE receiver = 1 AND message_id = 2"), [])
        });
        damaged.into_iter().try_for_each(|done| done.map(|_| ())).map_err(StoreError::corrupt)
    };
    store.shared.db.write_bulk(damage).await.expect("written");
    assert!(matches!(
        store.range(Uid(1), RangeQuery::after(MessageId::ZERO, 9)).await,
        Err(StoreError::Corrupt(_))
    ));
    let expired = store.expire_rows(None, Timestamp(i64::MAX), 100).await.expect("removed");
    assert!(expired.is_done && expired.removed == 3, "{expired:?}");
    assert!(ids(&store, Uid(2)).await.len() <= 1, "but for the shell");
    store.close().await;
}
