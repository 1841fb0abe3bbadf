//! Tables: names, keys, options.

use super::*;

#[test]
fn names_of_tables_are_checked_by_every_operation() {
    for name in ["", "1a", "a-b", "é", &"a".repeat(256)] {
        let expected = invalid(&format!("Invalid table name: '{name}'."));
        let table_name = name.to_owned();
        let mut created = create(vec![column("a", STRING)]);
        created.table_meta.as_mut().expect("a meta").table_name = table_name.clone();
        assert_eq!(wrong(made(&created)), expected);
        let request = proto::PutRowRequest { table_name: table_name.clone(), ..put(key(number(1)), one()) };
        assert_eq!(wrong(written(write::WriteKind::Put, &request, false)), expected);
        let request = proto::GetRowRequest { table_name: table_name.clone(), ..get(key(number(1))) };
        assert_eq!(wrong(read_row(&request)), expected);
        let range =
            proto::GetRangeRequest { table_name: table_name.clone(), ..range(true, Vec::new(), Vec::new()) };
        assert_eq!(wrong(read_range(&range)), expected);
        let named = proto::DescribeTableRequest { table_name }.encode_to_vec();
        assert_eq!(wrong(tables::decode_describe(&named)), expected);
        assert_eq!(wrong(tables::decode_delete(&named)), expected);
        assert_eq!(wrong(tables::decode_split(&named)), expected);
    }
    assert!(check::table_name(&"_a1".repeat(85)).is_ok());
}

#[test]
fn keys_of_tables_have_one_to_four_columns_each_with_a_name_of_its_own() {
    let count = invalid("The number of primary key columns must be in range: [1, 4].");
    assert_eq!(wrong(made(&create(Vec::new()))), count);
    let five = (0..5).map(|at| column(&format!("PK{at}"), STRING)).collect();
    assert_eq!(wrong(made(&create(five))), count);
    let twice = create(vec![column("PK0", STRING), column("PK0", INTEGER)]);
    assert_eq!(wrong(made(&twice)), invalid("Duplicated primary key name: 'PK0'."));
    let named = create(vec![column("#a", STRING)]);
    assert_eq!(wrong(made(&named)), invalid("Invalid column name: '#a'."));
}

#[test]
fn one_integer_that_is_not_the_first_may_be_auto_increment() {
    let first = create(vec![assigned("a", INTEGER), column("b", INTEGER)]);
    assert_eq!(wrong(made(&first)), invalid("First primary key can't be auto increment, table: t."));
    let text = create(vec![column("a", STRING), assigned("b", STRING)]);
    assert_eq!(wrong(made(&text)), invalid("AUTO_INCREMENT primary key must be integer."));
    let two = create(vec![column("a", STRING), assigned("b", INTEGER), assigned("c", INTEGER)]);
    assert_eq!(wrong(made(&two)), invalid("AUTO_INCREMENT primary key count must <= 1."));
    let good = made(&create(vec![column("a", STRING), assigned("b", INTEGER)])).expect("made");
    assert_eq!(good.auto_increment(), Some(1));
}

#[test]
fn a_table_declares_at_most_thirty_two_columns() {
    let declared = |at: usize| proto::AttributeColumn {
        name: format!("c{at}"),
        r#type: Some(proto::AttributeType::Integer as i32),
    };
    let declaring = |count: usize| {
        let mut request = create(vec![column("a", STRING)]);
        let meta = request.table_meta.as_mut().expect("a meta");
        meta.attribute_columns = (0..count).map(declared).collect();
        made(&request).map(|table| table.columns.len())
    };
    assert_eq!(declaring(32), Ok(32));
    assert_eq!(wrong(declaring(33)), invalid("The number of defined columns must be in range: [0, 32]."));
}

#[test]
fn options_of_tables_have_ranges() {
    let with = |options: proto::Options| {
        let request = create(vec![column("a", STRING)]);
        made(&proto::CreateTableRequest { table_options: Some(options), ..request })
            .map(|table| table.options)
    };
    let all = proto::Options {
        time_to_live: Some(86_400),
        max_versions: Some(3),
        deviation: Some(3_153_600_000),
        allow_update: Some(false),
        // Two that are accepted and mean nothing here.
        bloom_filter_type: Some(1),
        block_size: Some(64),
        update_full_row: None,
    };
    let options = TableOptions {
        time_to_live: 86_400,
        max_versions: 3,
        deviation_seconds: 3_153_600_000,
        allow_update: false,
    };
    assert_eq!(with(all), Ok(options));
    assert_eq!(with(proto::Options::default()), Ok(TableOptions::default()));
    for (options, text) in [
        (
            proto::Options { time_to_live: Some(86_399), ..all },
            "The time to live must be -1, or at least 86400 seconds; it is 86399.",
        ),
        (
            proto::Options { max_versions: Some(0), ..all },
            "The max versions must be greater than 0, they are 0.",
        ),
        (
            proto::Options { deviation: Some(0), ..all },
            "The deviation of a cell's version must be at least 1 second, it is 0.",
        ),
    ] {
        assert_eq!(wrong(with(options)), invalid(text));
    }
}

