//! Several processes on one database need this: a change is stored only if its row is still in the state that the change was decided on.

use super::{all, append, numbered, one, row, table, write};
use crate::store::TableStore;
use crate::store::tables::{Expected, RowChange, TableId, TableOutcome};

/// Runs all of it.
pub(super) async fn run(store: &dyn TableStore) {
    what_was_decided_on_is_compared(store).await;
    writes_of_one_call_see_each_other(store).await;
}

/// The revision of a row.
async fn revision(store: &dyn TableStore, table: TableId, number: i64) -> u64 {
    row(store, table, "ann", number).await.expect("there").revision
}

async fn what_was_decided_on_is_compared(store: &dyn TableStore) {
    let table = table(store, "compared").await;
    let change = |number, expected, row: Option<&[u8]>| RowChange {
        key: numbered("ann", number),
        expected,
        row: row.map(Into::into),
    };
    let commit = async |changes| one(store, write(table, "ann", changes)).await;
    let nothing = TableOutcome::Stored(vec![None]);
    assert_eq!(
        commit(vec![change(1, Expected::Revision(1), Some(b"a"))]).await,
        TableOutcome::Stale,
        "not there"
    );
    assert_eq!(commit(vec![change(1, Expected::Absent, Some(b"a"))]).await, nothing);
    assert_eq!(commit(vec![change(1, Expected::Absent, Some(b"b"))]).await, TableOutcome::Stale, "there");
    let before = revision(store, table, 1).await;
    assert_eq!(commit(vec![change(1, Expected::Revision(before), Some(b"b"))]).await, nothing);
    assert_eq!(commit(vec![change(1, Expected::Revision(before), Some(b"c"))]).await, TableOutcome::Stale);
    let now = revision(store, table, 1).await;
    // All or nothing, numbers as well.
    let some = vec![append("ann", b"x"), change(1, Expected::Revision(before), Some(b"c"))];
    assert_eq!(commit(some).await, TableOutcome::Stale);
    assert_eq!(all(store, table).await, [(numbered("ann", 1).with(0).to_vec(), b"b".to_vec())]);
    // A state that looks the same after a deletion is another one.
    assert_eq!(commit(vec![change(1, Expected::Revision(now), None)]).await, nothing);
    assert_eq!(commit(vec![change(1, Expected::Revision(now), None)]).await, TableOutcome::Stale, "deleted");
    assert_eq!(commit(vec![change(1, Expected::Absent, Some(b"b"))]).await, nothing);
    assert_eq!(
        commit(vec![change(1, Expected::Revision(now), None)]).await,
        TableOutcome::Stale,
        "made again"
    );
    assert_eq!(commit(vec![change(9, Expected::Absent, None)]).await, nothing, "nothing is deleted");
    assert_eq!(all(store, table).await.len(), 1);
    // Of several writes the others stand.
    let (stale, good) = (change(1, Expected::Absent, Some(b"c")), append("ann", b"y"));
    let both = vec![write(table, "ann", vec![stale]), write(table, "ann", vec![good])];
    let done = store.commit(both).await.expect("committed");
    assert!(
        matches!(&done[..], [TableOutcome::Stale, TableOutcome::Stored(numbers)] if numbers[0].is_some()),
        "{done:?}"
    );
}

async fn writes_of_one_call_see_each_other(store: &dyn TableStore) {
    let table = table(store, "one call").await;
    let change = |number, expected, row: &[u8]| {
        let key = numbered("ann", number);
        write(table, "ann", vec![RowChange { key, expected, row: Some(row.into()) }])
    };
    let first = vec![
        change(1, Expected::Absent, b"a"),
        change(1, Expected::Absent, b"b"),
        change(2, Expected::Absent, b"c"),
    ];
    let done = store.commit(first).await.expect("committed");
    assert!(done.iter().all(|done| matches!(done, TableOutcome::Stored(_))), "{done:?}");
    let second = vec![
        change(1, Expected::Absent, b"d"),
        change(1, Expected::Anything, b"e"),
        change(2, Expected::Anything, b"f"),
    ];
    let done = store.commit(second).await.expect("committed");
    let nothing = TableOutcome::Stored(vec![None]);
    assert_eq!(done, [TableOutcome::Stale, TableOutcome::Stale, nothing], "the second rests on the first");
    let rows: Vec<_> = all(store, table).await.into_iter().map(|(_, row)| row).collect();
    assert_eq!(rows, [b"b".to_vec(), b"f".to_vec()]);
}
