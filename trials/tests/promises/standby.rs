//! The policy of 1.0 (S10): one serves and the next stands by, roles swap when it dies, and clients with a static list
//! find who serves with at most one wasted request.

use seqsvr_client::Client;
use seqsvr_core::routing::{Order, Table};
use seqsvr_core::{SectionId, Uid};
use tidemark_trials::chaos::Load;
use tidemark_trials::cluster::{Cluster, Policy, Shape};

use crate::support::{eventually, every_number_held, held, program, shape};

const UID: Uid = Uid::new(42);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_standby_takes_over_and_the_primary_comes_back_as_standby() {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { policy: Policy::Standby, ..shape(2, 1) };
    let mut cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape).await.unwrap();
    let client = cluster.client().unwrap();
    let load = Load::begin(&[cluster.client().unwrap(), cluster.client().unwrap()], 1);
    let mut last = client.next(UID, 1).await.unwrap().last;
    assert_eq!(serving(&client).await.as_deref(), Some("alloc1"), "the first of the list");

    for (dies, takes) in [(0, "alloc2"), (1, "alloc1")] {
        cluster.allocators[dies].kill().await.unwrap();
        eventually("the standby serves", async || {
            let granted = client.next(UID, 1).await.ok()?;
            assert!(granted.first > last, "{} came after {last}", granted.first);
            last = granted.last;
            (serving(&client).await.as_deref() == Some(takes)).then_some(())
        })
        .await;
        // A new client knows the list alone.
        wastes_at_most_one(&cluster.client().unwrap(), UID).await;
        let before = client.route(0).await.unwrap();

        cluster.allocators[dies].start().await.unwrap();
        eventually("the one that died is trusted again", async || {
            let live = cluster.arbiters[0].metric("seqsvr_arbiter_nodes_live").await;
            live.is_ok_and(|live| live == 2.0).then_some(())
        })
        .await;
        let after = client.route(0).await.unwrap();
        assert_eq!(after.version, before.version, "it stands by: nothing has moved back");
        wastes_at_most_one(&cluster.client().unwrap(), UID).await;
    }
    every_number_held(load).await;
    cluster.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_hash_each_slice_goes_to_the_next_in_its_own_order() {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { policy: Policy::StandbyByHash, ..shape(3, 1) };
    let mut cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape).await.unwrap();
    let client = cluster.client().unwrap();
    let load = Load::begin(&[cluster.client().unwrap(), cluster.client().unwrap()], 2);
    let before = client.route(0).await.unwrap();
    assert!(is_ordered(&before, ""), "each slice is with the first of its order");
    let of_the_dead = before.of("alloc1").next().unwrap().sections.start().get();
    let uid = Uid::new(of_the_dead * before.section_size);
    client.next(uid, 1).await.unwrap();

    cluster.allocators[0].kill().await.unwrap();
    let other = cluster.client().unwrap();
    let after = eventually("alloc1 serves nothing any more", async || {
        let table = other.route(0).await.ok()?;
        other.next(uid, 1).await.ok()?;
        (held(&table, "alloc1") == 0).then_some(table)
    })
    .await;
    assert!(
        is_ordered(&after, "alloc1"),
        "its slices are with the next of their orders, the others where they were"
    );
    // It knows the old table alone.
    wastes_at_most_one(&client, uid).await;

    every_number_held(load).await;
    cluster.stop().await.unwrap();
}

/// The node that serves everything.
async fn serving(client: &Client) -> Option<String> {
    let table = client.route(0).await.ok()?;
    let sections = table.sections();
    let all = sections.end().get() - sections.start().get() + 1;
    let only = table.nodes.iter().find(|node| held(&table, &node.name) == all)?;
    Some(only.name.clone())
}

async fn wastes_at_most_one(client: &Client, uid: Uid) {
    let before = client.metrics().retries;
    client.next(uid, 1).await.unwrap();
    let metrics = client.metrics();
    assert!(metrics.retries - before <= 1, "{metrics:?}");
}

/// Whether each section is with the first of its slice's order that is not dead.
fn is_ordered(table: &Table, dead: &str) -> bool {
    let names: Vec<&str> = table.nodes.iter().map(|node| node.name.as_str()).collect();
    let sections = table.sections();
    let last = Order::slice(&sections, *sections.end());
    let orders: Vec<Vec<usize>> = (0..=last).map(|slice| Order::Hash.of(slice, &names)).collect();
    (sections.start().get()..=sections.end().get()).map(SectionId::new).all(|section| {
        let order = &orders[Order::slice(&sections, section) as usize];
        let first = order.iter().find(|&&index| names[index] != dead);
        table.owner(section).map(|owner| owner.node as usize) == first.copied()
    })
}
