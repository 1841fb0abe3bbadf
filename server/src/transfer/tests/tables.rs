//! Tables of other programs: moved between the databases, and an interrupted export that goes on or is refused.

use super::*;
use crate::store::conformance::tables::{all, append, delete, first, numbered, put, stored, table, write};
use crate::store::tables::{RowKey, TableId, TableMade, TableStore, TableWrite};
use crate::transfer::TransferError;

/// A store that is open, as what it is used for here.
struct Open {
    tables: Arc<dyn TableStore>,
    messages: Arc<dyn MessageStore>,
}

async fn open(place: &Place) -> Open {
    let history = HistoryId(Uuid::from_u128(1));
    match &place.url {
        None => {
            let store = SqliteStore::open(place.sqlite().await, place.options.clone(), history).await;
            let store = Arc::new(store.expect("opened"));
            Open { tables: store.clone(), messages: store }
        }
        Some(url) => {
            let db = PgDb::open(url, &PgOptions::default()).await.expect("opened");
            let store = Arc::new(PostgresStore::open(db, history, false).await.expect("opened"));
            Open { tables: store.clone(), messages: store }
        }
    }
}

/// Two tables with rows that came and went, before and after a flush, some of `large` bytes, and one that is deleted. The store stays open.
async fn some_tables(place: &Place, large: usize) -> (Open, [TableId; 2]) {
    let store = open(place).await;
    let tables = &*store.tables;
    let ids = [table(tables, "one").await, table(tables, "two").await];
    let gone = table(tables, "gone").await;
    for id in ids.into_iter().chain([gone]) {
        for value in ["ann", "bob", "cat"] {
            let rows = (0..20_u8).map(|n| append(value, &[n; 50])).collect();
            stored(tables, write(id, value, rows)).await;
        }
    }
    let changes = vec![delete(numbered("ann", 1)), put(numbered("ann", 2), b"changed at once")];
    stored(tables, write(ids[0], "ann", changes)).await;
    store.messages.close().await;
    let store = open(place).await;
    let tables = &*store.tables;
    let changes = vec![
        delete(numbered("ann", 3)),
        put(numbered("ann", 4), b"changed later"),
        append("ann", b""),
        delete(numbered("ann", 1)),
        put(numbered("ann", 1), b"back again"),
    ];
    stored(tables, write(ids[0], "ann", changes)).await;
    // All of a value, and more than a page of the export.
    stored(tables, write(ids[0], "bob", (1..=20).map(|n| delete(numbered("bob", n))).collect())).await;
    for _ in 0..3 {
        stored(tables, write(ids[1], "dan", (0..500).map(|_| append("dan", b"many")).collect())).await;
    }
    let (partition_key, first) = first("long");
    for end in [1, 2, 3_u8] {
        let key = RowKey::Whole([&first[..], &[7; 3_000], &[end]].concat().into());
        let changes = vec![put(key, &vec![end; large])];
        stored(tables, TableWrite { table: ids[1], partition_key, first: first[..].into(), changes }).await;
    }
    assert!(tables.delete_table(gone).await.expect("deleted"));
    (store, ids)
}

async fn move_tables(from: Kind, to: Kind) {
    let (source, target) = (Place::new(from).await, Place::new(to).await);
    let (store, ids) = some_tables(&source, 3 << 20).await;
    let file = |name: &str| source.files.path().join(name);
    let exported = source.export(&file("first")).await;
    target.import(&file("first")).await;
    assert!(target.export(&file("second")).await == exported, "exported again, the lines are the same");
    let moved = open(&target).await;
    for id in ids {
        // Keys of several thousand bytes are compared as they are; the partition is that of the value.
        assert!(all(&*moved.tables, id).await == all(&*store.tables, id).await);
        for value in ["ann", "bob", "new"] {
            let next = |of: &Open| {
                let tables = Arc::clone(&of.tables);
                async move { stored(&*tables, write(id, value, vec![append(value, b"next")])).await }
            };
            assert_eq!(next(&moved).await, next(&store).await, "{value}");
        }
    }
    let mut kept = store.tables.tables("suite").await.expect("read");
    let mut found = moved.tables.tables("suite").await.expect("read");
    kept.sort_by_key(|table| table.id);
    found.sort_by_key(|table| table.id);
    assert_eq!(found, kept);
    let made = moved.tables.create_table("suite", "new", "{}", Timestamp(1), 9).await.expect("asked");
    assert!(matches!(made, TableMade::Made(made) if made.id > ids[1]));
    store.messages.close().await;
    moved.messages.close().await;
}

