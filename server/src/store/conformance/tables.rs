//! The contract of [`TableStore`], run on an empty one by every implementation. Each case has a table of its own.

use sha2::{Digest as _, Sha256};

use crate::domain::{Direction, PartitionKey, Timestamp};
use crate::store::TableStore;
use crate::store::tables::{
    Expected, INTEGER_TAG, RowChange, RowKey, StoredRow, TableId, TableMade, TableOutcome, TableScan,
    TableWrite,
};

mod compared;

const NOW: Timestamp = Timestamp(1_795_000_000_000);

/// Runs all of it. `compares`: whether the store looks at what changes were decided on.
pub async fn run(store: &dyn TableStore, compares: bool) {
    a_table_has_a_name_of_its_own_within_its_instance(store).await;
    a_definition_is_replaced_by_who_knows_the_last_one(store).await;
    numbers_grow_from_one_under_each_first_column(store).await;
    many_counters_of_a_call_keep_to_their_own_rows(store).await;
    deleted_rows_give_no_number_again(store).await;
    a_row_takes_the_place_of_one_that_was_put_under_its_number(store).await;
    a_write_is_done_whole_and_the_last_change_of_a_row_counts(store).await;
    a_range_runs_both_ways_and_ends_at_its_limits(store).await;
    long_keys_and_rows_are_kept(store).await;
    a_deleted_table_is_gone_at_once(store).await;
    if compares {
        compared::run(store).await;
    }
}

/// A new table.
pub async fn table(store: &dyn TableStore, name: &str) -> TableId {
    match store.create_table("suite", name, "{}", NOW, 100).await.expect("asked") {
        TableMade::Made(table) => table.id,
        other => panic!("{name}: {other:?}"),
    }
}

/// The partition and the encoded value of a first key column that is a text.
pub fn first(value: &str) -> (PartitionKey, Vec<u8>) {
    (PartitionKey::of_bytes(value.as_bytes()), [b"\x20", value.as_bytes(), b"\0\x01"].concat())
}

/// The key of a row under `value` with this number.
pub fn numbered(value: &str, number: i64) -> RowKey {
    RowKey::Whole(RowKey::assigned(&first(value).1, &[]).with(number))
}

/// Puts a row under the next number.
pub fn append(value: &str, row: &[u8]) -> RowChange {
    let key = RowKey::assigned(&first(value).1, &[]);
    RowChange { key, expected: Expected::Anything, row: Some(row.into()) }
}

/// Puts a row, whatever is there.
pub fn put(key: RowKey, row: &[u8]) -> RowChange {
    RowChange { key, expected: Expected::Anything, row: Some(row.into()) }
}

/// Deletes a row, whether it is there or not.
pub fn delete(key: RowKey) -> RowChange {
    RowChange { key, expected: Expected::Anything, row: None }
}

/// The write of these changes under `value`.
pub fn write(table: TableId, value: &str, changes: Vec<RowChange>) -> TableWrite {
    let (partition_key, first) = first(value);
    TableWrite { table, partition_key, first: first.into(), changes }
}

/// Commits one write.
pub async fn one(store: &dyn TableStore, write: TableWrite) -> TableOutcome {
    let mut done = store.commit(vec![write]).await.expect("committed");
    assert_eq!(done.len(), 1);
    done.remove(0)
}

/// Commits one write that must be stored, and tells the numbers that it got.
pub async fn stored(store: &dyn TableStore, write: TableWrite) -> Vec<i64> {
    match one(store, write).await {
        TableOutcome::Stored(numbers) => numbers.into_iter().flatten().collect(),
        other => panic!("expected to be stored: {other:?}"),
    }
}

