//! Reads, ranges, batches, and the bytes of answers.

use super::*;

#[test]
fn a_key_has_the_columns_of_its_table() {
    let refused = |parts: KeyParts| wrong(read_row(&get(parts)));
    let pk = |text: &str| (ErrorCode::InvalidPK, text.to_owned());
    let short = vec![("PK1".to_owned(), text("x"))];
    assert_eq!(refused(short), pk("Validate PK size fail. Input: 1, Meta: 2."));
    let named = vec![("PK2".to_owned(), text("x")), ("PK2".to_owned(), number(1))];
    assert_eq!(refused(named), pk("Validate PK name fail. Input: PK2, Meta: PK1."));
    let typed = vec![("PK1".to_owned(), number(1)), ("PK2".to_owned(), number(1))];
    assert_eq!(refused(typed), pk("Validate PK type fail. Input: VT_INTEGER, Meta: VT_STRING."));
    assert_eq!(refused(key(KeyPart::InfMin)), pk("VT_INF_MIN is an invalid type for the primary key."));
    assert_eq!(refused(key(KeyPart::InfMax)), pk("VT_INF_MAX is an invalid type for the primary key."));
    let long = vec![("PK1".to_owned(), text(&"a".repeat(1_025))), ("PK2".to_owned(), number(1))];
    let too_long = invalid(
        "The length of primary key column: 'PK1' exceeds the MaxLength:1024 with CurrentLength:1025.",
    );
    assert_eq!(refused(long), too_long);
    assert_eq!(
        refused(key(KeyPart::AutoIncrement)),
        invalid("PKAutoIncr can't be used for read operations.")
    );
    let plain = written(write::WriteKind::Put, &put(key(KeyPart::AutoIncrement), one()), false);
    assert_eq!(wrong(plain), pk("Validate PK type fail. Input: VT_AUTO_INCREMENT, Meta: VT_INTEGER."));
}

#[test]
fn a_read_says_which_versions_it_wants() {
    let good = || get(key(number(1)));
    let times = |start, end, specific| Some(proto::TimeRange { start, end, specific });
    let none = proto::GetRowRequest { max_versions: None, ..good() };
    assert_eq!(wrong(read_row(&none)), invalid("No version condition is specified while querying row."));
    let both = proto::GetRowRequest { time_range: times(None, None, Some(1)), ..good() };
    assert_eq!(
        wrong(read_row(&both)),
        invalid("Specific tiemstamp and max versions cannot be given at the same time.")
    );
    let zero = proto::GetRowRequest { max_versions: Some(0), ..good() };
    assert_eq!(wrong(read_row(&zero)).0, ErrorCode::ParameterInvalid);
    for time in [-1, i64::MAX / 1_000] {
        let at =
            proto::GetRowRequest { max_versions: None, time_range: times(None, None, Some(time)), ..good() };
        assert_eq!(wrong(read_row(&at)), invalid("Timestamp must be in range [0, INT64_MAX/1000)."));
    }
    for (start, end) in [(Some(2), Some(1)), (Some(-1), Some(1)), (Some(1), None), (None, None)] {
        let range = proto::GetRowRequest { time_range: times(start, end, None), ..good() };
        assert_eq!(wrong(read_row(&range)).0, ErrorCode::ParameterInvalid);
    }
    let all = proto::GetRowRequest { time_range: times(Some(0), Some(i64::MAX), None), ..good() };
    assert!(read_row(&all).is_ok());
}

fn columns(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("c{at}")).collect()
}

fn one_column_too_many() -> (ErrorCode, String) {
    invalid(
        "The number of columns from the request exceeds the limit, limit count: 1024, column count: 1025.",
    )
}

#[test]
fn a_read_names_a_bounded_number_of_columns() {
    let many = proto::GetRowRequest { columns_to_get: columns(1_025), ..get(key(number(1))) };
    assert_eq!(wrong(read_row(&many)), one_column_too_many());
    let (low, high) = (key(KeyPart::InfMin), key(KeyPart::InfMax));
    let many = proto::GetRangeRequest { columns_to_get: columns(1_025), ..range(true, low, high) };
    assert_eq!(wrong(read_range(&many)), one_column_too_many());
}

