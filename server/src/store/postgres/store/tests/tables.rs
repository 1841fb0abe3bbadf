//! Tables of other programs: the contract on one server and on two by turns, and what several servers do to each other.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::future::join_all;

use super::races::deadlocks;
use super::*;
use crate::domain::{Direction, PartitionKey, Timestamp};
use crate::store::conformance::tables::{
    all, append, delete, first, numbered, put, run as contract, stored, table, write,
};
use crate::store::tables::{
    Expected, RowChange, StoredRow, TableId, TableMade, TableOutcome, TableRecord, TableScan, TableStore,
    TableWrite,
};
use crate::store::{CommitError, StoreError};

/// A table in which a scan costs more than a look along a key.
pub(super) const MUCH: &str = "
    INSERT INTO tables (id, instance, name, definition, created_at) VALUES (900, 'much', 'much', '{}', 0);
    INSERT INTO table_counters SELECT left(md5('v' || n), 4), 900, '\\x20'::bytea || convert_to('v' || n, 'UTF8') || '\\x0001'::bytea, 40
        FROM generate_series(1, 500) n;
    INSERT INTO table_rows SELECT partition_key, 900, first || '\\x10'::bytea || int8send(id # '-9223372036854775808'::bigint), '', '', 1, 'row'
        FROM table_counters, generate_series(1, 40) id;";

/// Every way to read that table and to write to it.
pub(super) async fn use_everything(store: &PostgresStore, round: u64) {
    let much = TableId(900);
    let value = |n: u64| format!("v{}", 1 + (round * 7 + n) % 500);
    for direction in [Direction::Forward, Direction::Backward] {
        for within in [true, false] {
            let value = value(3);
            let (low, high) = match within {
                true => (numbered(&value, 5).with(0).to_vec(), numbered(&value, 30).with(0).to_vec()),
                false => (vec![], vec![0xff]),
            };
            let (start, end) = if direction == Direction::Forward { (low, high) } else { (high, low) };
            let partition_key = within.then(|| first(&value).0);
            let scan =
                TableScan { table: much, partition_key, start, end, direction, rows: 10, bytes: 1 << 20 };
            let (page, more) = store.scan(&scan).await.expect("read");
            assert!(page.len() == 10 && more);
        }
    }
    let keys: Vec<_> =
        (0..20).map(|n| (much, first(&value(n)).0, numbered(&value(n), 7).with(0).to_vec())).collect();
    assert!(store.rows(&keys).await.expect("read").iter().all(Option::is_some));
    let changes = (0..10).map(|n| {
        let value = value(n);
        let expected = Expected::Absent;
        let new =
            RowChange { key: numbered(&value, 1_000 + round as i64), expected, row: Some(b"new"[..].into()) };
        let gone = delete(numbered(&value, 40 + round as i64));
        write(much, &value, vec![append(&value, b"next"), put(numbered(&value, 1), b"put"), new, gone])
    });
    let done = TableStore::commit(store, changes.collect()).await.expect("committed");
    assert!(done.iter().all(|done| matches!(done, TableOutcome::Stored(_))), "{done:?}");
    stored(store, write(much, &value(1), vec![append(&value(1), b"alone")])).await;
}

#[tokio::test]
async fn the_contract_holds() {
    let url = durable_database().await;
    contract(&open(&url).await, true).await;
}

/// Two servers; each call goes to the one that did not have the call before.
struct Turns {
    servers: [PostgresStore; 2],
    calls: AtomicUsize,
}

impl Turns {
    fn next(&self) -> &PostgresStore {
        &self.servers[self.calls.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

#[async_trait]
impl TableStore for Turns {
    async fn create_table(
        &self,
        instance: &str,
        name: &str,
        definition: &str,
        now: Timestamp,
        most: usize,
    ) -> Result<TableMade, StoreError> {
        self.next().create_table(instance, name, definition, now, most).await
    }

    async fn table(&self, instance: &str, name: &str) -> Result<Option<TableRecord>, StoreError> {
        self.next().table(instance, name).await
    }

    async fn tables(&self, instance: &str) -> Result<Vec<TableRecord>, StoreError> {
        self.next().tables(instance).await
    }

    async fn tables_after(&self, after: TableId, limit: usize) -> Result<Vec<TableRecord>, StoreError> {
        self.next().tables_after(after, limit).await
    }

    async fn redefine_table(&self, table: TableId, from: &str, to: &str) -> Result<bool, StoreError> {
        self.next().redefine_table(table, from, to).await
    }

    async fn delete_table(&self, table: TableId) -> Result<bool, StoreError> {
        self.next().delete_table(table).await
    }

    async fn forget_deleted(&self, limit: usize) -> Result<u64, StoreError> {
        self.next().forget_deleted(limit).await
    }

    async fn commit(&self, writes: Vec<TableWrite>) -> Result<Vec<TableOutcome>, CommitError> {
        TableStore::commit(self.next(), writes).await
    }

    async fn rows(
        &self,
        keys: &[(TableId, PartitionKey, Vec<u8>)],
    ) -> Result<Vec<Option<StoredRow>>, StoreError> {
        self.next().rows(keys).await
    }

    async fn scan(&self, scan: &TableScan) -> Result<(Vec<StoredRow>, bool), StoreError> {
        self.next().scan(scan).await
    }
}

#[tokio::test]
async fn the_contract_holds_on_two_servers_by_turns() {
    let (one, other, _) = two().await;
    contract(&Turns { servers: [one, other], calls: AtomicUsize::new(0) }, true).await;
}

/// Changes that two servers make to the same few rows and counters, in any order, each with an expectation of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_write_to_the_same_rows_without_a_deadlock_and_no_number_comes_twice() {
    const WRITERS: usize = 6;
    const CALLS: usize = 40;
    let (one, other, url) = two().await;
    let rows = table(&one, "rows").await;
    let values = ["ann", "bob", "cat", "dan"];
    let write_much = async |store: &PostgresStore, writer: usize| {
        let (mut given, mut done) = (Vec::new(), 0);
        for call in 0..CALLS {
            let mix = |n: usize| (writer * 31 + call * 17 + n * 7) % 11;
            let batch = (0..4).map(|nth| {
                let value = values[mix(nth) % 4];
                let changes = (0..4).map(|n| {
                    let key = numbered(value, 1_000_000 + (mix(nth + n) % 5) as i64);
                    match mix(n + 2 * nth) % 4 {
                        0 => append(value, b"appended"),
                        1 => put(key, b"put"),
                        2 => delete(key),
                        _ => RowChange { key, expected: Expected::Absent, row: Some(b"new"[..].into()) },
                    }
                });
                write(rows, value, changes.collect())
            });
            let batch: Vec<TableWrite> = batch.collect();
            let outcomes = TableStore::commit(store, batch.clone()).await.expect("committed");
            for (write, outcome) in batch.iter().zip(outcomes) {
                match outcome {
                    TableOutcome::Stored(numbers) => {
                        done += 1;
                        given.extend(numbers.into_iter().flatten().map(|n| (write.partition_key, n)));
                    }
                    TableOutcome::Stale => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        (given, done)
    };
    let all = join_all((0..WRITERS).map(|n| write_much(if n % 2 == 0 { &one } else { &other }, n))).await;
    let stored_writes: usize = all.iter().map(|(_, done)| done).sum();
    assert!(stored_writes > 100, "{stored_writes}");
    for value in values {
        let of_value = |(partition, _): &&(PartitionKey, i64)| *partition == first(value).0;
        let mut given: Vec<i64> =
            all.iter().flat_map(|(given, _)| given.iter().filter(of_value).map(|(_, n)| *n)).collect();
        given.sort_unstable();
        assert_eq!(given, (1..=given.len() as i64).collect::<Vec<_>>(), "{value}: each once, none left out");
    }
    one.close().await;
    other.close().await;
    assert_eq!(deadlocks(&url).await, 0);
}

/// Each adds one to the same row, on what it read before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_is_lost_between_two_servers() {
    const WRITERS: u64 = 6;
    const EACH: u64 = 20;
    let (one, other, _) = two().await;
    let rows = table(&one, "rows").await;
    let key = || [(rows, first("ann").0, numbered("ann", 1).with(0).to_vec())];
    let add = async |store: &PostgresStore| {
        for _ in 0..EACH {
            loop {
                let found = store.rows(&key()).await.expect("read").pop().flatten();
                let (count, expected) = match &found {
                    None => (0, Expected::Absent),
                    Some(row) => (
                        u64::from_be_bytes(row.row[..].try_into().expect("8 bytes")),
                        Expected::Revision(row.revision),
                    ),
                };
                let row = Some((count + 1).to_be_bytes()[..].into());
                // Now and then the row goes in between, and comes back as it was.
                let change = RowChange { key: numbered("ann", 1), expected, row };
                let done = TableStore::commit(store, vec![write(rows, "ann", vec![change])]).await;
                match &done.expect("committed")[0] {
                    TableOutcome::Stored(_) => break,
                    TableOutcome::Stale => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    };
    join_all((0..WRITERS).map(|n| add(if n % 2 == 0 { &one } else { &other }))).await;
    let found = all(&one, rows).await;
    assert_eq!(found[0].1, (WRITERS * EACH).to_be_bytes());
}

/// S19: who follows by cursor misses nothing, whichever server wrote it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_become_visible_in_the_order_of_their_numbers() {
    let (one, other, _) = two().await;
    let rows = table(&one, "rows").await;
    let is_over = AtomicBool::new(false);
    let writers = async {
        let write_some = async |store: &PostgresStore| {
            for n in 0..60_u8 {
                stored(store, write(rows, "ann", vec![append("ann", &[n]), append("ann", &[n])])).await;
            }
        };
        tokio::join!(write_some(&one), write_some(&other), write_some(&one));
        is_over.store(true, Ordering::Release);
    };
    let follow = async |store: &PostgresStore| {
        let (mut cursor, mut got) = (0, 0);
        loop {
            let is_last = is_over.load(Ordering::Acquire);
            let (start, end) =
                (numbered("ann", cursor + 1).with(0).to_vec(), numbered("ann", i64::MAX).with(0).to_vec());
            let partition_key = Some(first("ann").0);
            let direction = Direction::Forward;
            let scan =
                TableScan { table: rows, partition_key, start, end, direction, rows: 50, bytes: 1 << 20 };
            let (page, more) = store.scan(&scan).await.expect("read");
            for row in &page {
                cursor += 1;
                assert_eq!(row.key, numbered("ann", cursor).with(0).to_vec(), "none is left out");
            }
            got += page.len();
            if is_last && !more {
                return got;
            }
            tokio::task::yield_now().await;
        }
    };
    let ((), one_got, other_got) = tokio::join!(writers, follow(&one), follow(&other));
    assert_eq!((one_got, other_got), (360, 360));
}

#[tokio::test]
async fn the_line_of_a_deleted_table_goes_when_no_commit_can_bring_a_row_any_more() {
    let url = durable_database().await;
    let store = open(&url).await;
    let mut beside = connection(&url).await;
    let gone = table(&store, "gone").await;
    stored(&store, write(gone, "ann", vec![append("ann", b"1"), append("ann", b"2")])).await;
    assert!(store.delete_table(gone).await.expect("deleted"));
    assert_eq!(store.forget_deleted(10).await.expect("asked"), 3);
    let count = "SELECT count(*) FROM tables";
    let lines: i64 = sqlx::query_scalar(count).fetch_one(&mut beside).await.expect("counted");
    assert_eq!(lines, 1, "a commit that has begun before may bring a row");
    run(&mut beside, "UPDATE tables SET deleted = deleted - 601000").await;
    let late = format!("INSERT INTO table_rows VALUES ('abcd', {}, 'k', '', '', 1, '')", gone.0);
    run(&mut beside, &late).await;
    assert_eq!(store.forget_deleted(10).await.expect("asked"), 1);
    let lines: i64 = sqlx::query_scalar(count).fetch_one(&mut beside).await.expect("counted");
    assert_eq!(lines, 0);
}

#[tokio::test]
async fn a_counter_at_its_end_refuses_and_silences_nobody() {
    let url = durable_database().await;
    let store = open(&url).await;
    let rows = table(&store, "rows").await;
    stored(&store, write(rows, "ann", vec![append("ann", b"1")])).await;
    run(&mut connection(&url).await, "UPDATE table_counters SET last_id = 9007199254740990").await;
    let two = write(rows, "ann", vec![append("ann", b"2"), append("ann", b"3")]);
    let bob = write(rows, "bob", vec![append("bob", b"4")]);
    let done = TableStore::commit(&store, vec![two, bob]).await.expect("committed");
    assert!(matches!(&done[..], [TableOutcome::Rejected(_), TableOutcome::Stored(_)]), "{done:?}");
    assert_eq!(stored(&store, write(rows, "ann", vec![append("ann", b"5")])).await, [9_007_199_254_740_991]);
}

/// A server is cut off after its call has begun; the answer comes only when the call has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_lost_answer_it_is_known_what_is_there() {
    let url = durable_database().await;
    let (store, other) = (open(&url).await, open(&url).await);
    let rows = table(&store, "rows").await;
    stored(&store, write(rows, "ann", vec![append("ann", b"1")])).await;
    let mut beside = connection(&url).await;
    // The call waits for this lock, in the middle.
    run(&mut beside, "BEGIN; SELECT FROM table_counters FOR UPDATE").await;
    let call = TableStore::commit(&store, vec![write(rows, "ann", vec![append("ann", b"2")])]);
    let cut = async {
        let mut third = connection(&url).await;
        let waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        let mut found: Option<i32> = None;
        tidemark_test_support::until::until("the call waits", async || {
            found = sqlx::query_scalar(waiting).fetch_optional(&mut third).await.expect("asked");
            found.is_some()
        })
        .await;
        let cut = format!("SELECT pg_terminate_backend({})", found.expect("one"));
        run(&mut third, &cut).await;
    };
    let (done, ()) = tokio::join!(call, cut);
    assert!(matches!(done, Err(CommitError::Unknown(_))), "{done:?}");
    run(&mut beside, "ROLLBACK").await;
    let there = all(&other, rows).await.len() as i64;
    assert_eq!(stored(&other, write(rows, "ann", vec![append("ann", b"3")])).await, [there + 1]);
}

#[tokio::test]
async fn in_another_life_no_number_comes_that_a_lost_row_may_have_had() {
    let url = durable_database().await;
    let store = open(&url).await;
    let rows = table(&store, "rows").await;
    stored(&store, write(rows, "ann", vec![append("ann", b"1"), append("ann", b"2")])).await;
    store.close().await;
    // Once by hand, once because the database was restored from a backup.
    let db = PgDb::open(&url, &PgOptions::default()).await.expect("opened");
    db.begin_another_life(HistoryId(Uuid::from_u128(7))).await.expect("begun");
    db.close().await;
    run(&mut connection(&url).await, "UPDATE meta SET value = 'elsewhere/1' WHERE key = 'written_by'").await;
    let db = PgDb::open(&url, &PgOptions::default()).await.expect("opened");
    let store = PostgresStore::open(db, HistoryId(Uuid::from_u128(8)), true).await.expect("opened");
    assert_eq!(stored(&store, write(rows, "ann", vec![append("ann", b"3")])).await, [20_000_003]);
    assert_eq!(stored(&store, write(rows, "bob", vec![append("bob", b"4")])).await, [20_000_001]);
    let other = table(&store, "other").await;
    assert_eq!(stored(&store, write(other, "ann", vec![append("ann", b"5")])).await, [20_000_001]);
}