/// All rows of a table, in the order of their keys, read a few at a time, which must be the same backward and one by one.
pub async fn all(store: &dyn TableStore, table: TableId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let read = async |direction, rows| {
        let (low, high) = (Vec::new(), vec![0xff; 3]);
        let (mut start, end) = match direction {
            Direction::Forward => (low, high),
            Direction::Backward => (high, low),
        };
        let mut all: Vec<StoredRow> = Vec::new();
        loop {
            let scan = TableScan {
                table,
                partition_key: None,
                start,
                end: end.clone(),
                direction,
                rows,
                bytes: usize::MAX,
            };
            let (page, more) = store.scan(&scan).await.expect("read");
            assert!(page.len() <= rows && (page.len() == rows || !more), "{} of {rows}, {more}", page.len());
            let last = page.last().map(|row| row.key.clone());
            let after = all.last().map(|row| row.key.clone());
            assert!(all.is_empty() || page.first().map(|row| &row.key) == after.as_ref(), "it begins there");
            all.extend(page.into_iter().skip(usize::from(!all.is_empty())));
            match last {
                Some(last) if more => start = last,
                _ => return all,
            }
        }
    };
    let forward = read(Direction::Forward, 1_000).await;
    let mut backward = read(Direction::Backward, 3).await;
    backward.reverse();
    assert_eq!(forward, backward);
    let keys: Vec<_> =
        forward.iter().map(|row| (table, PartitionKey::of_bytes(b"any"), row.key.clone())).collect();
    // The partition is that of the first column, which only whoever encodes the key can tell.
    let keys: Vec<_> = keys.into_iter().map(|(table, _, key)| (table, partition_of(&key), key)).collect();
    let by_key = store.rows(&keys).await.expect("read");
    assert_eq!(by_key, forward.iter().cloned().map(Some).collect::<Vec<_>>());
    forward.into_iter().map(|row| (row.key, row.row)).collect()
}

/// The partition of a key that begins with a text, as [`first`] makes it.
fn partition_of(key: &[u8]) -> PartitionKey {
    let end = key.iter().position(|byte| *byte == 0).expect("the end of the first column");
    PartitionKey::of_bytes(&key[1..end])
}

/// The stored row, if it is there.
async fn row(store: &dyn TableStore, table: TableId, value: &str, number: i64) -> Option<StoredRow> {
    let key = numbered(value, number).with(0).to_vec();
    store.rows(&[(table, first(value).0, key)]).await.expect("read").pop().flatten()
}

async fn a_table_has_a_name_of_its_own_within_its_instance(store: &dyn TableStore) {
    let make = async |instance: &str, name: &str, most| {
        store.create_table(instance, name, "{\"a\":1}", NOW, most).await.expect("asked")
    };
    let TableMade::Made(made) = make("names", "b", 2).await else { panic!("it is made") };
    assert_eq!((&*made.instance, &*made.name, &*made.definition), ("names", "b", "{\"a\":1}"));
    assert_eq!(made.created_at, NOW);
    assert_eq!(make("names", "b", 2).await, TableMade::Exists(made.clone()));
    let TableMade::Made(other) = make("others", "b", 2).await else { panic!("it is made") };
    let TableMade::Made(upper) = make("names", "B", 2).await else { panic!("it is made") };
    assert_eq!(make("names", "c", 2).await, TableMade::TooMany);
    assert_eq!(make("names", "b", 2).await, TableMade::Exists(made.clone()), "which is said first");
    assert_eq!(store.table("names", "b").await.expect("asked"), Some(made.clone()));
    assert_eq!(store.table("names", "a").await.expect("asked"), None);
    assert_eq!(store.tables("names").await.expect("asked"), [upper.clone(), made.clone()]);
    let mut numbers = [made.id, other.id, upper.id];
    numbers.sort_unstable();
    let after = |id: TableId| TableId(id.0 - 1);
    let found = store.tables_after(after(numbers[0]), 2).await.expect("asked");
    assert_eq!(found.iter().map(|table| table.id).collect::<Vec<_>>(), numbers[..2]);
    let found = store.tables_after(numbers[1], 9).await.expect("asked");
    assert_eq!(found.iter().map(|table| table.id).collect::<Vec<_>>(), numbers[2..]);
    assert!(store.delete_table(made.id).await.expect("asked"));
    assert!(!store.delete_table(made.id).await.expect("asked"));
    let TableMade::Made(again) = make("names", "b", 2).await else { panic!("the name is free") };
    assert!(again.id > numbers[2], "{:?} after {numbers:?}", again.id);
}

