//! A key waits for the bytes that it reads and writes, in every operation.

use std::sync::Arc;
use std::time::Duration;

use tidemark_table::Value;
use tidemark_table::wire::plain_buffer::KeyPart;
use tidemark_table::wire::proto;
use tokio::time::Instant;

use super::client::{Client, ignore, integer, key, number, put, range_request, sent};
use super::{Options, World};
use crate::store::memory::MemoryTables;

const KIB: usize = 1 << 10;

/// How long the next request of the client's key waits.
async fn owes(client: &Client) -> Duration {
    let began = Instant::now();
    let turn = client.service.enter(&client.caller.key, "PutRow", 0).await;
    drop(turn.expect("in turn"));
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_what_each_operation_has_read_and_written() {
    let options = Options { kib_a_second: 100, ..Options::default() };
    let world = World::over(Arc::new(MemoryTables::new()), options);
    let with_key = |name: &str| {
        let mut client = world.client();
        name.clone_into(&mut client.caller.key);
        client
    };
    let owner = with_key("owner");
    owner.create("t", false).await;
    for id in 0..3 {
        let cells = vec![put("text", Value::Blob(vec![7; 150 * KIB]))];
        owner.put("t", key("x", integer(id)), cells).await.expect("put");
    }
    let seconds = |owed: Duration| owed.as_secs_f64().round();

    let client = with_key("nothing");
    client.get("t", key("x", integer(9))).await;
    assert_eq!(owes(&client).await, Duration::ZERO);

    let client = with_key("GetRow");
    client.get("t", key("x", integer(0))).await;
    client.get("t", key("x", integer(1))).await;
    assert_eq!(seconds(owes(&client).await), 2.0, "300 KiB, of which 100 are free");

    let client = with_key("GetRange");
    let (start, end) = (key("x", KeyPart::InfMin), key("x", KeyPart::InfMax));
    let range = range_request("t", true, start, end);
    client.call::<proto::GetRangeResponse>("GetRange", &range).await.expect("read");
    assert_eq!(seconds(owes(&client).await), 4.0, "450 KiB");

    let client = with_key("BatchGetRow");
    let keys = (0..3).map(|id| sent(key("x", integer(id)), Vec::new())).collect();
    let of_table = proto::TableInBatchGet {
        table_name: "t".to_owned(),
        primary_keys: keys,
        max_versions: Some(1),
        ..Default::default()
    };
    let batch = proto::BatchGetRowRequest { tables: vec![of_table] };
    client.call::<proto::BatchGetRowResponse>("BatchGetRow", &batch).await.expect("read");
    assert_eq!(seconds(owes(&client).await), 4.0, "450 KiB");

    let client = with_key("UpdateRow");
    let update = proto::UpdateRowRequest {
        table_name: "t".to_owned(),
        row_change: Some(sent(key("x", integer(0)), vec![number("n", 1)])),
        condition: ignore(),
        ..proto::UpdateRowRequest::default()
    };
    client.call::<proto::WriteRowResponse>("UpdateRow", &update).await.expect("updated");
    assert_eq!(seconds(owes(&client).await), 2.0, "150 KiB were read, and written");

    let client = with_key("PutRow");
    let turn = client.service.enter("PutRow", "PutRow", 300 * KIB).await;
    drop(turn.expect("at once, since nothing is owed"));
    assert_eq!(seconds(owes(&client).await), 0.0, "its own bytes were waited for by itself");
}
