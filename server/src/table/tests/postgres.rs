//! Two servers over one database of PostgreSQL.

use std::sync::Arc;

use tidemark_table::Value;
use tidemark_table::wire::plain_buffer::KeyPart;
use tidemark_table::wire::proto;
use tidemark_test_support::servers::postgres::durable_database;
use uuid::Uuid;

use super::World;
use super::client::{Client, add, condition, ignore, integer, key, number, range_request, rows, sent};
use crate::domain::HistoryId;
use crate::store::postgres::{PgDb, PgOptions, PostgresStore};
use crate::table::Options;

pub(super) async fn open(url: &str) -> Arc<PostgresStore> {
    let db = PgDb::open(url, &PgOptions::default()).await.expect("a database");
    Arc::new(PostgresStore::open(db, HistoryId(Uuid::nil()), false).await.expect("a store"))
}

async fn two() -> [World; 2] {
    let url = durable_database().await;
    let options = Options { table_operations: 1_000, ..Options::default() };
    [World::over(open(&url).await, options), World::over(open(&url).await, options)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_follows_a_key_misses_nothing_that_two_servers_append() {
    let worlds = two().await;
    worlds[0].client().create("t", true).await;
    let writers = (0..8).map(|writer| {
        let client = worlds[writer % 2].client();
        tokio::spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..15 {
                ids.push(client.append("t", "x").await.expect("put"));
            }
            ids
        })
    });
    let writers: Vec<_> = writers.collect();
    let reader = worlds[1].client();
    let (mut seen, mut latest) = (Vec::new(), 0);
    let mut look = async |seen: &mut Vec<i64>| {
        let request = range_request("t", true, key("x", integer(latest + 1)), key("x", KeyPart::InfMax));
        let answer: proto::GetRangeResponse = reader.call("GetRange", &request).await.expect("read");
        for (key, _) in rows(&answer.rows) {
            let tidemark_table::KeyValue::Integer(id) = key[1] else { panic!("{key:?}") };
            seen.push(id);
            latest = id;
        }
    };
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        look(&mut seen).await;
    }
    look(&mut seen).await;
    let mut answered = Vec::new();
    for writer in writers {
        let ids = writer.await.expect("no panic");
        assert!(ids.is_sorted());
        answered.extend(ids);
    }
    answered.sort_unstable();
    assert_eq!((seen.len(), &seen), (120, &answered));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_increment_of_two_servers_is_lost_and_one_of_them_makes_a_row() {
    let worlds = two().await;
    let clients = [worlds[0].client(), worlds[1].client()];
    clients[0].create("t", false).await;
    let put = |client: &Client| {
        let client = client.clone();
        async move {
            let request = proto::PutRowRequest {
                table_name: "t".to_owned(),
                row: Some(sent(key("x", integer(1)), vec![number("n", 0)])),
                condition: condition(proto::RowExistence::ExpectNotExist),
                ..proto::PutRowRequest::default()
            };
            client.call::<proto::WriteRowResponse>("PutRow", &request).await.is_ok()
        }
    };
    let (one, other) = tokio::join!(put(&clients[0]), put(&clients[1]));
    assert!(one != other);
    let count = |client: &Client| {
        let client = client.clone();
        tokio::spawn(async move {
            let request = proto::UpdateRowRequest {
                table_name: "t".to_owned(),
                row_change: Some(sent(key("x", integer(1)), vec![add("n", 1)])),
                condition: ignore(),
                ..proto::UpdateRowRequest::default()
            };
            for _ in 0..20 {
                let done = client.call::<proto::WriteRowResponse>("UpdateRow", &request).await;
                done.expect("incremented");
            }
        })
    };
    for counting in [count(&clients[0]), count(&clients[1]), count(&clients[0]), count(&clients[1])] {
        counting.await.expect("no panic");
    }
    let cells = clients[0].get("t", key("x", integer(1))).await.expect("a row");
    assert_eq!(cells[0].1, Value::Integer(80));
}