async fn a_definition_is_replaced_by_who_knows_the_last_one(store: &dyn TableStore) {
    let table = table(store, "definition").await;
    let redefine = async |from, to| store.redefine_table(table, from, to).await.expect("asked");
    assert!(redefine("{}", "{\"b\":2}").await);
    assert!(!redefine("{}", "{\"c\":3}").await);
    assert!(!store.redefine_table(TableId(1 << 40), "{}", "{}").await.expect("asked"));
    let found = store.table("suite", "definition").await.expect("asked").expect("there");
    assert_eq!((found.id, &*found.definition), (table, "{\"b\":2}"));
}

async fn numbers_grow_from_one_under_each_first_column(store: &dyn TableStore) {
    let (table, other) = (table(store, "numbers").await, self::table(store, "other numbers").await);
    let ann = write(table, "ann", vec![append("ann", b"1"), append("ann", b"2")]);
    let bob = write(table, "bob", vec![append("bob", b"3")]);
    let done = store.commit(vec![ann, bob]).await.expect("committed");
    let numbers = |numbers: &[i64]| TableOutcome::Stored(numbers.iter().copied().map(Some).collect());
    assert_eq!(done, [numbers(&[1, 2]), numbers(&[1])]);
    let mixed = vec![put(numbered("ann", 1), b"new"), append("ann", b"4")];
    assert_eq!(one(store, write(table, "ann", mixed)).await, TableOutcome::Stored(vec![None, Some(3)]));
    assert_eq!(stored(store, write(other, "ann", vec![append("ann", b"5")])).await, [1]);
    let two = ["ann", "ann"].map(|value| write(table, value, vec![append(value, b"6")]));
    assert_eq!(store.commit(two.to_vec()).await.expect("committed"), [numbers(&[4]), numbers(&[5])]);
    let expected: Vec<(Vec<u8>, Vec<u8>)> = [
        ("ann", 1, "new"),
        ("ann", 2, "2"),
        ("ann", 3, "4"),
        ("ann", 4, "6"),
        ("ann", 5, "6"),
        ("bob", 1, "3"),
    ]
    .map(|(value, number, row)| (numbered(value, number).with(0).to_vec(), row.into()))
    .to_vec();
    assert_eq!(all(store, table).await, expected);
    // A column behind the assigned one.
    let key = RowKey::assigned(&first("cat").1, b"\x20z\0\x01");
    assert_eq!(stored(store, write(table, "cat", vec![put(key, b"7")])).await, [1]);
    let expected = [&first("cat").1[..], &[INTEGER_TAG, 0x80, 0, 0, 0, 0, 0, 0, 1], b"\x20z\0\x01"].concat();
    assert_eq!(all(store, table).await[6], (expected, b"7".to_vec()));
    assert_eq!(one(store, write(table, "ann", vec![])).await, TableOutcome::Stored(vec![]));
    assert!(store.commit(vec![]).await.expect("committed").is_empty());
}

