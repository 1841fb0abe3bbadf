//! Rows are written and read.

use std::sync::Arc;
use std::time::Duration;

use tidemark_table::rows::key::{INF_MAX, INF_MIN};
use tidemark_table::wire::plain_buffer::KeyPart;
use tidemark_table::wire::proto;
use tidemark_table::{ErrorCode, KeyValue, Value};

use super::client::{
    add, condition, create_request, delete_all, get_request, ignore, integer, key, number, put_request,
    range_request, returning, row, rows, sent,
};
use super::{BEGIN, World};
use crate::domain::Direction;
use crate::store::memory::MemoryTables;
use crate::store::tables::TableScan;

fn id(row: &(Vec<KeyValue>, Vec<super::client::Answered>)) -> i64 {
    match row.0[..] {
        [_, KeyValue::Integer(id)] => id,
        ref other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_that_was_put_is_read_and_deleted() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    let answer = client.put("t", key("x", integer(1)), vec![number("n", 7)]).await.expect("put");
    assert_eq!((answer.consumed.capacity_unit.read, answer.consumed.capacity_unit.write), (0, 1));
    assert_eq!(answer.row, None);
    let found = client.get("t", key("x", integer(1))).await;
    assert_eq!(found, Some(vec![("n".to_owned(), Value::Integer(7), BEGIN)]));
    let delete = proto::DeleteRowRequest {
        table_name: "t".to_owned(),
        primary_key: Some(sent(key("x", integer(1)), Vec::new())),
        condition: condition(proto::RowExistence::ExpectExist),
        ..proto::DeleteRowRequest::default()
    };
    let answer: proto::WriteRowResponse = client.call("DeleteRow", &delete).await.expect("deleted");
    assert_eq!((answer.consumed.capacity_unit.read, answer.consumed.capacity_unit.write), (1, 1));
    let read: proto::GetRowResponse =
        client.call("GetRow", &get_request("t", key("x", integer(1)))).await.expect("read");
    assert_eq!((read.row, read.consumed.capacity_unit.read), (Vec::new(), 1));
    let refused = client.refusal("DeleteRow", &delete).await;
    assert_eq!(refused, (ErrorCode::ConditionCheckFail, "Condition check failed.".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_store_numbers_rows_each_first_key_column_by_itself() {
    let world = World::new();
    let client = world.client();
    client.create("t", true).await;
    assert_eq!(client.append("t", "x").await, Ok(1));
    assert_eq!(client.append("t", "x").await, Ok(2));
    assert_eq!(client.append("t", "y").await, Ok(1));
    let silent = client.put("t", key("x", KeyPart::AutoIncrement), Vec::new()).await.expect("put");
    assert_eq!(silent.row, None);
    assert_eq!(client.append("t", "x").await, Ok(4));
    let explicit = client.put("t", key("x", integer(9)), Vec::new()).await.expect_err("refused");
    assert_eq!(explicit.code, ErrorCode::ConditionCheckFail);
    client.put("t", key("x", integer(2)), vec![number("n", 5)]).await.expect("replaced");
}

#[tokio::test(start_paused = true)]
async fn an_increment_is_answered() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    let update = proto::UpdateRowRequest {
        table_name: "t".to_owned(),
        row_change: Some(sent(key("x", integer(1)), vec![add("n", 5), number("m", 1), delete_all("o")])),
        condition: ignore(),
        return_content: returning(proto::ReturnType::AfterModify, &["n"]),
        transaction_id: None,
    };
    for sum in [5, 10] {
        let answer: proto::WriteRowResponse = client.call("UpdateRow", &update).await.expect("updated");
        let (key, cells) = row(&answer.row.expect("asked for")).expect("a row");
        assert_eq!(key, [KeyValue::String("x".to_owned()), KeyValue::Integer(1)]);
        assert_eq!(cells, [("n".to_owned(), Value::Integer(sum), BEGIN)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_range_goes_both_ways_page_by_page_and_says_where_it_goes_on() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    for id in 1..=7 {
        client.put("t", key("x", integer(id)), vec![number("n", id)]).await.expect("put");
    }
    client.put("t", key("y", integer(1)), Vec::new()).await.expect("put");
    let (low, high) = (key("x", KeyPart::InfMin), key("x", KeyPart::InfMax));
    for (forward, mut start, end, expected) in [
        (true, low.clone(), high.clone(), vec![vec![1, 2, 3], vec![4, 5, 6], vec![7]]),
        (false, high, low, vec![vec![7, 6, 5], vec![4, 3, 2], vec![1]]),
    ] {
        let mut pages = Vec::new();
        loop {
            let request =
                proto::GetRangeRequest { limit: Some(3), ..range_request("t", forward, start, end.clone()) };
            let answer: proto::GetRangeResponse = client.call("GetRange", &request).await.expect("read");
            pages.push(rows(&answer.rows).iter().map(id).collect::<Vec<_>>());
            let Some(next) = answer.next_start_primary_key else { break };
            start = key("x", integer(id(&row(&next).expect("a key"))));
        }
        assert_eq!(pages, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_ends_after_four_megabytes_that_were_looked_at() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    for id in 1..=6 {
        let blob = super::client::put("b", Value::Blob(vec![0; 1 << 20]));
        client.put("t", key("x", integer(id)), vec![blob]).await.expect("put");
    }
    let (low, high) = (key("x", KeyPart::InfMin), key("x", KeyPart::InfMax));
    for (forward, start, end, first) in [(true, &low, &high, 5), (false, &high, &low, 2)] {
        let request = range_request("t", forward, start.clone(), end.clone());
        let answer: proto::GetRangeResponse = client.call("GetRange", &request).await.expect("read");
        let next = row(&answer.next_start_primary_key.expect("more")).expect("a key");
        assert_eq!((rows(&answer.rows).len(), id(&next)), (4, first));
        let request = proto::GetRangeRequest { columns_to_get: vec!["z".to_owned()], ..request };
        let answer: proto::GetRangeResponse = client.call("GetRange", &request).await.expect("read");
        let next = row(&answer.next_start_primary_key.expect("more")).expect("a key");
        assert_eq!((rows(&answer.rows).len(), id(&next)), (0, first));
    }
}

#[tokio::test(start_paused = true)]
async fn a_range_shows_whole_keys_unless_only_named_columns_are_wanted() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    client.put("t", key("x", integer(1)), vec![number("n", 7)]).await.expect("put");
    let keys = async |return_entire_primary_keys: Option<bool>| {
        let request = proto::GetRangeRequest {
            columns_to_get: vec!["n".to_owned(), "id".to_owned()],
            return_entire_primary_keys,
            ..range_request("t", true, key("x", KeyPart::InfMin), key("x", KeyPart::InfMax))
        };
        let answer: proto::GetRangeResponse = client.call("GetRange", &request).await.expect("read");
        rows(&answer.rows).into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    let whole = [[KeyValue::String("x".to_owned()), KeyValue::Integer(1)]];
    assert_eq!(keys(None).await, whole);
    assert_eq!(keys(Some(true)).await, whole);
    assert_eq!(keys(Some(false)).await, [[KeyValue::Integer(1)]]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_table_that_is_remembered_does_not_lose_writes_to_the_new_one() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    let request = put_request("t", key("x", integer(1)), vec![number("n", 1)]);
    let _: proto::WriteRowResponse = client.call("PutRow", &request).await.expect("put");
    // Another server deletes the table and makes it again; this one remembers the old one.
    let store = &world.service.store;
    let table = store.table("test", "t").await.expect("read").expect("a table");
    assert!(store.delete_table(table.id).await.expect("deleted"));
    store.create_table("test", "t", &table.definition, table.created_at, 64).await.expect("made");
    let _: proto::WriteRowResponse = client.call("PutRow", &request).await.expect("put");
    assert!(client.get("t", key("x", integer(1))).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_past_its_ttl_is_not_shown_and_then_removed() {
    let options =
        crate::table::Options { sweep_every: Duration::from_secs(60), ..crate::table::Options::default() };
    let world = World::over(Arc::new(MemoryTables::new()), options);
    let client = world.client();
    let mut create = create_request("t", false);
    create.table_options = Some(proto::Options { time_to_live: Some(86_400), ..proto::Options::default() });
    let _: proto::CreateTableResponse = client.call("CreateTable", &create).await.expect("made");
    client.put("t", key("x", integer(1)), vec![number("n", 1)]).await.expect("put");
    world.wait(86_400_000);
    client.put("t", key("x", integer(2)), vec![number("n", 1)]).await.expect("put");
    assert!(client.get("t", key("x", integer(1))).await.is_some());
    world.wait(1);
    assert!(client.get("t", key("x", integer(1))).await.is_none());
    let range = range_request("t", true, key("x", KeyPart::InfMin), key("x", KeyPart::InfMax));
    let shown: proto::GetRangeResponse = client.call("GetRange", &range).await.expect("read");
    assert_eq!(rows(&shown.rows).iter().map(id).collect::<Vec<_>>(), [2]);
    let kept = async || {
        let record = world.service.store.table("test", "t").await.expect("read").expect("a table");
        let scan = TableScan {
            table: record.id,
            partition_key: None,
            start: vec![INF_MIN],
            end: vec![INF_MAX],
            direction: Direction::Forward,
            rows: 10,
            bytes: 1 << 20,
        };
        world.service.store.scan(&scan).await.expect("read").0.len()
    };
    assert_eq!(kept().await, 2);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(kept().await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_deleted_table_goes_in_small_parts_and_at_once() {
    let options = crate::table::Options { forget_rows: 10, ..crate::table::Options::default() };
    let world = World::over(Arc::new(MemoryTables::new()), options);
    let client = world.client();
    client.create("t", false).await;
    for n in 0..95 {
        client.put("t", key("x", integer(n)), Vec::new()).await.expect("put");
    }
    let delete = proto::DeleteTableRequest { table_name: "t".to_owned() };
    let _: proto::DeleteTableResponse = client.call("DeleteTable", &delete).await.expect("deleted");
    tokio::time::sleep(world.service.options.sweep_every).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.service.store.forget_deleted(1_000).await, Ok(0), "nothing is left of it");
}