#[tokio::test]
async fn tables_move_from_the_journal_to_postgresql() {
    move_tables(Kind::Sqlite, Kind::Postgres).await;
}

#[tokio::test]
async fn tables_move_from_postgresql_to_sqlite() {
    move_tables(Kind::Postgres, Kind::Sqlite).await;
}

#[tokio::test]
async fn tables_move_from_the_tables_to_other_files() {
    move_tables(Kind::Flushed, Kind::Sqlite).await;
}

/// An export that was cut off, and is to go on.
async fn resume(place: &Place, whole: &[u8], length: usize) -> Result<Vec<u8>, TransferError> {
    let file = place.files.path().join("resumed");
    std::fs::write(&file, &whole[..length]).expect("written");
    let mut snapshot = place.snapshot().await;
    let bar = ProgressBar::hidden();
    export(&mut *snapshot, &file, Begin::Resume, Some(&FilePlace::in_memory()), Timestamp(7), &bar).await?;
    Ok(std::fs::read(&file).expect("readable"))
}

/// An archive never mixes two moments, whether rows came, changed or went, as many as before or not.
async fn resume_tables(kind: Kind) {
    let place = Place::new(kind).await;
    let (store, ids) = some_tables(&place, 5_000).await;
    let file = place.files.path().join("whole");
    place.export(&file).await;
    let whole = std::fs::read(&file).expect("readable");
    let row = |after: usize| {
        let at =
            whole[after..].windows(18).position(|part| part == b"\"type\":\"table_row\"").expect("a row");
        after + at
    };
    for length in [row(0) + 40, row(row(0) + 40) + 3, whole.len() / 2, whole.len() - 30] {
        assert!(resume(&place, &whole, length).await.expect("it goes on") == whole, "cut at {length}");
    }
    let length = row(row(0) + 40) + 3;
    let changes = [
        // The row from which it would go on, and one that comes in its place.
        vec![delete(numbered("ann", 1)), put(numbered("ann", 3), b"in its place")],
        vec![put(numbered("ann", 4), b"changed in its place")],
        vec![delete(numbered("ann", 4))],
        vec![
            delete(numbered("ann", 5)),
            delete(numbered("ann", 6)),
            append("ann", b"1"),
            append("ann", b"2"),
        ],
    ];
    for change in changes {
        stored(&*store.tables, write(ids[0], "ann", change)).await;
        is_written_anew(&place, &whole, length).await;
    }
    assert!(store.tables.redefine_table(ids[1], "{}", "{\"a\":1}").await.expect("asked"));
    is_written_anew(&place, &whole, length).await;
    assert!(store.tables.delete_table(ids[0]).await.expect("deleted"));
    is_written_anew(&place, &whole, length).await;
    // Also cut off in a row of the other one, and with no table left.
    is_written_anew(&place, &whole, whole.len() - 30).await;
    while store.tables.forget_deleted(1_000).await.expect("asked") > 0 {}
    is_written_anew(&place, &whole, length).await;
    assert!(store.tables.delete_table(ids[1]).await.expect("deleted"));
    is_written_anew(&place, &whole, length).await;
    store.messages.close().await;
}

/// An outdated export that is finished now equals an export from now, and passes the check; cut off again, it goes on.
async fn is_written_anew(place: &Place, outdated: &[u8], length: usize) {
    let resumed = resume(place, outdated, length).await.expect("written anew");
    let now = place.files.path().join("now");
    place.export(&now).await;
    assert!(std::fs::read(&now).expect("readable") == resumed);
    assert!(check(&now, 100_000, &ProgressBar::hidden()).is_ok());
    assert!(resume(place, &resumed, resumed.len() - 30).await.expect("it goes on") == resumed);
    let refused = resume(place, outdated, outdated.len()).await.expect_err("it is complete");
    assert!(matches!(refused, TransferError::CannotResume { .. }), "{refused}");
    std::fs::remove_file(now).expect("removed");
}

#[tokio::test]
async fn an_export_that_was_interrupted_shows_one_moment_on_sqlite() {
    resume_tables(Kind::Sqlite).await;
}

#[tokio::test]
async fn an_export_that_was_interrupted_shows_one_moment_on_postgresql() {
    resume_tables(Kind::Postgres).await;
}
