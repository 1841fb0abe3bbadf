//! Rows with the placeholder over a store that groups commits by itself: they go to it at once, past the writers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedCell};
use tidemark_table::wire::proto;
use tidemark_table::{ErrorCode, TableError};
use tokio::task::JoinHandle;

use super::World;
use super::client::{Client, key, number};
use super::faulty::FaultyTables;
use super::races::{code, ids};
use crate::store::faulty::Fault;
use crate::store::memory::MemoryTables;
use crate::table::Options;

/// A service over a store that follows a script and says that it groups commits.
async fn grouping() -> (World, Client, Arc<FaultyTables>) {
    grouping_with(Options::default()).await
}

async fn grouping_with(options: Options) -> (World, Client, Arc<FaultyTables>) {
    let store = Arc::new(FaultyTables::new(Arc::new(MemoryTables::new())));
    store.groups_commits.store(true, Ordering::Relaxed);
    let world = World::over(Arc::clone(&store) as Arc<_>, options);
    let client = world.client();
    client.create("t", true).await;
    (world, client, store)
}

/// Puts a row. The store holds its commit back until it is released.
async fn stalled(client: &Client, store: &FaultyTables) -> JoinHandle<Result<i64, TableError>> {
    store.script([Fault::Stall]);
    let client = client.clone();
    let row = tokio::spawn(async move { client.append("t", "x").await });
    store.until_stalled(1).await;
    row
}

#[tokio::test]
async fn a_row_does_not_wait_for_the_commit_of_another_one_of_its_key() {
    let (world, client, store) = grouping().await;
    let stalled = stalled(&client, &store).await;
    assert_eq!(client.append("t", "x").await, Ok(1));
    assert_eq!(world.service.depths().sum::<usize>(), 0, "no writer is asked");
    assert!(!stalled.is_finished());
    store.release();
    assert_eq!(stalled.await.expect("no panic"), Ok(2), "numbers grow in the order of the commits");
    assert_eq!(ids(&client, "x", 0).await, [1, 2]);
}

#[tokio::test]
async fn what_the_store_does_not_tell_is_left_open_and_what_it_refuses_is_not_there() {
    let (_world, client, store) = grouping().await;
    store.script([Fault::Refuse, Fault::LoseWrite, Fault::LoseAnswer]);
    assert_eq!(code(client.append("t", "x").await), ErrorCode::ServerBusy);
    assert_eq!(code(client.append("t", "x").await), ErrorCode::Timeout);
    assert_eq!(ids(&client, "x", 0).await, Vec::<i64>::new());
    assert_eq!(code(client.append("t", "x").await), ErrorCode::Timeout);
    assert_eq!(ids(&client, "x", 0).await, [1], "the answer alone was lost");
    assert_eq!(client.append("t", "x").await, Ok(2));
}

#[tokio::test]
async fn a_row_for_a_table_that_another_server_has_made_anew_goes_into_the_new_one() {
    let (_world, client, store) = grouping().await;
    assert_eq!(client.append("t", "x").await, Ok(1));
    let other = World::over(Arc::clone(&store) as Arc<_>, Options::default());
    let request = proto::DeleteTableRequest { table_name: "t".to_owned() };
    let deleted: Result<proto::DeleteTableResponse, _> = other.client().call("DeleteTable", &request).await;
    deleted.expect("deleted");
    other.client().create("t", true).await;
    assert_eq!(client.append("t", "x").await, Ok(1), "the number of another table");
    assert_eq!(ids(&other.client(), "x", 0).await, [1]);
}

#[tokio::test]
async fn a_stop_waits_for_the_rows_that_the_store_has_and_takes_no_others() {
    let (world, client, store) = grouping().await;
    let stalled = stalled(&client, &store).await;
    let stopping = tokio::spawn({
        let service = world.service.clone();
        async move { service.stop().await }
    });
    while !world.service.closing.is_cancelled() {
        tokio::task::yield_now().await;
    }
    assert_eq!(code(client.append("t", "x").await), ErrorCode::ServerBusy);
    assert!(!stopping.is_finished());
    store.release();
    assert_eq!(stalled.await.expect("no panic"), Ok(1));
    stopping.await.expect("no panic");
}

#[tokio::test]
async fn no_more_bytes_wait_for_the_store_than_may() {
    // More than one such request has, and less than two.
    let (_world, client, store) = grouping_with(Options { waiting_bytes: 150, ..Options::default() }).await;
    let stalled = stalled(&client, &store).await;
    assert_eq!(code(client.append("t", "x").await), ErrorCode::ServerBusy);
    store.release();
    assert_eq!(stalled.await.expect("no panic"), Ok(1));
    assert_eq!(client.append("t", "x").await, Ok(2));
}

#[tokio::test]
async fn what_is_wrong_with_a_row_is_told_before_the_store_has_it() {
    let (_world, client, store) = grouping().await;
    let late = ReceivedCell { timestamp: Some(1), ..number("n", 1) };
    let put = client.put("t", key("x", KeyPart::AutoIncrement), vec![late]).await;
    assert_eq!(code(put), ErrorCode::ParameterInvalid);
    assert!(store.commits.lock().expect("no panic").is_empty());
}
