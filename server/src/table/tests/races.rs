//! The rules that hold when writers meet, and when the store does not answer as hoped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidemark_table::wire::plain_buffer::KeyPart;
use tidemark_table::wire::proto;
use tidemark_table::{ErrorCode, KeyValue, TableError, Value};

use super::World;
use super::client::{
    Client, add, condition, get_request, ignore, integer, key, number, put_request, range_request, rows, sent,
};
use super::faulty::FaultyTables;
use crate::store::faulty::Fault;
use crate::store::memory::MemoryTables;
use crate::table::writer::MOST_TRIES;
use crate::table::{LONGEST_PAUSE, Options};

fn faulty(options: Options) -> (World, Arc<FaultyTables>) {
    let store = Arc::new(FaultyTables::new(Arc::new(MemoryTables::new())));
    (World::over(Arc::clone(&store) as Arc<_>, options), store)
}

pub(super) async fn ids(client: &Client, group: &str, after: i64) -> Vec<i64> {
    let (start, end) = (key(group, integer(after + 1)), key(group, KeyPart::InfMax));
    let answer: proto::GetRangeResponse =
        client.call("GetRange", &range_request("t", true, start, end)).await.expect("read");
    let id = |key: &[KeyValue]| match key[..] {
        [_, KeyValue::Integer(id)] => id,
        ref other => panic!("{other:?}"),
    };
    rows(&answer.rows).iter().map(|(key, _)| id(key)).collect()
}

pub(super) fn code<T: std::fmt::Debug>(answer: Result<T, TableError>) -> ErrorCode {
    answer.expect_err("refused").code
}