#[test]
fn each_table_of_a_batch_names_a_bounded_number_of_columns() {
    let reads = |counts: [usize; 2]| {
        let table = |count: usize| proto::TableInBatchGet {
            table_name: "t".to_owned(),
            primary_keys: vec![sent(key(number(1)), Vec::new())],
            columns_to_get: columns(count),
            max_versions: Some(1),
            ..proto::TableInBatchGet::default()
        };
        let request = proto::BatchGetRowRequest { tables: counts.map(table).into() };
        batch::decode_reads(&request.encode_to_vec())
    };
    assert!(reads([1_024, 1_024]).is_ok());
    assert_eq!(wrong(reads([1, 1_025])), one_column_too_many());
}

#[test]
fn each_row_of_a_batch_has_a_bounded_number_of_columns_returned() {
    let writes = |counts: [usize; 2]| {
        let row = |count: usize| {
            let return_column_names = columns(count);
            let return_type = Some(proto::ReturnType::AfterModify as i32);
            let return_content = Some(proto::ReturnContent { return_type, return_column_names });
            proto::RowInBatchWrite { return_content, ..put_of_batch(one()) }
        };
        batch::decode_writes(&batch_of(counts.map(row).into()).encode_to_vec())
    };
    assert!(writes([1_024, 1_024]).is_ok());
    assert_eq!(wrong(writes([1, 1_025])), one_column_too_many());
}

/// A put, as a row of a batch.
fn put_of_batch(cells: Vec<ReceivedCell>) -> proto::RowInBatchWrite {
    proto::RowInBatchWrite {
        r#type: Some(proto::WriteType::Put as i32),
        row_change: Some(sent(key(number(1)), cells)),
        condition: condition(proto::RowExistence::Ignore),
        return_content: None,
    }
}

/// Rows of one table.
fn batch_of(rows: Vec<proto::RowInBatchWrite>) -> proto::BatchWriteRowRequest {
    let table = proto::TableInBatchWrite { table_name: "t".to_owned(), rows };
    proto::BatchWriteRowRequest { tables: vec![table], ..proto::BatchWriteRowRequest::default() }
}

#[test]
fn transactions_and_tokens_are_refused() {
    let transaction_id = Some("x".to_owned());
    let invalid_id = invalid("TransactionID is invalid.");
    let request = proto::GetRowRequest { transaction_id: transaction_id.clone(), ..get(key(number(1))) };
    assert_eq!(wrong(read_row(&request)), invalid_id);
    let (low, high) = (key(KeyPart::InfMin), key(KeyPart::InfMax));
    let request = proto::GetRangeRequest { transaction_id: transaction_id.clone(), ..range(true, low, high) };
    assert_eq!(wrong(read_range(&request)), invalid_id);
    let request = proto::BatchWriteRowRequest {
        transaction_id: transaction_id.clone(),
        ..batch_of(vec![put_of_batch(one())])
    };
    assert_eq!(wrong(batch::decode_writes(&request.encode_to_vec())), invalid_id);
    let request = proto::PutRowRequest { transaction_id, ..put(key(number(1)), one()) };
    assert_eq!(wrong(written(write::WriteKind::Put, &request, false)), invalid_id);
    let request = proto::GetRowRequest { token: Some(vec![1]), ..get(key(number(1))) };
    assert_eq!(wrong(read_row(&request)).0, ErrorCode::UnsupportedOperation);
}

#[test]
fn a_range_goes_its_way_and_has_a_limit() {
    let (low, high) = (|| key(KeyPart::InfMin), || key(KeyPart::InfMax));
    assert_eq!(
        wrong(read_range(&range(true, high(), low()))),
        invalid("Begin key must less than end key in FORWARD")
    );
    assert_eq!(
        wrong(read_range(&range(false, low(), high()))),
        invalid("Begin key must more than end key in BACKWARD")
    );
    assert!(read_range(&range(true, low(), low())).is_err());
    for limit in [0, -1] {
        let request = proto::GetRangeRequest { limit: Some(limit), ..range(true, low(), high()) };
        assert_eq!(wrong(read_range(&request)), invalid("The limit must be greater than 0."));
    }
    let many = proto::GetRangeRequest { limit: Some(9_999), ..range(false, high(), low()) };
    assert_eq!(read_range(&many).expect("a range").limit, 5_000);
    let found = read_range(&range(true, low(), high())).expect("a range");
    assert_eq!(found.first(), Some(&KeyValue::String("x".to_owned())));
    let first = |bound: KeyPart| vec![("PK1".to_owned(), bound.clone()), ("PK2".to_owned(), bound)];
    let whole = read_range(&range(true, first(KeyPart::InfMin), first(KeyPart::InfMax))).expect("a range");
    assert_eq!(whole.first(), None);
}