/// Their names come in no order, neither by themselves nor by their partitions, and each is in both tables.
async fn many_counters_of_a_call_keep_to_their_own_rows(store: &dyn TableStore) {
    let tables = [table(store, "many counters").await, table(store, "many others").await];
    let of = |n: i64| (tables[(n % 2) as usize], format!("name {}", n / 2 * 7_919 % 211));
    let rows = |(table, name): (TableId, String), rows: i64| {
        write(table, &name, (0..rows).map(|_| append(&name, b"x")).collect())
    };
    // How many rows each has before, and how many more it gets.
    let (before, more) = (|n: i64| n % 5, |n: i64| 1 + n % 3);
    for n in (0..211).filter(|n| before(*n) > 0) {
        stored(store, rows(of(n), before(n))).await;
    }
    let done = store.commit((0..211).map(|n| rows(of(n), more(n))).collect()).await.expect("committed");
    for (n, outcome) in (0..211).zip(done) {
        let numbers = (1..=more(n)).map(|next| Some(before(n) + next)).collect();
        assert_eq!(outcome, TableOutcome::Stored(numbers), "{:?}", of(n));
    }
    assert_eq!(stored(store, rows(of(3), 1)).await, [before(3) + more(3) + 1]);
}

async fn deleted_rows_give_no_number_again(store: &dyn TableStore) {
    let table = table(store, "deleted rows").await;
    for number in 1..=5 {
        assert_eq!(stored(store, write(table, "ann", vec![append("ann", b"x")])).await, [number]);
        stored(store, write(table, "ann", vec![delete(numbered("ann", number))])).await;
        assert_eq!(row(store, table, "ann", number).await, None);
    }
    assert!(all(store, table).await.is_empty());
    stored(store, write(table, "ann", vec![delete(numbered("ann", 5)), delete(numbered("ann", 77))])).await;
    assert_eq!(stored(store, write(table, "ann", vec![append("ann", b"y")])).await, [6]);
}

async fn a_row_takes_the_place_of_one_that_was_put_under_its_number(store: &dyn TableStore) {
    let table = table(store, "put by name").await;
    stored(store, write(table, "ann", vec![put(numbered("ann", 2), b"named")])).await;
    let three = [b"1", b"2", b"3"].map(|row| append("ann", row)).to_vec();
    assert_eq!(stored(store, write(table, "ann", three)).await, [1, 2, 3]);
    let expected = [1, 2, 3].map(|n| (numbered("ann", n).with(0).to_vec(), n.to_string().into_bytes()));
    assert_eq!(all(store, table).await, expected);
    assert_eq!(stored(store, write(table, "ann", vec![append("ann", b"4")])).await, [4]);
}

async fn a_write_is_done_whole_and_the_last_change_of_a_row_counts(store: &dyn TableStore) {
    let table = table(store, "whole").await;
    let (one_key, two) = (|| numbered("ann", 1), || numbered("ann", 2));
    let changes =
        vec![put(one_key(), b"a"), delete(one_key()), put(two(), b"b"), put(one_key(), b"c"), delete(two())];
    stored(store, write(table, "ann", changes)).await;
    assert_eq!(all(store, table).await, [(one_key().with(0).to_vec(), b"c".to_vec())]);
    let later = [put(one_key(), b"d"), delete(one_key()), put(one_key(), b"")];
    let later = later.map(|change| write(table, "ann", vec![change])).to_vec();
    assert_eq!(store.commit(later).await.expect("committed").len(), 3);
    assert_eq!(
        all(store, table).await,
        [(one_key().with(0).to_vec(), Vec::new())],
        "a row without a column is one"
    );
    // A key that is named may be one that the same write gets.
    for (value, change, left) in [
        ("bob", delete(numbered("bob", 1)), None),
        ("cat", put(numbered("cat", 1), b"named"), Some(&b"named"[..])),
    ] {
        assert_eq!(stored(store, write(table, value, vec![append(value, b"x"), change.clone()])).await, [1]);
        let found = row(store, table, value, 1).await.map(|row| row.row);
        assert_eq!(found.as_deref(), left);
        let change = RowChange { key: numbered(value, 2), ..change };
        assert_eq!(stored(store, write(table, value, vec![change, append(value, b"y")])).await, [2]);
        assert_eq!(row(store, table, value, 2).await.map(|row| row.row), Some(b"y".to_vec()));
    }
}

