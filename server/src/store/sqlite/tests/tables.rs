//! Tables of other programs: the contract, and that they read the same across flushes, crashes and failures.

use std::sync::atomic::{AtomicU64, Ordering};

use super::failures::over;
use super::*;
use crate::domain::{Direction, Timestamp};
use crate::store::archive::{CounterRecord, Import as _, Record, TableRowRecord};
use crate::store::conformance::tables::{
    all, append, delete, first, numbered, one, put, run as contract, stored, table, write,
};
use crate::store::memory::MemoryTables;
use crate::store::tables::{
    RowChange, TableId, TableMade, TableOutcome, TableRecord, TableScan, TableStore, TableWrite,
};

#[tokio::test]
async fn the_contract_holds_in_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    contract(&open(directory.path(), SqliteOptions::unflushed()).await, false).await;
}

#[tokio::test]
async fn the_contract_holds_while_everything_is_flushed() {
    let directory = tempfile::tempdir().expect("a directory");
    contract(&open(directory.path(), flushing()).await, false).await;
}

/// A change of a row: under which of a few values, which number (0: the next one), whether it is deleted.
type RowStep = (u8, u8, bool);

fn steps() -> impl Strategy<Value = Vec<Vec<RowStep>>> {
    let step = (0..3_u8, prop_oneof![2 => Just(0_u8), 3 => 1..12_u8], prop::bool::weighted(0.3));
    prop::collection::vec(prop::collection::vec(step, 1..5), 1..4)
}

/// The writes of some steps; those of one write are under one value.
fn writes(tables: &[TableId], steps: &[Vec<RowStep>], made: &mut u64) -> Vec<TableWrite> {
    let one = |steps: &Vec<RowStep>| {
        let (at, ..) = steps[0];
        let value = ["ann", "bob", ""][usize::from(at)];
        let changes = steps.iter().map(|&(_, number, deletes)| {
            *made += 1;
            let text = format!("row {made}");
            match number {
                0 => append(value, text.as_bytes()),
                n if deletes => delete(numbered(value, n.into())),
                n => put(numbered(value, n.into()), text.as_bytes()),
            }
        });
        let changes: Vec<RowChange> = changes.collect();
        write(tables[usize::from(at) % tables.len()], value, changes)
    };
    steps.iter().map(one).collect()
}

