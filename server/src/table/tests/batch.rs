//! Many rows in one call, each with an answer of its own.

use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedCell};
use tidemark_table::wire::proto;
use tidemark_table::{ErrorCode, KeyValue, Value};

use super::World;
use super::client::{Client, Key, add, condition, ignore, integer, key, number, put, returning, row, sent};

fn write(kind: proto::WriteType, key: Key, cells: Vec<ReceivedCell>) -> proto::RowInBatchWrite {
    proto::RowInBatchWrite {
        r#type: Some(kind as i32),
        row_change: Some(sent(key, cells)),
        condition: ignore(),
        return_content: None,
    }
}

fn of(table: &str, rows: Vec<proto::RowInBatchWrite>) -> proto::TableInBatchWrite {
    proto::TableInBatchWrite { table_name: table.to_owned(), rows }
}

async fn done(client: &Client, tables: Vec<proto::TableInBatchWrite>, is_atomic: bool) -> Vec<Vec<String>> {
    let request = proto::BatchWriteRowRequest { tables, transaction_id: None, is_atomic: Some(is_atomic) };
    let answer: proto::BatchWriteRowResponse = client.call("BatchWriteRow", &request).await.expect("done");
    let outcome = |row: proto::RowOfBatch| {
        assert_eq!(row.is_ok, row.error.is_none());
        assert!(row.consumed.is_some());
        row.error.map_or("ok".to_owned(), |error| format!("{}: {}", error.code, error.message))
    };
    answer.tables.into_iter().map(|table| table.rows.into_iter().map(outcome).collect()).collect()
}

const PUT: proto::WriteType = proto::WriteType::Put;

#[tokio::test(start_paused = true)]
async fn each_row_is_answered_in_its_place_and_a_bad_one_leaves_the_others() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    client.create("u", false).await;
    let failing = proto::RowInBatchWrite {
        condition: condition(proto::RowExistence::ExpectExist),
        ..write(PUT, key("x", integer(3)), Vec::new())
    };
    let rows = vec![
        write(PUT, key("x", integer(1)), vec![number("n", 1)]),
        write(PUT, vec![("g".to_owned(), integer(1)), ("id".to_owned(), integer(1))], Vec::new()),
        failing,
        write(PUT, key("y", integer(1)), Vec::new()),
    ];
    let answers = done(
        &client,
        vec![
            of("t", rows),
            of("missing", vec![write(PUT, key("x", integer(1)), Vec::new())]),
            of("u", vec![write(PUT, key("x", integer(1)), Vec::new())]),
        ],
        false,
    )
    .await;
    let expected = [
        vec![
            "ok",
            "OTSInvalidPK: Validate PK type fail. Input: VT_INTEGER, Meta: VT_STRING.",
            "OTSConditionCheckFail: Condition check failed.",
            "ok",
        ],
        vec!["OTSObjectNotExist: Requested table does not exist."],
        vec!["ok"],
    ];
    assert_eq!(answers, expected);
    assert!(client.get("t", key("x", integer(1))).await.is_some());
    assert!(client.get("t", key("y", integer(1))).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn writes_of_the_same_row_are_done_in_order() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    let same = || key("x", integer(1));
    let there = |row: proto::RowInBatchWrite| proto::RowInBatchWrite {
        condition: condition(proto::RowExistence::ExpectExist),
        ..row
    };
    let rows = vec![
        write(PUT, same(), vec![number("n", 1), number("m", 1)]),
        there(write(proto::WriteType::Update, same(), vec![add("n", 5)])),
        write(proto::WriteType::Delete, same(), Vec::new()),
        there(write(PUT, same(), Vec::new())),
        write(proto::WriteType::Update, same(), vec![add("n", 7)]),
    ];
    let answers = done(&client, vec![of("t", rows)], false).await.concat();
    assert_eq!(answers, ["ok", "ok", "ok", "OTSConditionCheckFail: Condition check failed.", "ok"]);
    let cells = client.get("t", same()).await.expect("a row");
    assert_eq!(
        cells.iter().map(|(name, value, _)| (name.as_str(), value.clone())).collect::<Vec<_>>(),
        [("n", Value::Integer(7))]
    );
}