async fn a_range_runs_both_ways_and_ends_at_its_limits(store: &dyn TableStore) {
    let table = table(store, "ranges").await;
    for value in ["ann", "bob"] {
        let rows = (0..10).map(|n| append(value, &[n; 100])).collect();
        stored(store, write(table, value, rows)).await;
    }
    stored(store, write(table, "ann", vec![delete(numbered("ann", 4)), put(numbered("ann", 5), b"short")]))
        .await;
    let key = |value: &str, number| numbered(value, number).with(0).to_vec();
    let partition = Some(first("ann").0);
    let read = async |partition_key, (start, end): (Vec<u8>, Vec<u8>), (rows, bytes)| {
        let direction = if start <= end { Direction::Forward } else { Direction::Backward };
        let scan = TableScan { table, partition_key, start, end, direction, rows, bytes };
        let (rows, more) = store.scan(&scan).await.expect("read");
        (rows.into_iter().map(|row| row.key).collect::<Vec<_>>(), more)
    };
    let keys = |of: &[(&str, i64)]| of.iter().map(|(value, n)| key(value, *n)).collect::<Vec<_>>();
    let many = (100, 1 << 20);
    let range = |from, to| (key("ann", from), key("ann", to));
    assert_eq!(
        read(partition, range(2, 6), many).await,
        (keys(&[("ann", 2), ("ann", 3), ("ann", 5)]), false)
    );
    assert_eq!(read(partition, range(6, 3), many).await, (keys(&[("ann", 6), ("ann", 5)]), false));
    assert_eq!(read(partition, range(4, 5), many).await, (vec![], false));
    assert_eq!(read(partition, range(5, 5), many).await, (vec![], false));
    assert_eq!(read(partition, range(2, 9), (2, 1 << 20)).await, (keys(&[("ann", 2), ("ann", 3)]), true));
    assert_eq!(read(partition, range(2, 5), (2, 1 << 20)).await, (keys(&[("ann", 2), ("ann", 3)]), false));
    assert_eq!(read(partition, range(9, 2), (1, 1 << 20)).await, (keys(&[("ann", 9)]), true));
    // Bytes count keys and rows: 115 for a row of a hundred, 20 for the short one.
    let weight = key("ann", 1).len() + 100;
    assert_eq!(read(partition, range(1, 9), (9, 0)).await, (keys(&[("ann", 1)]), true), "one always goes");
    assert_eq!(read(partition, range(1, 9), (9, 2 * weight)).await, (keys(&[("ann", 1), ("ann", 2)]), true));
    assert_eq!(read(partition, range(1, 9), (9, 2 * weight - 1)).await, (keys(&[("ann", 1)]), true));
    assert_eq!(read(partition, range(1, 3), (9, 2 * weight)).await, (keys(&[("ann", 1), ("ann", 2)]), false));
    let backward = read(partition, range(6, 0), (9, weight + weight - 95)).await;
    assert_eq!(backward, (keys(&[("ann", 6), ("ann", 5)]), true));
    // Over partitions.
    let across = (key("ann", 10), key("bob", 2));
    assert_eq!(read(None, across, many).await, (keys(&[("ann", 10), ("bob", 1)]), false));
    let across = (key("bob", 1), key("ann", 8));
    assert_eq!(read(None, across, (2, 1 << 20)).await, (keys(&[("bob", 1), ("ann", 10)]), true));
    let all = (vec![], vec![0xff]);
    assert_eq!(read(None, all, many).await.0.len(), 19);
}