#[tokio::test(start_paused = true)]
async fn a_read_that_takes_too_long_is_ended() {
    let (world, store) = faulty(Options::default());
    let client = world.client();
    client.create("t", true).await;
    client.append("t", "x").await.expect("put");
    store.scans_hang.store(true, Ordering::Relaxed);
    let request = range_request("t", true, key("x", KeyPart::InfMin), key("x", KeyPart::InfMax));
    let began = tokio::time::Instant::now();
    let answer: Result<proto::GetRangeResponse, _> = client.call("GetRange", &request).await;
    assert_eq!(code(answer), ErrorCode::Timeout);
    assert_eq!(began.elapsed(), Options::default().read_within);
    store.scans_hang.store(false, Ordering::Relaxed);
    assert_eq!(ids(&client, "x", 0).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_a_key_by_its_ids_misses_none_that_many_writers_append() {
    let world = World::new();
    let client = world.client();
    client.create("t", true).await;
    let writers = (0..16).map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..20 {
                ids.push(client.append("t", "x").await.expect("put"));
                tokio::task::yield_now().await;
            }
            ids
        })
    });
    let writers: Vec<_> = writers.collect();
    let (mut seen, mut latest) = (Vec::new(), 0);
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        let new = ids(&client, "x", latest).await;
        latest = new.last().copied().unwrap_or(latest);
        seen.extend(new);
        tokio::task::yield_now().await;
    }
    seen.extend(ids(&client, "x", latest).await);
    assert_eq!(seen, (1..=320).collect::<Vec<_>>());
    for writer in writers {
        assert!(writer.await.expect("no panic").is_sorted());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_commit_holds_back_what_comes_after_it_and_then_all_goes_as_one() {
    let (world, store) = faulty(Options { writers: 1, ..Options::default() });
    let client = world.client();
    client.create("t", true).await;
    store.script([Fault::Stall]);
    let append = |client: &Client| {
        let client = client.clone();
        tokio::spawn(async move { client.append("t", "x").await })
    };
    let first = append(&client);
    store.until_stalled(1).await;
    let others: Vec<_> = (0..5).map(|_| append(&client)).collect();
    while world.service.depths().sum::<usize>() < 5 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ids(&client, "x", 0).await, Vec::<i64>::new());
    assert!(others.iter().all(|other| !other.is_finished()));
    store.release();
    assert_eq!(first.await.expect("no panic"), Ok(1));
    for (at, other) in others.into_iter().enumerate() {
        assert_eq!(other.await.expect("no panic"), Ok(at as i64 + 2));
    }
    assert_eq!(store.commits.lock().expect("no panic")[..], [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_commit_does_not_hold_up_what_belongs_to_other_writers() {
    let (world, store) = faulty(Options::default());
    let client = world.client();
    client.create("t", true).await;
    store.script([Fault::Stall]);
    let stalled = tokio::spawn({
        let client = client.clone();
        async move { client.append("t", "x").await }
    });
    store.until_stalled(1).await;
    let groups: Vec<String> = (0..16).map(|group| format!("y{group}")).collect();
    let appends: Vec<_> = groups
        .iter()
        .map(|group| {
            let (client, group) = (client.clone(), group.clone());
            tokio::spawn(async move { client.append("t", &group).await })
        })
        .collect();
    // Those of the stalled writer wait; the first ones of the others are answered.
    while !appends.iter().any(tokio::task::JoinHandle::is_finished) {
        tokio::task::yield_now().await;
    }
    assert!(!stalled.is_finished());
    store.release();
    assert_eq!(stalled.await.expect("no panic"), Ok(1));
    for append in appends {
        assert_eq!(append.await.expect("no panic"), Ok(1));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_not_stored_and_what_is_unknown_may_be() {
    let (world, store) = faulty(Options::default());
    let client = world.client();
    client.create("t", true).await;
    store.script([Fault::Refuse, Fault::LoseWrite, Fault::LoseAnswer]);
    assert_eq!(code(client.append("t", "x").await), ErrorCode::ServerBusy);
    assert_eq!(code(client.append("t", "x").await), ErrorCode::Timeout);
    assert_eq!(ids(&client, "x", 0).await, Vec::<i64>::new());
    assert_eq!(code(client.append("t", "x").await), ErrorCode::Timeout);
    assert_eq!(ids(&client, "x", 0).await, [1]);
    assert_eq!(client.append("t", "x").await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn after_an_unknown_outcome_nothing_is_written_before_the_store_answers() {
    let (world, store) = faulty(Options { writers: 1, ..Options::default() });
    let client = world.client();
    client.create("t", true).await;
    store.is_cut_off.store(true, Ordering::Relaxed);
    store.script([Fault::LoseAnswer]);
    assert_eq!(code(client.append("t", "x").await), ErrorCode::Timeout);
    assert_eq!(code(client.append("t", "x").await), ErrorCode::ServerBusy);
    assert_eq!(store.commits.lock().expect("no panic").len(), 1);
    store.is_cut_off.store(false, Ordering::Relaxed);
    tokio::time::sleep(LONGEST_PAUSE).await;
    assert_eq!(client.append("t", "x").await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn what_another_process_has_changed_is_decided_again() {
    let (world, store) = faulty(Options::default());
    let client = world.client();
    client.create("t", false).await;
    store.script([Fault::Stale, Fault::Stale]);
    client.put("t", key("x", integer(1)), vec![number("n", 1)]).await.expect("put");
    // Two services over one store are two processes: what one has read the other may have changed.
    let other = World::over(Arc::clone(&store) as Arc<_>, Options::default()).client();
    let increment = proto::UpdateRowRequest {
        table_name: "t".to_owned(),
        row_change: Some(sent(key("x", integer(1)), vec![add("n", 1)])),
        condition: condition(proto::RowExistence::ExpectExist),
        ..proto::UpdateRowRequest::default()
    };
    let count = async |client: Client| {
        for _ in 0..50 {
            let done: Result<proto::WriteRowResponse, _> = client.call("UpdateRow", &increment).await;
            done.expect("incremented");
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(count(client.clone()), count(other));
    let cells = client.get("t", key("x", integer(1))).await.expect("a row");
    assert_eq!(cells[0].1, Value::Integer(101));
    store.script([Fault::Stale; MOST_TRIES]);
    assert_eq!(client.refusal("UpdateRow", &increment).await.0, ErrorCode::ServerBusy);
}

#[tokio::test(start_paused = true)]
async fn a_full_lane_refuses_at_once_and_applies_nothing_of_a_batch() {
    let (world, store) = faulty(Options { writers: 1, length: 2, ..Options::default() });
    let client = world.client();
    client.create("t", false).await;
    store.script([Fault::Stall]);
    let put = |id: i64| {
        let client = client.clone();
        tokio::spawn(async move { client.put("t", key("x", integer(id)), Vec::new()).await })
    };
    let mut accepted = vec![put(1)];
    store.until_stalled(1).await;
    accepted.push(put(2));
    while world.service.depths().sum::<usize>() < 1 {
        tokio::task::yield_now().await;
    }
    let row = |group: &str| proto::RowInBatchWrite {
        r#type: Some(proto::WriteType::Put as i32),
        row_change: Some(sent(key(group, integer(3)), Vec::new())),
        condition: ignore(),
        return_content: None,
    };
    let table = proto::TableInBatchWrite { table_name: "t".to_owned(), rows: vec![row("x"), row("y")] };
    let batch = proto::BatchWriteRowRequest { tables: vec![table], ..proto::BatchWriteRowRequest::default() };
    assert_eq!(client.refusal("BatchWriteRow", &batch).await.0, ErrorCode::ServerBusy);
    accepted.push(put(4));
    while world.service.depths().sum::<usize>() < 2 {
        tokio::task::yield_now().await;
    }
    let refused = client.put("t", key("x", integer(5)), Vec::new()).await;
    assert_eq!(code(refused), ErrorCode::ServerBusy);
    store.release();
    for put in accepted {
        put.await.expect("no panic").expect("put");
    }
    assert_eq!(ids(&client, "x", 0).await, [1, 2, 4]);
    assert_eq!(ids(&client, "y", 0).await, Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn more_bytes_than_may_wait_are_refused() {
    let (world, store) = faulty(Options { waiting_bytes: 10_000, ..Options::default() });
    let client = world.client();
    client.create("t", false).await;
    store.script([Fault::Stall]);
    let large = || vec![super::client::put("b", Value::Blob(vec![0; 9_000]))];
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.put("t", key("x", integer(1)), large()).await }
    });
    store.until_stalled(1).await;
    assert_eq!(code(client.put("t", key("y", integer(1)), large()).await), ErrorCode::ServerBusy);
    store.release();
    waiting.await.expect("no panic").expect("put");
    client.put("t", key("y", integer(1)), large()).await.expect("put");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_does_not_stop_what_it_asked_for() {
    let (world, store) = faulty(Options { writers: 1, ..Options::default() });
    let client = world.client();
    client.create("t", false).await;
    store.script([Fault::Stall]);
    let first = tokio::spawn({
        let client = client.clone();
        async move { client.put("t", key("x", integer(1)), Vec::new()).await }
    });
    store.until_stalled(1).await;
    let second = tokio::spawn({
        let client = client.clone();
        async move { client.put("t", key("x", integer(2)), Vec::new()).await }
    });
    while world.service.depths().sum::<usize>() < 1 {
        tokio::task::yield_now().await;
    }
    first.abort();
    second.abort();
    store.release();
    world.service.stop().await;
    assert_eq!(ids(&client, "x", 0).await, [1, 2]);
    assert_eq!(code(client.put("t", key("x", integer(3)), Vec::new()).await), ErrorCode::ServerBusy);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_panics_is_replaced_and_leaves_open_what_it_had() {
    let (world, store) = faulty(Options::default());
    let client = world.client();
    client.create("t", true).await;
    store.script([Fault::Panic, Fault::PanicAfter]);
    assert_eq!(code(client.append("t", "x").await), ErrorCode::Timeout);
    assert_eq!(code(client.append("t", "x").await), ErrorCode::Timeout);
    assert_eq!(client.append("t", "x").await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn an_update_is_not_lost_to_the_sweeper() {
    let (world, store) = faulty(Options { writers: 1, ..Options::default() });
    let client = world.client();
    let mut create = super::client::create_request("t", false);
    let options = proto::Options { time_to_live: Some(86_400), ..proto::Options::default() };
    create.table_options = Some(options);
    let _: proto::CreateTableResponse = client.call("CreateTable", &create).await.expect("made");
    client.put("t", key("x", integer(1)), vec![number("n", 1)]).await.expect("put");
    world.wait(86_400_001);
    // The sweep waits behind the put that gives the row a new life.
    store.script([Fault::Stall, Fault::Stall]);
    let put = put_request("t", key("x", integer(1)), vec![number("n", 2)]);
    let other = tokio::spawn({
        let client = client.clone();
        async move { client.put("t", key("y", integer(1)), Vec::new()).await }
    });
    store.until_stalled(1).await;
    let again = tokio::spawn({
        let client = client.clone();
        async move { client.call::<proto::WriteRowResponse>("PutRow", &put).await }
    });
    while world.service.depths().sum::<usize>() < 1 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Options::default().sweep_every).await;
    while world.service.depths().sum::<usize>() < 2 {
        tokio::task::yield_now().await;
    }
    store.release();
    store.release();
    other.await.expect("no panic").expect("put");
    again.await.expect("no panic").expect("put");
    client.put("t", key("x", integer(2)), Vec::new()).await.expect("after the sweep");
    let read: proto::GetRowResponse =
        client.call("GetRow", &get_request("t", key("x", integer(1)))).await.expect("read");
    assert!(!read.row.is_empty());
}