#[tokio::test(start_paused = true)]
async fn an_atomic_batch_is_done_whole_or_not_at_all_under_one_first_key_column() {
    let world = World::new();
    let client = world.client();
    client.create("t", true).await;
    let missing = proto::RowInBatchWrite {
        condition: condition(proto::RowExistence::ExpectExist),
        ..write(PUT, key("x", integer(9)), Vec::new())
    };
    let append = |group: &str| write(PUT, key(group, KeyPart::AutoIncrement), vec![number("n", 1)]);
    let failed = "OTSConditionCheckFail: Condition check failed.";
    let answers = done(&client, vec![of("t", vec![append("x"), missing])], true).await.concat();
    assert_eq!(answers, [failed, failed]);
    assert_eq!(client.get("t", key("x", integer(1))).await, None);
    let out = "OTSDataOutOfRange: Data out of scope of atomic. Atomic PartKey:x. Data PartKey:y";
    let answers = done(&client, vec![of("t", vec![append("x"), append("y")])], true).await.concat();
    assert_eq!(answers, [out, out]);
    let answers = done(&client, vec![of("t", vec![append("x"), append("x")])], true).await.concat();
    assert_eq!(answers, ["ok", "ok"]);
    assert!(client.get("t", key("x", integer(2))).await.is_some());
    assert_eq!(client.append("t", "x").await, Ok(3));
}

#[tokio::test(start_paused = true)]
async fn each_table_of_an_atomic_batch_stands_by_itself() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    client.create("u", false).await;
    let good = |group: &str, id| write(PUT, key(group, integer(id)), Vec::new());
    let missing =
        proto::RowInBatchWrite { condition: condition(proto::RowExistence::ExpectExist), ..good("x", 2) };
    let tables = vec![of("t", vec![good("x", 1), missing]), of("u", vec![good("y", 1), good("y", 2)])];
    let failed = "OTSConditionCheckFail: Condition check failed.";
    assert_eq!(done(&client, tables, true).await, [[failed; 2], ["ok"; 2]]);
    assert_eq!(client.get("t", key("x", integer(1))).await, None);
    assert!(client.get("u", key("y", integer(2))).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn each_row_is_answered_what_its_increments_came_to() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    let update = |id, n, m| {
        let cells = vec![add("n", n), add("m", m), number("o", 9)];
        proto::RowInBatchWrite {
            return_content: returning(proto::ReturnType::AfterModify, &["n", "m", "n"]),
            ..write(proto::WriteType::Update, key("x", integer(id)), cells)
        }
    };
    let updates = vec![update(1, 5, 1), update(2, 6, 0), update(1, 2, -3)];
    let request = proto::BatchWriteRowRequest { tables: vec![of("t", updates)], ..Default::default() };
    let answer: proto::BatchWriteRowResponse = client.call("BatchWriteRow", &request).await.expect("done");
    let answered = answer.tables[0].rows.iter().map(|answer| {
        let (key, cells) = row(answer.row.as_ref().expect("asked for")).expect("a row");
        let cells = cells.into_iter().map(|(name, value, _)| (name, value));
        (key[1].clone(), cells.collect::<Vec<_>>())
    });
    let answered: Vec<_> = answered.collect();
    let sums = |id, m, n| {
        let sum = |name: &str, sum| (name.to_owned(), Value::Integer(sum));
        (KeyValue::Integer(id), vec![sum("m", m), sum("n", n)])
    };
    assert_eq!(answered, [sums(1, 1, 5), sums(2, 0, 6), sums(1, -2, 7)]);
}