#[test]
fn what_tables_do_not_have_is_refused_and_not_ignored() {
    let good = || create(vec![column("a", STRING)]);
    let stream = proto::StreamSpecification { enable: Some(true), ..proto::StreamSpecification::default() };
    let encryption =
        proto::EncryptionSpecification { enable: Some(true), ..proto::EncryptionSpecification::default() };
    let range = proto::PartitionRange { begin: vec![1], end: vec![2] };
    let full = proto::Options { update_full_row: Some(true), ..proto::Options::default() };
    for request in [
        proto::CreateTableRequest { stream_specification: Some(stream.clone()), ..good() },
        proto::CreateTableRequest { encryption_specification: Some(encryption), ..good() },
        proto::CreateTableRequest { indexes: vec![proto::Index::default()], ..good() },
        proto::CreateTableRequest { enable_local_transactions: Some(true), ..good() },
        proto::CreateTableRequest { partitions: vec![range], ..good() },
        proto::CreateTableRequest { table_options: Some(full), ..good() },
    ] {
        assert_eq!(wrong(made(&request)).0, ErrorCode::UnsupportedOperation, "{request:?}");
    }
    let off = proto::StreamSpecification { enable: Some(false), ..stream.clone() };
    assert!(made(&proto::CreateTableRequest { stream_specification: Some(off), ..good() }).is_ok());
    let update = |request: proto::UpdateTableRequest| {
        let request = proto::UpdateTableRequest { table_name: "t".to_owned(), ..request };
        wrong(tables::decode_update(&request.encode_to_vec()))
    };
    let streamed = proto::UpdateTableRequest { stream_specification: Some(stream), ..Default::default() };
    assert_eq!(update(streamed).0, ErrorCode::UnsupportedOperation);
    let full = proto::UpdateTableRequest { table_options: Some(full), ..Default::default() };
    assert!(update(full).1.contains("contain updateFullRow"));
    assert_eq!(update(Default::default()).0, ErrorCode::ParameterInvalid);
}

#[test]
fn an_operation_that_is_not_carried_out_is_refused_by_its_name() {
    let refused = (ErrorCode::UnsupportedOperation, "Unsupported operation: SQLQuery.".to_owned());
    assert_eq!(wrong(Operation::named("SQLQuery")), refused);
    assert_eq!(Operation::named("PutRow"), Ok(Operation::PutRow));
}

#[test]
fn half_of_a_throughput_leaves_the_other_half_as_it_is() {
    let before = TableDefinition { reserved: ReservedThroughput { read: 3, write: 4 }, ..table(false) };
    let updated = |unit: Option<(Option<i32>, Option<i32>)>| {
        let capacity_unit = unit.map(|(read, write)| proto::CapacityUnitChange { read, write });
        let request = proto::UpdateTableRequest {
            table_name: "t".to_owned(),
            reserved_throughput: Some(proto::ReservedThroughputChange { capacity_unit }),
            ..Default::default()
        };
        let (_, change) = tables::decode_update(&request.encode_to_vec())?;
        change.of(before.clone()).map(|after| (after.reserved.read, after.reserved.write))
    };
    assert_eq!(updated(Some((Some(5), None))), Ok((5, 4)));
    assert_eq!(updated(Some((None, Some(0)))), Ok((3, 0)));
    assert_eq!(updated(Some((Some(6), Some(7)))), Ok((6, 7)));
    let negative = updated(Some((None, Some(-1)))).expect_err("refused").message;
    assert_eq!(negative, "The reserved throughput must not be negative: read 3, write -1.");
    for nothing in [None, Some((None, None))] {
        let refused = updated(nothing).expect_err("refused").message;
        assert_eq!(refused, "UpdateTable needs table options or a reserved throughput to change.");
    }
}

#[test]
fn a_split_has_a_size_and_at_most_a_thousand_points() {
    let asked = |split_size: Option<i64>, split_size_unit: Option<i64>, split_point_limit: Option<i32>| {
        let request = proto::ComputeSplitPointsBySizeRequest {
            table_name: "t".to_owned(),
            split_size,
            split_size_unit,
            split_point_limit,
        };
        tables::decode_split(&request.encode_to_vec()).map(|(_, split)| (split.bytes, split.most))
    };
    assert_eq!(asked(Some(2), None, None), Ok((200 << 20, 1_000)));
    assert_eq!(asked(Some(2), Some(10), Some(7)), Ok((20, 7)));
    assert_eq!(asked(Some(1), Some(1), Some(1_001)), Ok((1, 1_000)));
    for (size, unit) in [
        (None, None),
        (Some(0), None),
        (Some(-1), None),
        (Some(1), Some(0)),
        (Some(-1), Some(-1)),
        (Some(i64::MAX), None),
    ] {
        assert_eq!(wrong(asked(size, unit, None)), invalid("The split size must be greater than 0."));
    }
    for limit in [0, -1] {
        let refused = wrong(asked(Some(1), None, Some(limit)));
        assert_eq!(refused, invalid("The limit must be greater than 0."));
    }
}
