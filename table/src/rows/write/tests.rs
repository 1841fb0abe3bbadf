//! The effect of each write on a row.

use super::decide::sweep;
use super::*;
use crate::rows::capacity::Consumed;
use crate::rows::stored::Columns;
use crate::wire::filter::Comparison;
use crate::{Cell, ErrorCode, KeyType, KeyValue, TableOptions};

const NOW: i64 = 1_700_000_000_000;

fn table(auto_increment: bool) -> TableDefinition {
    let key = [("g", KeyType::String), ("id", KeyType::Integer)];
    let options = TableOptions { max_versions: 2, ..TableOptions::default() };
    TableDefinition { options, ..TableDefinition::of_test(&key, auto_increment) }
}

fn key(id: Option<i64>) -> WrittenKey {
    let group = ("g".to_owned(), Some(KeyValue::String("x".to_owned())));
    WrittenKey::new(vec![group, ("id".to_owned(), id.map(KeyValue::Integer))]).expect("a key")
}

fn write(change: WriteChange) -> RowWrite {
    let condition = WriteCondition { existence: Existence::Ignore, column: None };
    RowWrite { key: key(Some(1)), change, condition, returns: Returns::Nothing }
}

fn expecting(existence: Existence, change: WriteChange) -> RowWrite {
    RowWrite { condition: WriteCondition { existence, column: None }, ..write(change) }
}

fn put_column(name: &str, value: i64, timestamp: Option<i64>) -> PutColumn {
    PutColumn { name: name.to_owned(), value: Value::Integer(value), timestamp }
}

fn put(columns: &[(&str, i64)]) -> WriteChange {
    WriteChange::Put(columns.iter().map(|(name, value)| put_column(name, *value, None)).collect())
}

fn set(name: &str, value: i64) -> ColumnChange {
    ColumnChange::Put(put_column(name, value, None))
}

fn add(name: &str, by: i64) -> ColumnChange {
    ColumnChange::Increment { name: name.to_owned(), by }
}

fn row(cells: &[(&str, i64, i64)]) -> Option<Columns> {
    let cell = |(name, timestamp, value): &(&str, i64, i64)| Cell {
        name: (*name).to_owned(),
        value: Value::Integer(*value),
        timestamp: *timestamp,
    };
    Some(Columns { written_at: NOW - 1_000, cells: cells.iter().map(cell).collect() })
}

