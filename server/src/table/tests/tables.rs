//! Tables are made, told, changed and deleted.

use std::sync::Arc;

use tidemark_table::wire::plain_buffer::KeyPart;
use tidemark_table::wire::proto;
use tidemark_table::{ErrorCode, Value};

use super::client::{Client, condition, create_request, integer, key, number, put, sent};
use super::{BEGIN, World};
use crate::store::memory::MemoryTables;
use crate::table::Options;

fn named(table_name: &str) -> proto::DescribeTableRequest {
    proto::DescribeTableRequest { table_name: table_name.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_table_is_made_told_listed_and_deleted() {
    let world = World::new();
    let client = world.client();
    client.create("b", true).await;
    client.create("a", false).await;
    let list: proto::ListTableResponse =
        client.call("ListTable", &proto::ListTableRequest {}).await.expect("listed");
    assert_eq!(list.table_names, ["a", "b"]);
    let told: proto::DescribeTableResponse = client.call("DescribeTable", &named("b")).await.expect("told");
    assert_eq!(told.table_meta.key_columns, create_request("b", true).table_meta.expect("meta").key_columns);
    assert_eq!((told.table_options.max_versions, told.table_options.time_to_live), (Some(1), Some(-1)));
    assert_eq!(told.table_options.allow_update, Some(true));
    assert_eq!((told.table_status, told.creation_time), (1, Some(BEGIN * 1_000)));
    let _: proto::DeleteTableResponse = client
        .call("DeleteTable", &proto::DeleteTableRequest { table_name: "b".to_owned() })
        .await
        .expect("deleted");
    let missing = (ErrorCode::ObjectNotExist, "Requested table does not exist.".to_owned());
    assert_eq!(client.refusal("DescribeTable", &named("b")).await, missing);
    assert_eq!(client.refusal("DeleteTable", &named("b")).await, missing);
    let put = client.put("b", key("x", KeyPart::AutoIncrement), Vec::new()).await.expect_err("refused");
    assert_eq!((put.code, put.message), missing);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_is_made_again_is_another_one() {
    let world = World::new();
    let client = world.client();
    client.create("t", true).await;
    assert_eq!(client.append("t", "x").await, Ok(1));
    let delete = proto::DeleteTableRequest { table_name: "t".to_owned() };
    let _: proto::DeleteTableResponse = client.call("DeleteTable", &delete).await.expect("deleted");
    client.create("t", true).await;
    assert_eq!(client.get("t", key("x", integer(1))).await, None);
    assert_eq!(client.append("t", "x").await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn instances_do_not_see_each_other() {
    let world = World::new();
    world.client().create("t", false).await;
    let other = Client::of(&world.service, "other");
    assert_eq!(other.refusal("DescribeTable", &named("t")).await.0, ErrorCode::ObjectNotExist);
    other.create("t", false).await;
    other.put("t", key("x", integer(1)), vec![number("n", 1)]).await.expect("put");
    assert_eq!(world.client().get("t", key("x", integer(1))).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_exists_or_is_one_too_many_is_refused() {
    let options = Options { tables: 2, table_operations: 100, ..Options::default() };
    let world = World::over(Arc::new(MemoryTables::new()), options);
    let client = world.client();
    client.create("a", false).await;
    client.create("b", false).await;
    assert_eq!(
        client.refusal("CreateTable", &create_request("a", true)).await,
        (ErrorCode::ObjectAlreadyExist, "Requested table already exists.".to_owned())
    );
    assert_eq!(
        client.refusal("CreateTable", &create_request("c", true)).await,
        (ErrorCode::QuotaExhausted, "Number of tables exceeds the quota:2.".to_owned())
    );
    assert_eq!(
        client.refusal("CreateTable", &create_request("inbox", false)).await.0,
        ErrorCode::ParameterInvalid
    );
}

#[tokio::test(start_paused = true)]
async fn options_change_at_once_and_the_others_stay() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    let versions = async |timestamp: i64| {
        let mut cell = number("n", timestamp);
        cell.timestamp = Some(BEGIN + timestamp);
        let update = proto::UpdateRowRequest {
            table_name: "t".to_owned(),
            row_change: Some(sent(key("x", integer(1)), vec![cell])),
            condition: super::client::ignore(),
            ..proto::UpdateRowRequest::default()
        };
        let _: proto::WriteRowResponse = client.call("UpdateRow", &update).await.expect("updated");
        client.get("t", key("x", integer(1))).await.expect("a row").len()
    };
    assert_eq!((versions(1).await, versions(2).await), (1, 1));
    let change = proto::UpdateTableRequest {
        table_name: "t".to_owned(),
        table_options: Some(proto::Options { max_versions: Some(3), ..proto::Options::default() }),
        ..proto::UpdateTableRequest::default()
    };
    let answer: proto::UpdateTableResponse = client.call("UpdateTable", &change).await.expect("changed");
    assert_eq!((answer.table_options.max_versions, answer.table_options.time_to_live), (Some(3), Some(-1)));
    assert_eq!((versions(3).await, versions(4).await, versions(5).await), (2, 3, 3));
}

#[tokio::test(start_paused = true)]
async fn updates_of_rows_are_switched_off_and_on_again() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    let allow = |allow_update| proto::UpdateTableRequest {
        table_name: "t".to_owned(),
        table_options: Some(proto::Options { allow_update: Some(allow_update), ..proto::Options::default() }),
        ..proto::UpdateTableRequest::default()
    };
    let update = proto::UpdateRowRequest {
        table_name: "t".to_owned(),
        row_change: Some(sent(key("x", integer(1)), vec![number("n", 1)])),
        condition: condition(proto::RowExistence::ExpectExist),
        ..proto::UpdateRowRequest::default()
    };
    let absent = (ErrorCode::ConditionCheckFail, "Condition check failed.".to_owned());
    assert_eq!(client.refusal("UpdateRow", &update).await, absent);
    let off: proto::UpdateTableResponse = client.call("UpdateTable", &allow(false)).await.expect("changed");
    assert_eq!(off.table_options.allow_update, Some(false));
    let never = (ErrorCode::ParameterInvalid, "Update operation is not allowed in this table".to_owned());
    assert_eq!(client.refusal("UpdateRow", &update).await, never);
    client.put("t", key("x", integer(1)), Vec::new()).await.expect("put");
    assert_eq!(client.refusal("UpdateRow", &update).await, never);
    let on: proto::UpdateTableResponse = client.call("UpdateTable", &allow(true)).await.expect("changed");
    assert_eq!(on.table_options.allow_update, Some(true));
    let _: proto::WriteRowResponse = client.call("UpdateRow", &update).await.expect("updated");
    let nowhere = proto::UpdateTableRequest { table_name: "nowhere".to_owned(), ..allow(true) };
    let missing = (ErrorCode::ObjectNotExist, "Requested table does not exist.".to_owned());
    assert_eq!(client.refusal("UpdateTable", &nowhere).await, missing);
}

#[tokio::test(start_paused = true)]
async fn operations_on_tables_are_ten_a_second_and_those_on_rows_are_not_counted() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    for _ in 0..9 {
        let _: proto::DescribeTableResponse = client.call("DescribeTable", &named("t")).await.expect("told");
    }
    assert_eq!(
        client.refusal("DescribeTable", &named("t")).await,
        (ErrorCode::QuotaExhausted, "Too frequent table operations.".to_owned())
    );
    client.put("t", key("x", integer(1)), Vec::new()).await.expect("put");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_only_reads_changes_nothing() {
    let world = World::new();
    world.client().create("t", false).await;
    let mut reader = world.client();
    reader.caller.may_write = false;
    let refused = reader.put("t", key("x", integer(1)), Vec::new()).await.expect_err("refused");
    assert_eq!((refused.code, refused.code.status()), (ErrorCode::NoPermissionAccess, 403));
    assert_eq!(reader.get("t", key("x", integer(1))).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_carried_out_is_refused_by_name() {
    let world = World::new();
    let refused = world.client().refusal("CreateSearchIndex", &proto::ListTableRequest {}).await;
    assert_eq!(
        refused,
        (ErrorCode::UnsupportedOperation, "Unsupported operation: CreateSearchIndex.".to_owned())
    );
    let none: proto::ListSearchIndexResponse = world
        .client()
        .call("ListSearchIndex", &proto::ListSearchIndexRequest::default())
        .await
        .expect("listed");
    assert!(none.indexes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn split_points_lie_between_parts_of_the_size_asked_for() {
    let world = World::new();
    let client = world.client();
    client.create("t", false).await;
    for id in 0..10 {
        client.put("t", key("x", integer(id)), vec![number("n", 1)]).await.expect("put");
    }
    assert_eq!(split_points(&client, 1, None).await, 9);
    assert_eq!(split_points(&client, 1 << 20, None).await, 0);
}

/// The store gives three of these rows at once.
#[tokio::test(start_paused = true)]
async fn split_points_are_no_more_than_asked_for_and_lie_in_what_is_looked_at() {
    for (split_bytes, found) in [(Options::default().split_bytes, 5), (1, 2)] {
        let options = Options { split_bytes, ..Options::default() };
        let world = World::over(Arc::new(MemoryTables::new()), options);
        let client = world.client();
        client.create("t", false).await;
        for id in 0..6 {
            let blob = put("b", Value::Blob(vec![0; 1 << 20]));
            client.put("t", key("x", integer(id)), vec![blob]).await.expect("put");
        }
        assert_eq!(split_points(&client, 1, None).await, found);
        assert_eq!(split_points(&client, 1, Some(1)).await, 1);
    }
}

/// How many points there are between parts of so many bytes.
async fn split_points(client: &Client, bytes: i64, split_point_limit: Option<i32>) -> usize {
    let request = proto::ComputeSplitPointsBySizeRequest {
        table_name: "t".to_owned(),
        split_size: Some(bytes),
        split_size_unit: Some(1),
        split_point_limit,
    };
    let answer: proto::ComputeSplitPointsBySizeResponse =
        client.call("ComputeSplitPointsBySize", &request).await.expect("computed");
    let parts: i64 = answer.locations.iter().map(|location| location.repeat).sum();
    assert_eq!(parts, answer.split_points.len() as i64 + 1);
    answer.split_points.len()
}