#[test]
fn batches_have_bounds() {
    let writes = |tables: Vec<proto::TableInBatchWrite>| {
        let request = proto::BatchWriteRowRequest { tables, ..proto::BatchWriteRowRequest::default() };
        batch::decode_writes(&request.encode_to_vec())
    };
    let rows = |count: usize, size: usize| {
        let row = put_of_batch(vec![cell("a", Value::Blob(vec![0; size]))]);
        proto::TableInBatchWrite { table_name: "t".to_owned(), rows: vec![row; count] }
    };
    assert_eq!(wrong(writes(Vec::new())), invalid("No row is specified in BatchWriteRow."));
    assert_eq!(wrong(writes(vec![rows(0, 0)])), invalid("No operation is specified for table: 't'."));
    assert_eq!(
        wrong(writes(vec![rows(100, 0), rows(101, 0)])),
        invalid("Rows count exceeds the upper limit: 200.")
    );
    assert!(writes(vec![rows(100, 0), rows(100, 0)]).is_ok());
    let large = wrong(writes(vec![rows(5, 1 << 20)])).1;
    assert!(
        large.starts_with(
            "The total data size of BatchWriteRow request exceeds the limit, limit size: 4194304, data size: "
        ),
        "{large}"
    );
    let reads = |tables: Vec<proto::TableInBatchGet>| {
        batch::decode_reads(&proto::BatchGetRowRequest { tables }.encode_to_vec())
    };
    let keys = |count: usize| proto::TableInBatchGet {
        table_name: "t".to_owned(),
        primary_keys: vec![sent(key(number(1)), Vec::new()); count],
        max_versions: Some(1),
        ..proto::TableInBatchGet::default()
    };
    assert_eq!(wrong(reads(Vec::new())), invalid("No row specified in the request of BatchGetRow."));
    assert_eq!(wrong(reads(vec![keys(101)])), invalid("Rows count exceeds the upper limit: 100."));
    assert_eq!(reads(vec![keys(0)]).map(|tables| tables[0].count()), Ok(0));
}

/// Else its rows would be two units, and one could be stored without the other.
#[test]
fn an_atomic_batch_names_a_table_once() {
    let writes = |names: [&str; 3], is_atomic| {
        let row = put_of_batch(Vec::new());
        let table =
            |name: &str| proto::TableInBatchWrite { table_name: name.to_owned(), rows: vec![row.clone()] };
        let tables = names.map(table).to_vec();
        let request =
            proto::BatchWriteRowRequest { tables, transaction_id: None, is_atomic: Some(is_atomic) };
        batch::decode_writes(&request.encode_to_vec())
    };
    assert_eq!(
        wrong(writes(["a", "b", "a"], true)),
        invalid("The table 'a' is there twice in an atomic BatchWriteRow; its rows must stand together.")
    );
    assert!(writes(["a", "b", "c"], true).is_ok());
    assert!(writes(["a", "b", "a"], false).is_ok());
}

#[test]
fn elements_of_two_bytes_are_counted_before_they_are_decoded() {
    let many = |field: u8| [field << 3 | 2, 0].repeat(1 << 20);
    assert_eq!(wrong(batch::decode_reads(&many(1))), invalid("Rows count exceeds the upper limit: 100."));
    assert_eq!(wrong(batch::decode_writes(&many(1))), invalid("Rows count exceeds the upper limit: 200."));
    assert!(wrong(read::decode(&many(3))).1.contains("column count: 1048576"));
    assert!(wrong(range::decode(&many(3))).1.contains("column count: 1048576"));
    assert_eq!(wrong(read::decode(&[0xff; 9])).0, ErrorCode::ParameterInvalid);
}

#[test]
fn an_answer_has_all_numbers_also_when_they_are_zero() {
    let put = write::answer(Consumed { read: 0, write: 1 }, None);
    assert_eq!(put, [0x0a, 6, 0x0a, 4, 0x08, 0, 0x10, 1]);
    let get = read::answer(Consumed { read: 1, write: 0 }, None);
    assert_eq!(get, [0x0a, 6, 0x0a, 4, 0x08, 1, 0x10, 0, 0x12, 0]);
    let range = range::answer(Consumed { read: 1, write: 0 }, &[], None);
    assert_eq!(range, [0x0a, 6, 0x0a, 4, 0x08, 1, 0x10, 0, 0x12, 0, 0x28, 0, 0x30, 0]);
}
