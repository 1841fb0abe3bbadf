//! A client in Rust that others wrote (`aliyun-tablestore-rs`, not by the service's makers): it signs by version 2, and asks for split
//! points, which the SDKs for Python and Node.js do not.

use aliyun_tablestore_rs::data::{
    BatchWriteRowRequest, DeleteRowRequest, GetRangeRequest, GetRowRequest, PutRowRequest,
    RowInBatchWriteRowRequest, TableInBatchWriteRowRequest, UpdateRowRequest,
};
use aliyun_tablestore_rs::error::OtsError;
use aliyun_tablestore_rs::model::{ColumnValue, PrimaryKey, PrimaryKeyValue, Row};
use aliyun_tablestore_rs::protos::{Direction, ReturnType};
use aliyun_tablestore_rs::table::{ComputeSplitPointsBySizeRequest, CreateTableRequest};
use aliyun_tablestore_rs::{OtsClient, OtsClientBuilder};

use crate::table::world::World;

const TABLE: &str = "in_rust";

fn client(world: &World) -> OtsClient {
    OtsClientBuilder::new(&world.key.id, &world.key.secret)
        .instance_name(&world.key.instance)
        .endpoint(format!("http://{}", world.tables))
        .build()
}

fn assigned(row: &Row) -> i64 {
    match row.get_primary_key_value("id") {
        Some(PrimaryKeyValue::Integer(id)) => *id,
        other => panic!("{other:?}"),
    }
}

fn placeholder(x: i64) -> Row {
    Row::new()
        .primary_key_column_string("g", "a")
        .primary_key_column_auto_increment("id")
        .column_integer("x", x)
}

fn x(row: &Row) -> Option<i64> {
    match row.get_column_value("x") {
        Some(ColumnValue::Integer(x)) => Some(*x),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_in_rust_does_all_that_it_can_do_with_rows() {
    let world = World::start().await;
    let client = client(&world);
    let table = CreateTableRequest::new(TABLE)
        .primary_key_string("g")
        .primary_key_auto_increment("id")
        .reserved_throughput_read(0)
        .reserved_throughput_write(0)
        .ttl_seconds(-1)
        .max_versions(1);
    client.create_table(table).send().await.expect("made");
    assert_eq!(client.list_table().send().await.expect("listed"), [TABLE]);
    let described = client.describe_table(TABLE).send().await.expect("described");
    assert_eq!(described.table_meta.primary_key.len(), 2);

    let put = PutRowRequest::new(TABLE).row(placeholder(1)).return_type(ReturnType::RtPk);
    let first = assigned(&client.put_row(put).send().await.expect("put").row.expect("the key"));
    let rows =
        (2..=100).map(|x| RowInBatchWriteRowRequest::put_row(placeholder(x)).return_type(ReturnType::RtPk));
    let batch = BatchWriteRowRequest::new().table(TableInBatchWriteRowRequest::new(TABLE).rows(rows));
    let written = client.batch_write_row(batch).send().await.expect("written");
    let ids: Vec<_> =
        written.tables[0].rows.iter().map(|row| assigned(row.row.as_ref().expect("the key"))).collect();
    assert!(ids.len() == 99 && first < ids[0] && ids.is_sorted_by(|a, b| a < b), "{first} {ids:?}");

    // All of them, page by page.
    let (mut start, mut found) = (None, Vec::new());
    loop {
        let mut range = GetRangeRequest::new(TABLE).direction(Direction::Forward).max_versions(1).limit(30);
        range = match start.take() {
            None => range.start_primary_key_column_string("g", "a").start_primary_key_column_inf_min("id"),
            Some(next) => range.start_primary_key_columns(next),
        };
        range = range.end_primary_key_column_string("g", "a").end_primary_key_column_inf_max("id");
        let page = client.get_range(range).send().await.expect("a page");
        found.extend(page.rows.iter().filter_map(x));
        match page.next_start_primary_key {
            Some(next) => start = Some(next),
            None => break,
        }
    }
    assert_eq!(found, (1..=100).collect::<Vec<_>>());

    let row = Row::new().primary_key_column_string("g", "a").primary_key_column_integer("id", first);
    let add = UpdateRowRequest::new(TABLE).row(row.clone().column_to_increse("x", 41));
    let add = add.return_type(ReturnType::RtAfterModify).return_column("x");
    assert_eq!(client.update_row(add).send().await.expect("added").row.as_ref().and_then(x), Some(42));
    let key = |request: GetRowRequest| {
        request.primary_key_column_string("g", "a").primary_key_column_integer("id", first).max_versions(1)
    };
    let got = client.get_row(key(GetRowRequest::new(TABLE))).send().await.expect("got");
    assert_eq!(got.row.as_ref().and_then(x), Some(42));
    let delete = DeleteRowRequest::new(TABLE);
    let delete = delete.primary_key_column_string("g", "a").primary_key_column_integer("id", first);
    client.delete_row(delete).send().await.expect("deleted");
    assert!(client.get_row(key(GetRowRequest::new(TABLE))).send().await.expect("got").row.is_none());

    // In parts of one byte each row is a part, and each but the first begins at a point.
    let split = ComputeSplitPointsBySizeRequest::new(TABLE, 1).split_size_unit_in_byte(1);
    let points = client.compute_split_points_by_size(split).send().await.expect("computed");
    let parts: i64 = points.locations.iter().map(|location| location.repeat).sum();
    assert_eq!(parts, 99);
    let id = |key: &PrimaryKey| key.columns.last().map(|column| column.value.clone());
    let begins: Vec<_> = points.split_points.iter().filter_map(id).collect();
    assert_eq!(begins, ids[1..].iter().map(|id| PrimaryKeyValue::Integer(*id)).collect::<Vec<_>>());
    client.delete_table(TABLE).send().await.expect("deleted");
    match client.describe_table(TABLE).send().await {
        Err(OtsError::ApiError(error)) => assert_eq!(error.code, "OTSObjectNotExist"),
        other => panic!("{other:?}"),
    }
}