async fn live(scenes: Vec<(Vec<Vec<RowStep>>, StoreEvent)>, options: fn() -> SqliteOptions) {
    let model = MemoryTables::new();
    let mut life = StoreLife::begin(options()).await;
    let mut tables = Vec::new();
    for name in ["one", "two"] {
        tables.push(table(&model, name).await);
        assert_eq!(table(&life.store, name).await, tables[tables.len() - 1]);
    }
    let mut made = 0;
    for (steps, event) in scenes {
        let writes = writes(&tables, &steps, &mut made);
        let done = TableStore::commit(&life.store, writes.clone()).await.expect("committed");
        assert_eq!(done, TableStore::commit(&model, writes).await.expect("committed"));
        life = life.after(&event, options()).await;
        for table in &tables {
            assert_eq!(all(&life.store, *table).await, all(&model, *table).await);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_of_tables_reads_like_the_model_across_crashes(
        scenes in prop::collection::vec((steps(), events()), 1..10),
    ) {
        run(live(scenes, SqliteOptions::unflushed));
    }

    #[test]
    fn any_history_of_tables_reads_like_the_model_while_it_is_flushed(
        scenes in prop::collection::vec((steps(), events()), 1..6),
    ) {
        run(live(scenes, flushing));
    }
}

#[tokio::test]
async fn a_flush_of_tables_may_be_cut_off_after_any_of_its_steps() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), SqliteOptions::unflushed()).await;
    let rows = table(&store, "rows").await;
    for n in 0..4_u8 {
        stored(&store, write(rows, "ann", vec![append("ann", &[n]), append("ann", &[n])])).await;
        stored(&store, write(rows, "bob", vec![append("bob", &[n])])).await;
    }
    store.close().await;
    drop(store);
    let store = open(directory.path(), SqliteOptions::unflushed()).await;
    let changes = vec![delete(numbered("ann", 1)), put(numbered("ann", 2), b"new"), append("ann", b"9")];
    stored(&store, write(rows, "ann", changes)).await;
    stored(&store, write(rows, "cat", vec![append("cat", b"1"), append("cat", b"2"), append("cat", b"3")]))
        .await;
    // Messages beside them are one flush.
    send_text(&store, (Uid(1), 1), (Uid(2), 1), 1).await;
    let expected = all(&store, rows).await;
    assert_eq!(expected.len(), 15);
    let mut steps = 0;
    loop {
        let cut = copied(directory.path());
        let (db, mut flush) = frozen(cut.path(), unflushed()).await;
        let mut more = true;
        for _ in 0..steps {
            more = flush.step(&db).await.expect("flushed");
        }
        let after = copied(cut.path());
        for closed in [false, true] {
            let again = open(after.path(), SqliteOptions::unflushed()).await;
            assert_eq!(all(&again, rows).await, expected, "after {steps} steps");
            if closed {
                assert_eq!(stored(&again, write(rows, "cat", vec![append("cat", b"4")])).await, [4]);
                assert_eq!(stored(&again, write(rows, "ann", vec![append("ann", b"10")])).await, [10]);
                assert_eq!(ids(&again, Uid(2)).await, [1]);
            }
            again.close().await;
        }
        if !more {
            break;
        }
        steps += 1;
    }
    assert!(steps >= 5, "the flush has several steps, so each was cut off");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reader_sees_a_part_of_a_write_while_it_is_flushed() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(open(directory.path(), flushing()).await);
    let pairs = table(&*store, "pairs").await;
    let pair = |n: u64| [1, 5, 9].map(|at| put(numbered("ann", at), &n.to_be_bytes())).to_vec();
    stored(&*store, write(pairs, "ann", pair(0))).await;
    let writer = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for n in 1..=300 {
                stored(&*store, write(pairs, "ann", pair(n))).await;
            }
        }
    });
    let keys = [1, 5, 9].map(|at| {
        let (partition, _) = crate::store::conformance::tables::first("ann");
        (pairs, partition, numbered("ann", at).with(0).to_vec())
    });
    let (mut last, mut looks) = (0, 0);
    while !writer.is_finished() {
        let scan = TableScan {
            table: pairs,
            partition_key: None,
            start: vec![],
            end: vec![0xff],
            direction: Direction::Forward,
            rows: 9,
            bytes: 1 << 20,
        };
        let scanned = store.scan(&scan).await.expect("read").0;
        let by_key: Vec<_> = store.rows(&keys).await.expect("read").into_iter().flatten().collect();
        for rows in [scanned, by_key] {
            let seen: Vec<u64> =
                rows.iter().map(|row| u64::from_be_bytes(row.row[..].try_into().expect("8 bytes"))).collect();
            assert!(seen.len() == 3 && seen[0] == seen[1] && seen[1] == seen[2], "{seen:?}");
            assert!(seen[0] >= last, "{} after {last}", seen[0]);
            last = seen[0];
        }
        looks += 1;
    }
    writer.await.expect("it writes");
    assert!(looks > 10, "{looks}");
}

#[tokio::test]
async fn a_full_disk_refuses_table_writes_and_gives_no_number_twice() {
    let directory = tempfile::tempdir().expect("a directory");
    let room = Arc::new(AtomicU64::new(100_000));
    let store = over(directory.path(), |journal| journal.limit_bytes(&room)).await;
    let rows = table(&store, "rows").await;
    assert_eq!(stored(&store, write(rows, "ann", vec![append("ann", b"1")])).await, [1]);
    let large = write(rows, "ann", vec![append("ann", &[7; 400_000])]);
    let refused = TableStore::commit(&store, vec![large.clone()]).await;
    assert!(matches!(refused, Err(CommitError::Refused(StoreError::Unavailable(_)))), "{refused:?}");
    assert_eq!(all(&store, rows).await.len(), 1);
    room.store(u64::MAX, Ordering::Relaxed);
    assert_eq!(stored(&store, large).await, [2]);
}

#[tokio::test]
async fn after_a_lost_answer_and_a_panic_numbers_go_on() {
    for stored_before in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let store = over(directory.path(), |journal| journal.panic_next(stored_before)).await;
        let rows = table(&store, "rows").await;
        let unknown = TableStore::commit(&store, vec![write(rows, "ann", vec![append("ann", b"1")])]).await;
        assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
        let there = all(&store, rows).await.len() as i64;
        assert_eq!(there, i64::from(stored_before));
        assert_eq!(stored(&store, write(rows, "ann", vec![append("ann", b"2")])).await, [there + 1]);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let store = over(directory.path(), |journal| journal.lose_next_answer()).await;
    let rows = table(&store, "rows").await;
    let unknown = TableStore::commit(&store, vec![write(rows, "ann", vec![append("ann", b"1")])]).await;
    assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    assert_eq!(stored(&store, write(rows, "ann", vec![append("ann", b"2")])).await, [2]);
}