#[tokio::test(start_paused = true)]
async fn rows_with_a_placeholder_get_their_numbers_in_order() {
    let world = World::new();
    let client = world.client();
    client.create("t", true).await;
    let append = |group: &str| proto::RowInBatchWrite {
        return_content: returning(proto::ReturnType::PrimaryKey, &[]),
        ..write(PUT, key(group, KeyPart::AutoIncrement), Vec::new())
    };
    let rows = (0..200).map(|at| append(if at % 2 == 0 { "x" } else { "y" })).collect();
    let request = proto::BatchWriteRowRequest { tables: vec![of("t", rows)], ..Default::default() };
    let answer: proto::BatchWriteRowResponse = client.call("BatchWriteRow", &request).await.expect("done");
    let ids = answer.tables[0]
        .rows
        .iter()
        .map(|answer| row(answer.row.as_ref().expect("asked for")).expect("a key").0[1].clone());
    let expected = (0..200).map(|at| KeyValue::Integer(at / 2 + 1));
    assert!(ids.eq(expected));
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_names_or_limits_are_wrong_is_refused_whole() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    let good = || write(PUT, key("x", integer(1)), Vec::new());
    let bad = write(PUT, key("x", integer(2)), vec![number("#a", 1)]);
    let request =
        proto::BatchWriteRowRequest { tables: vec![of("t", vec![good(), bad])], ..Default::default() };
    let refused = client.refusal("BatchWriteRow", &request).await;
    assert_eq!(refused, (ErrorCode::ParameterInvalid, "Invalid column name: '#a'.".to_owned()));
    assert_eq!(client.get("t", key("x", integer(1))).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_a_row_may_not_become_is_refused_for_that_row_alone() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    client.put("t", key("x", integer(1)), vec![put("n", Value::Boolean(true))]).await.expect("put");
    let old = ReceivedCell { timestamp: Some(1), ..number("n", 1) };
    let rows = vec![
        write(proto::WriteType::Update, key("x", integer(1)), vec![add("n", 1)]),
        write(PUT, key("x", integer(1)), vec![old]),
        write(PUT, key("x", integer(2)), Vec::new()),
    ];
    let answers = done(&client, vec![of("t", rows)], false).await.concat();
    assert_eq!(answers[0], "OTSParameterInvalid: Column 'n' is not an integer and cannot be incremented.");
    assert!(
        answers[1].starts_with("OTSParameterInvalid: The timestamp of column: 'n' must be in range: ["),
        "{}",
        answers[1]
    );
    assert_eq!(answers[2], "ok");
    let cells = client.get("t", key("x", integer(1))).await.expect("a row");
    assert_eq!(cells[0].1, Value::Boolean(true));
}

#[tokio::test(start_paused = true)]
async fn rows_are_read_together_each_with_its_answer() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    client.put("t", key("x", integer(1)), vec![number("n", 1)]).await.expect("put");
    let reads = |table: &str, keys: Vec<Key>| proto::TableInBatchGet {
        table_name: table.to_owned(),
        primary_keys: keys.into_iter().map(|key| sent(key, Vec::new())).collect(),
        max_versions: Some(1),
        ..Default::default()
    };
    let wrong = vec![("g".to_owned(), integer(1))];
    let tables = vec![
        reads("t", vec![key("x", integer(2)), key("x", integer(1)), wrong]),
        reads("t", Vec::new()),
        reads("missing", vec![key("x", integer(1))]),
    ];
    let answer: proto::BatchGetRowResponse =
        client.call("BatchGetRow", &proto::BatchGetRowRequest { tables }).await.expect("read");
    let rows = |table: usize| &answer.tables[table].rows[..];
    assert_eq!(answer.tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [3, 0, 1]);
    assert_eq!((rows(0)[0].is_ok, rows(0)[0].row.clone()), (true, Some(Vec::new())));
    assert!(row(rows(0)[1].row.as_ref().expect("a row")).is_some());
    assert_eq!(rows(0)[2].error.as_ref().expect("wrong").code, "OTSInvalidPK");
    assert_eq!(rows(2)[0].error.as_ref().expect("missing").code, "OTSObjectNotExist");
}

#[tokio::test(start_paused = true)]
async fn rows_beyond_what_one_answer_holds_are_refused() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    for id in 0..20 {
        let blob = put("b", Value::Blob(vec![0; 1 << 20]));
        client.put("t", key("x", integer(id)), vec![blob]).await.expect("put");
    }
    let keys = (0..20).map(|id| sent(key("x", integer(id)), Vec::new())).collect();
    let tables = vec![proto::TableInBatchGet {
        table_name: "t".to_owned(),
        primary_keys: keys,
        max_versions: Some(1),
        ..Default::default()
    }];
    let answer: proto::BatchGetRowResponse =
        client.call("BatchGetRow", &proto::BatchGetRowRequest { tables }).await.expect("read");
    let rows = &answer.tables[0].rows;
    assert_eq!(rows.iter().filter(|row| row.is_ok).count(), 16);
    let refused = rows[19].error.as_ref().expect("refused");
    assert_eq!(
        refused.message,
        "The total data size of BatchGetRow answer exceeds the limit, limit size: 16777216. Ask for fewer rows."
    );
}