fn stored(decided: Result<Decided, WriteRefusal>) -> Vec<(String, i64, Value)> {
    match decided.expect("done").effect {
        Effect::Store(columns) => {
            columns.cells.into_iter().map(|cell| (cell.name, cell.timestamp - NOW, cell.value)).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn left(cells: &[(&str, i64, i64)]) -> Vec<(String, i64, Value)> {
    cells.iter().map(|(name, ago, value)| ((*name).to_owned(), *ago, Value::Integer(*value))).collect()
}

fn text(decided: Result<Decided, WriteRefusal>) -> String {
    decided.expect_err("refused").error.message
}

#[test]
fn a_put_replaces_the_whole_row_and_needs_none() {
    let write = write(put(&[("b", 2), ("a", 1)]));
    assert!(!write.needs_row(&table(false)));
    assert_eq!(stored(decide(&table(false), &write, None, NOW)), left(&[("a", 0, 1), ("b", 0, 2)]));
    let replacing = expecting(Existence::ExpectExist, put(&[]));
    assert_eq!(stored(decide(&table(false), &replacing, row(&[("z", NOW, 1)]), NOW)), left(&[]));
}

#[test]
fn which_writes_need_the_row() {
    let (plain, numbered) = (table(false), table(true));
    let needs = |write: RowWrite| [write.needs_row(&plain), write.needs_row(&numbered)];
    assert_eq!(needs(write(put(&[]))), [false, true]);
    assert_eq!(needs(write(WriteChange::Delete)), [false, false]);
    assert_eq!(needs(write(WriteChange::Update(vec![set("a", 1)]))), [true, true]);
    assert_eq!(needs(expecting(Existence::ExpectExist, WriteChange::Delete)), [true, true]);
    assert_eq!(needs(expecting(Existence::ExpectNotExist, put(&[]))), [true, true]);
    let placeholder = RowWrite { key: key(None), ..write(put(&[])) };
    assert_eq!(needs(placeholder), [false, false]);
}

#[test]
fn existence_is_checked() {
    let decided = |existence, stored| decide(&table(false), &expecting(existence, put(&[])), stored, NOW);
    let there = || row(&[("a", NOW, 1)]);
    assert!(decided(Existence::ExpectExist, there()).is_ok());
    assert!(decided(Existence::ExpectNotExist, None).is_ok());
    for refused in [decided(Existence::ExpectExist, None), decided(Existence::ExpectNotExist, there())] {
        let refused = refused.expect_err("refused");
        assert_eq!(refused.error.code, ErrorCode::ConditionCheckFail);
        assert_eq!(refused.error.message, "Condition check failed.");
        assert_eq!(refused.consumed, Consumed { read: 1, write: 1 });
    }
}

#[test]
fn a_row_past_its_ttl_is_not_there() {
    let mut table = table(false);
    table.options.time_to_live = 86_400;
    let old = row(&[("a", NOW - 86_400_001, 1)]);
    let write = expecting(Existence::ExpectNotExist, put(&[("a", 2)]));
    assert_eq!(stored(decide(&table, &write, old.clone(), NOW)), left(&[("a", 0, 2)]));
    assert_eq!(sweep(&table.options, old.expect("a row"), NOW), Effect::Remove);
}

#[test]
fn a_column_condition_is_checked_on_the_row_that_is_there() {
    let condition = |value, filter_if_missing| WriteCondition {
        existence: Existence::Ignore,
        column: Some(Filter::Single {
            column: "a".to_owned(),
            comparison: Comparison::Equal,
            value: Some(Value::Integer(value)),
            filter_if_missing,
            latest_version_only: true,
        }),
    };
    let decided = |condition, stored| {
        let write = RowWrite { condition, ..write(WriteChange::Delete) };
        assert!(write.needs_row(&table(false)));
        decide(&table(false), &write, stored, NOW)
            .map(|decided| decided.effect)
            .map_err(|refusal| refusal.error.message)
    };
    let failed = Err("Condition check failed.".to_owned());
    assert_eq!(decided(condition(1, true), row(&[("a", NOW, 1)])), Ok(Effect::Remove));
    assert_eq!(decided(condition(2, true), row(&[("a", NOW, 1)])), failed);
    assert_eq!(decided(condition(1, true), None), failed);
    assert_eq!(decided(condition(1, false), None), Ok(Effect::Nothing));
}

#[test]
fn an_update_changes_columns_one_after_the_other_and_keeps_the_others() {
    let changes = vec![
        set("a", 7),
        ColumnChange::DeleteAll { name: "b".to_owned() },
        ColumnChange::DeleteVersion { name: "c".to_owned(), timestamp: NOW - 3 },
        set("d", 1),
        ColumnChange::DeleteAll { name: "d".to_owned() },
        set("d", 2),
    ];
    let before =
        row(&[("a", NOW - 5, 1), ("b", NOW - 5, 1), ("c", NOW - 3, 2), ("c", NOW - 4, 1), ("e", NOW - 5, 9)]);
    let after = left(&[("a", 0, 7), ("a", -5, 1), ("c", -4, 1), ("d", 0, 2), ("e", -5, 9)]);
    assert_eq!(stored(decide(&table(false), &write(WriteChange::Update(changes)), before, NOW)), after);
}

#[test]
fn an_update_that_only_deletes_makes_no_row_and_leaves_an_empty_one() {
    let delete = || write(WriteChange::Update(vec![ColumnChange::DeleteAll { name: "a".to_owned() }]));
    assert_eq!(decide(&table(false), &delete(), None, NOW).expect("done").effect, Effect::Nothing);
    assert_eq!(stored(decide(&table(false), &delete(), row(&[("a", NOW, 1)]), NOW)), left(&[]));
}

#[test]
fn a_table_may_refuse_updates() {
    let mut table = table(false);
    table.options.allow_update = false;
    let refused = decide(&table, &write(WriteChange::Update(vec![set("a", 1)])), None, NOW);
    assert_eq!(text(refused), "Update operation is not allowed in this table");
    let conditional = expecting(Existence::ExpectExist, WriteChange::Update(vec![set("a", 1)]));
    let before_its_condition = decide(&table, &conditional, None, NOW);
    assert_eq!(text(before_its_condition), "Update operation is not allowed in this table");
    assert!(decide(&table, &write(put(&[("a", 1)])), None, NOW).is_ok());
}

#[test]
fn an_increment_adds_to_the_latest_version_or_to_0_and_can_be_answered() {
    let write = RowWrite {
        returns: Returns::AfterModify(vec!["n".to_owned()]),
        ..write(WriteChange::Update(vec![add("n", 5), add("m", 1)]))
    };
    let decided =
        decide(&table(false), &write, row(&[("n", NOW - 5, 2), ("n", NOW - 6, 9)]), NOW).expect("done");
    assert_eq!(decided.cells, [Cell { name: "n".to_owned(), value: Value::Integer(7), timestamp: NOW }]);
    assert_eq!(stored(Ok(decided)), left(&[("m", 0, 1), ("n", 0, 7), ("n", -5, 2)]));
    let ahead = row(&[("n", NOW + 50, 2)]);
    assert_eq!(stored(decide(&table(false), &write, ahead, NOW)), left(&[("m", 0, 1), ("n", 50, 7)]));
}

#[test]
fn what_is_no_integer_or_would_exceed_64_bits_is_not_incremented() {
    let decided = |value, by| {
        let mut before = row(&[("n", NOW, 0)]).expect("a row");
        before.cells[0].value = value;
        text(decide(&table(false), &write(WriteChange::Update(vec![add("n", by)])), Some(before), NOW))
    };
    assert_eq!(decided(Value::Double(1.0), 1), "Column 'n' is not an integer and cannot be incremented.");
    assert_eq!(
        decided(Value::Integer(i64::MAX), 1),
        "Column 'n' would exceed 64 bits: it is 9223372036854775807, and 1 would be added."
    );
}

#[test]
fn timestamps_lie_within_the_deviation_and_the_ttl() {
    let mut table = table(false);
    table.options.deviation_seconds = 10;
    let decided = |table: &TableDefinition, timestamp| {
        let write = write(WriteChange::Put(vec![put_column("a", 1, Some(timestamp))]));
        decide(table, &write, None, NOW)
    };
    assert_eq!(stored(decided(&table, NOW - 10_000)), left(&[("a", -10_000, 1)]));
    assert_eq!(stored(decided(&table, NOW + 9_999)), left(&[("a", 9_999, 1)]));
    let range = format!("must be in range: [{}, {})", NOW - 10_000, NOW + 10_000);
    for timestamp in [NOW - 10_001, NOW + 10_000] {
        assert!(text(decided(&table, timestamp)).contains(&range));
    }
    for timestamp in [-1, i64::MAX / 1_000] {
        assert_eq!(text(decided(&table, timestamp)), "Timestamp must be in range [0, INT64_MAX/1000).");
    }
    table.options.deviation_seconds = 3_153_600_000;
    table.options.time_to_live = 86_400;
    assert!(decided(&table, NOW - 86_400_000).is_ok());
    assert!(decided(&table, NOW - 86_400_001).is_err());
    table.options.deviation_seconds = i64::MAX;
    assert!(decided(&table, NOW + 9_000_000).is_ok());
}

#[test]
fn what_is_written_later_is_a_later_version_although_the_clock_was_set_back() {
    let before = || row(&[("a", NOW - 1_000, 1)]);
    let update = write(WriteChange::Update(vec![set("a", 2)]));
    let after = stored(decide(&table(false), &update, before(), NOW - 5_000));
    assert_eq!(after, left(&[("a", -1_000, 2)]));
}

#[test]
fn a_column_keeps_as_many_versions_as_the_table_says() {
    let versions = [5, 9, 7].map(|ago| put_column("a", ago, Some(NOW - ago)));
    let decided = decide(&table(false), &write(WriteChange::Put(versions.into())), None, NOW);
    assert_eq!(stored(decided), left(&[("a", -5, 5), ("a", -7, 7)]));
}

#[test]
fn only_the_placeholder_makes_a_row_with_an_auto_increment_column() {
    let decided = |write: &RowWrite, stored| decide(&table(true), write, stored, NOW);
    let update = write(WriteChange::Update(vec![set("a", 1)]));
    for write in [&write(put(&[("a", 1)])), &update] {
        assert_eq!(text(decided(write, None)), "Condition check failed.");
        assert_eq!(stored(decided(write, row(&[]))), left(&[("a", 0, 1)]));
    }
    let deletes = write(WriteChange::Update(vec![ColumnChange::DeleteAll { name: "a".to_owned() }]));
    assert_eq!(decided(&deletes, None).expect("done").effect, Effect::Nothing);
    assert_eq!(decided(&write(WriteChange::Delete), None).expect("done").effect, Effect::Remove);
    let placeholder = RowWrite { key: key(None), ..update };
    assert_eq!(stored(decided(&placeholder, None)), left(&[("a", 0, 1)]));
}

#[test]
fn a_write_consumes_what_it_writes_and_a_condition_one_read() {
    let long = |bytes| {
        let column = PutColumn { name: "c".to_owned(), value: Value::Blob(vec![0; bytes]), timestamp: None };
        WriteChange::Put(vec![column])
    };
    let consumed =
        |write: RowWrite, stored| decide(&table(false), &write, stored, NOW).expect("done").consumed;
    // The key has 1 + 1 + 2 + 8 bytes, the name 1.
    assert_eq!(consumed(write(long(4_083)), None), Consumed { read: 0, write: 1 });
    assert_eq!(consumed(write(long(4_084)), None), Consumed { read: 0, write: 2 });
    assert_eq!(consumed(write(WriteChange::Delete), None), Consumed { read: 0, write: 1 });
    let conditional = expecting(Existence::ExpectNotExist, long(1));
    assert_eq!(consumed(conditional, None), Consumed { read: 1, write: 1 });
}

#[test]
fn a_row_that_would_grow_beyond_its_limit_is_refused() {
    let mut before = row(&[("a", NOW - 5, 1)]).expect("a row");
    before.cells[0].value = Value::Blob(vec![0; 16 << 20]);
    let refused = decide(&table(false), &write(WriteChange::Update(vec![set("b", 1)])), Some(before), NOW);
    assert_eq!(
        text(refused),
        "The size of the row exceeds the limit, limit size: 16777216, data size: 16777226."
    );
}

#[test]
fn a_sweep_leaves_a_row_that_has_nothing_to_lose() {
    let options = table(false).options;
    let kept = row(&[("a", 2, 1), ("a", 1, 1)]).expect("a row");
    assert_eq!(sweep(&options, kept.clone(), NOW), Effect::Nothing);
    let more = row(&[("a", 3, 1), ("a", 2, 1), ("a", 1, 1)]).expect("a row");
    let fewer = row(&[("a", 3, 1), ("a", 2, 1)]).expect("a row");
    assert_eq!(sweep(&options, more, NOW), Effect::Store(fewer));
}

#[test]
fn the_first_key_column_is_never_a_placeholder_and_there_is_one_at_most() {
    let none = |name: &str| (name.to_owned(), None);
    let some = |name: &str| (name.to_owned(), Some(KeyValue::Integer(1)));
    assert_eq!(WrittenKey::new(vec![]), None);
    assert_eq!(WrittenKey::new(vec![none("a"), some("b")]), None);
    assert_eq!(WrittenKey::new(vec![some("a"), none("b"), none("c")]), None);
    let key = WrittenKey::new(vec![some("a"), none("b"), some("c")]).expect("a key");
    assert_eq!(key.with(Some(9))[1], ("b".to_owned(), KeyValue::Integer(9)));
    assert_eq!((key.with(None).len(), key.size()), (2, 27));
}