#[tokio::test]
async fn writes_to_tables_and_messages_that_wait_share_a_batch() {
    let life = StoreLife::begin(SqliteOptions::unflushed()).await;
    let rows = table(&life.store, "rows").await;
    let both = async |n: u32| {
        let row = write(rows, "ann", vec![append("ann", &n.to_be_bytes())]);
        let told = send_text(&life.store, (Uid(2 * n), 1), (Uid(2 * n + 1), 1), n.into());
        tokio::join!(stored(&life.store, row), told).0[0]
    };
    let mut numbers = futures_util::future::join_all((1..=40).map(both)).await;
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
    let after = copied(life.directory.path());
    let batches = batches(after.path()).await;
    assert!((1..40).contains(&batches), "{batches} batches for 80 commits");
    let again = open(after.path(), SqliteOptions::unflushed()).await;
    assert_eq!(all(&again, rows).await, all(&life.store, rows).await);
    assert_eq!(ids(&again, Uid(41)).await, [1]);
}

#[tokio::test]
async fn a_flush_of_rows_that_cannot_go_on_stops_commits_before_memory_overflows() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = SqliteOptions { flush_bytes: 100_000, ..SqliteOptions::default() };
    let store = open(directory.path(), options).await;
    let rows = table(&store, "rows").await;
    let mut tx = store.shared.db.write().await.expect("begun");
    let refuse =
        "CREATE TRIGGER refuse BEFORE INSERT ON table_rows BEGIN SELECT RAISE(ABORT, 'not now'); END";
    sqlx::query(refuse).execute(&mut *tx).await.expect("changed");
    tx.commit().await.expect("committed");
    let mut taken = 0;
    // The same row again and again weighs as much as others would: the journal grows.
    while TableStore::commit(&store, vec![write(rows, "ann", vec![put(numbered("ann", 1), &[1; 10_000])])])
        .await
        .is_ok()
    {
        taken += 1;
    }
    assert!((9..=30).contains(&taken), "refused after {taken}");
    assert!(store.health().trouble.is_some_and(|trouble| trouble.contains("memory is full")));
}

#[tokio::test]
async fn what_a_flush_brings_of_a_deleted_table_is_removed_as_well() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), SqliteOptions::unflushed()).await;
    let (gone, stays) = (table(&store, "gone").await, table(&store, "stays").await);
    for table in [gone, stays] {
        stored(&store, write(table, "ann", vec![append("ann", b"1"), append("ann", b"2")])).await;
    }
    assert!(store.delete_table(gone).await.expect("deleted"));
    assert_eq!(store.forget_deleted(10).await.expect("asked"), 0, "nothing of it is in the tables yet");
    let crashed = copied(directory.path());
    store.close().await;
    drop(store);
    for place in [directory.path(), crashed.path()] {
        let store = open(place, SqliteOptions::unflushed()).await;
        assert_eq!(one(&store, write(gone, "ann", vec![append("ann", b"3")])).await, TableOutcome::NoTable);
        store.close().await;
        drop(store);
        let store = open(place, SqliteOptions::unflushed()).await;
        assert_eq!(store.forget_deleted(2).await.expect("asked"), 2);
        assert_eq!(store.forget_deleted(2).await.expect("asked"), 1, "and its counter");
        assert_eq!(store.forget_deleted(2).await.expect("asked"), 0);
        let left: Vec<i64> = sqlx::query_scalar("SELECT id FROM tables")
            .fetch_all(store.shared.db.readers())
            .await
            .expect("read");
        assert_eq!(left, [stays.0.cast_signed()]);
        assert_eq!(all(&store, stays).await.len(), 2);
        let made = store.create_table("suite", "new", "{}", Timestamp(1), 9).await.expect("asked");
        assert!(matches!(made, TableMade::Made(made) if made.id > stays));
        store.close().await;
    }
}