async fn long_keys_and_rows_are_kept(store: &dyn TableStore) {
    let table = table(store, "long").await;
    // As little alike as random bytes: three columns of 1,024 bytes. Some differ in their last byte alone.
    let noise = |seed: u32, length: usize| -> Vec<u8> {
        let block = |n: u32| Sha256::digest([seed.to_be_bytes(), n.to_be_bytes()].concat());
        (0..length.div_ceil(32)).flat_map(|n| block(n as u32)).take(length).collect()
    };
    let (partition_key, begin) = first("ann");
    let (alike, mut rows) = (noise(1, 3_072), Vec::new());
    for end in [0x01_u8, 0x7f, 0xfe] {
        rows.push([&begin[..], &alike, &[end]].concat());
    }
    rows.push([&begin[..], &alike[..2_000]].concat());
    rows.push([&begin[..], &alike[..1_999]].concat());
    rows.push([&begin[..], &noise(2, 3_072)].concat());
    rows.push([&begin[..], &[0xff; 4_000]].concat());
    let large = noise(3, 2 << 20);
    for key in &rows {
        let changes = vec![put(RowKey::Whole(key[..].into()), &large)];
        stored(store, TableWrite { table, partition_key, first: begin[..].into(), changes }).await;
    }
    rows.sort();
    let mut found = Vec::new();
    let (mut start, end) = (vec![], vec![0xff; 9]);
    loop {
        let (direction, partition_key) = (Direction::Forward, None);
        let (end, bytes) = (end.clone(), 5 << 20);
        let scan = TableScan { table, partition_key, start: start.clone(), end, direction, rows: 100, bytes };
        let (page, more) = store.scan(&scan).await.expect("read");
        assert!(page.len() <= 2, "{} rows of 2 MiB in 5 MiB", page.len());
        for row in page {
            assert!(row.row == large);
            start = [&row.key[..], &[0]].concat();
            found.push(row.key);
        }
        if !more {
            break;
        }
    }
    assert!(found == rows, "each once, in the order of the keys");
    let backward = TableScan {
        table,
        partition_key: Some(partition_key),
        start: rows[4].clone(),
        end: rows[1].clone(),
        direction: Direction::Backward,
        rows: 9,
        bytes: 100 << 20,
    };
    let (page, more) = store.scan(&backward).await.expect("read");
    let keys: Vec<_> = page.into_iter().map(|row| row.key).collect();
    assert!(keys == [rows[4].clone(), rows[3].clone(), rows[2].clone()] && !more);
    let wanted: Vec<_> = rows.iter().map(|key| (table, partition_key, key.clone())).collect();
    assert!(store.rows(&wanted).await.expect("read").iter().all(Option::is_some));
    let changes = rows.iter().map(|key| delete(RowKey::Whole(key[..].into()))).collect();
    stored(store, TableWrite { table, partition_key, first: begin.into(), changes }).await;
    assert!(store.rows(&wanted).await.expect("read").iter().all(Option::is_none));
}

async fn a_deleted_table_is_gone_at_once(store: &dyn TableStore) {
    let (gone, stays) = (table(store, "gone").await, table(store, "stays").await);
    for table in [gone, stays] {
        let rows = (0..7).map(|n| append("ann", &[n])).collect();
        stored(store, write(table, "ann", rows)).await;
    }
    assert!(store.delete_table(gone).await.expect("deleted"));
    assert_eq!(store.table("suite", "gone").await.expect("asked"), None);
    assert_eq!(row(store, gone, "ann", 1).await, None);
    assert!(all(store, gone).await.is_empty());
    let both =
        vec![write(gone, "ann", vec![append("ann", b"x")]), write(stays, "ann", vec![append("ann", b"x")])];
    let done = store.commit(both).await.expect("committed");
    assert_eq!(done, [TableOutcome::NoTable, TableOutcome::Stored(vec![Some(8)])]);
    let again = table(store, "gone").await;
    assert_eq!(stored(store, write(again, "ann", vec![append("ann", b"x")])).await, [1]);
    let mut forgotten = 0;
    loop {
        match store.forget_deleted(3).await.expect("asked") {
            0 => break,
            some => {
                assert!(some <= 3, "{some}");
                forgotten += some;
            }
        }
    }
    // Where rows lie in memory alone so far, there is less to remove.
    assert!(forgotten <= 100, "{forgotten}");
    assert_eq!(all(store, stays).await.len(), 8);
    assert_eq!(all(store, again).await.len(), 1);
}
