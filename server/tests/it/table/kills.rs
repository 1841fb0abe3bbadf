//! The real process, killed while programs put rows: what was answered is there, and no number comes twice.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use prost::Message as _;
use tidemark_table::wire::proto;
use tidemark_test_support::until::until;

use crate::table::raw::{Connection, Request};
use crate::table::wire::{assigned, hex, put, range};
use crate::table::world::World;

const CLIENTS: usize = 8;
const KILLS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_kills_and_no_number_comes_twice() {
    survive(World::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_kills_on_postgres() {
    survive(World::start_on_postgres().await).await;
}

async fn survive(mut world: World) {
    world.make_table("killed").await;
    let answered: Arc<Mutex<Vec<i64>>> = Arc::default();
    let count = || answered.lock().unwrap_or_else(PoisonError::into_inner).len();
    for kill in 1..=KILLS {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (address, answered) = (world.tables.clone(), Arc::clone(&answered));
                let request =
                    Request::new(&world.key, "PutRow", put("killed").encode_to_vec()).signed(&world.key);
                tokio::spawn(async move {
                    let bytes = request.bytes(request.body.len());
                    let mut connection = Connection::open(&address).await;
                    while connection.write(&bytes).await.is_ok() {
                        let Some(answer) = connection.answer().await else { break };
                        assert_eq!(answer.status, 200);
                        let id = assigned(&answer.message::<proto::WriteRowResponse>().row.expect("the key"));
                        answered.lock().unwrap_or_else(PoisonError::into_inner).push(id);
                    }
                })
            })
            .collect();
        let wanted = count() + 150;
        until("rows are answered", async || count() >= wanted).await;
        world = world.kill().await.start_again().await;
        for client in clients {
            // One whose answer was cut off in the middle says so by a panic.
            _ = client.await;
        }
        let stored = ids(&world).await;
        let told: Vec<i64> = answered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let once: BTreeSet<i64> = told.iter().copied().collect();
        assert_eq!(once.len(), told.len(), "a number was given twice");
        assert!(once.is_subset(&stored), "lost: {:?}", once.difference(&stored).collect::<Vec<_>>());
        // Rows under way at a kill may be there.
        assert!(stored.len() <= once.len() + kill * CLIENTS, "{} of {}", stored.len(), once.len());
    }
    // In good order everything is flushed.
    let before = ids(&world).await;
    let world = world.stop().await.start_again().await;
    assert_eq!(ids(&world).await, before);
}

/// The numbers of all rows, each once, in order.
async fn ids(world: &World) -> BTreeSet<i64> {
    let before = hex("0304020000006964050900000000");
    let (mut request, mut all) = (range("killed"), Vec::new());
    loop {
        let page: proto::GetRangeResponse = world.call("GetRange", &request).await.message();
        let rows = page.rows.windows(before.len() + 8).filter(|part| part.starts_with(&before));
        let number = |part: &[u8]| i64::from_le_bytes(part[before.len()..].try_into().expect("8 bytes"));
        all.extend(rows.map(number));
        match page.next_start_primary_key {
            Some(next) => request.inclusive_start_primary_key = Some(next),
            None => break,
        }
    }
    assert!(all.is_sorted(), "rows come in the order of their numbers");
    let once: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!(once.len(), all.len(), "each row once");
    once
}