#[tokio::test]
async fn a_counter_at_its_end_refuses_and_silences_nobody() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), flushing()).await;
    let rows = table(&store, "rows").await;
    stored(&store, write(rows, "ann", vec![append("ann", b"1")])).await;
    store.close().await;
    drop(store);
    let db = Db::open(&directory.path().join("tidemark.db")).await.expect("opened");
    let mut tx = db.write().await.expect("begun");
    sqlx::query("UPDATE table_counters SET last_id = 9007199254740990")
        .execute(&mut *tx)
        .await
        .expect("moved");
    tx.commit().await.expect("committed");
    db.close().await.expect("closed");
    drop(db);
    let store = open(directory.path(), flushing()).await;
    let two = write(rows, "ann", vec![append("ann", b"2"), append("ann", b"3")]);
    let bob = write(rows, "bob", vec![append("bob", b"4")]);
    let done = TableStore::commit(&store, vec![two.clone(), bob]).await.expect("committed");
    assert!(matches!(&done[..], [TableOutcome::Rejected(_), TableOutcome::Stored(_)]), "{done:?}");
    assert_eq!(stored(&store, write(rows, "ann", vec![append("ann", b"5")])).await, [9_007_199_254_740_991]);
    assert!(matches!(one(&store, two).await, TableOutcome::Rejected(_)));
}

/// Everything newer than the backup was lost: also the first numbers of a value, and a whole table.
#[tokio::test]
async fn after_a_restore_no_number_comes_that_a_lost_row_may_have_had() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path(), SqliteOptions::unflushed()).await;
    let rows = table(&store, "rows").await;
    stored(&store, write(rows, "ann", vec![append("ann", b"1"), append("ann", b"2")])).await;
    let backup = copied(directory.path());
    for value in ["ann", "bob"] {
        stored(&store, write(rows, value, vec![append(value, b"lost")])).await;
    }
    let db = Db::open(&backup.path().join("tidemark.db")).await.expect("opened");
    skip_ids(&db, &SqliteOptions::unflushed(), 10_000_000).await.expect("skipped");
    skip_ids(&db, &SqliteOptions::unflushed(), 5).await.expect("again");
    db.close().await.expect("closed");
    drop(db);
    let store = open(backup.path(), SqliteOptions::unflushed()).await;
    assert_eq!(stored(&store, write(rows, "ann", vec![append("ann", b"3")])).await, [10_000_008]);
    assert_eq!(stored(&store, write(rows, "bob", vec![append("bob", b"4")])).await, [10_000_006]);
    let other = table(&store, "other").await;
    assert_eq!(stored(&store, write(other, "ann", vec![append("ann", b"5")])).await, [10_000_006]);
}

#[tokio::test]
async fn an_import_goes_on_that_was_cut_off_behind_the_rows_of_a_chunk() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tidemark.db");
    let record = TableRecord {
        id: TableId(3),
        instance: "suite".into(),
        name: "rows".into(),
        definition: "{}".into(),
        created_at: Timestamp(1),
    };
    let (partition_key, value) = first("ann");
    let key = numbered("ann", 5).with(0).to_vec();
    let row = TableRowRecord { table: record.id, partition_key, key: key.clone(), row: b"5".to_vec() };
    let counter = CounterRecord { table: record.id, partition_key, first: value, last_id: 7 };
    let of_rows = vec![Record::Counter(counter), Record::TableRow(row)];
    let chunk = [vec![Record::Table(record.clone(), 0)], of_rows.clone()].concat();

    let db = Db::open(&path).await.expect("opened");
    let mut import = SqliteImport::new(db.clone());
    assert_eq!(import.begin("a file").await.expect("begun"), 0);
    import.write_tables(of_rows).await.expect("written");
    db.close().await.expect("closed");

    let db = Db::open(&path).await.expect("opened");
    let mut import = SqliteImport::new(db.clone());
    assert_eq!(import.begin("a file").await.expect("goes on"), 0, "nothing counts yet");
    import.write(chunk).await.expect("written");
    assert_eq!(import.begin("a file").await.expect("goes on"), 3);
    import.finish(HistoryId(Uuid::from_u128(1))).await.expect("finished");
    let store =
        SqliteStore::open(db, SqliteOptions::unflushed(), HistoryId(Uuid::nil())).await.expect("opened");
    assert_eq!(all(&store, record.id).await, [(key, b"5".to_vec())]);
    assert_eq!(stored(&store, write(record.id, "ann", vec![append("ann", b"8")])).await, [8]);
}
