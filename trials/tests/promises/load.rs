//! Load (S11): when the nodes are unevenly busy, sections move to the idle one by their rates, and then everything
//! stays.

use std::time::Duration;

use seqsvr_client::Client;
use seqsvr_core::routing::Table;
use seqsvr_core::{SectionId, Uid};
use tidemark_trials::cluster::{Cluster, Policy, Shape};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::support::{eventually, program, shape};

/// Adjacent sections that are asked for, all of them on one node at first.
const HOT: u32 = 16;
/// Numbers in one call for one of them, ten times a second.
const COUNT: u32 = 5_000;
/// Longer than between two looks of the arbiter at the load.
const TWO_LOOKS: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sections_move_to_the_idle_node_until_both_are_busy_and_then_stay() {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { policy: Policy::Balanced(10_000), ..shape(2, 1) };
    let cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape).await.unwrap();
    let client = cluster.client().unwrap();
    let before = client.route(0).await.unwrap();
    let idle = 1 - hot(&before)[0];
    assert_eq!(moved(&before, idle), 0, "all that will be hot is with one node");
    let mut callers = JoinSet::new();
    for section in 0..HOT {
        callers.spawn(keep_asking(client.clone(), Uid::new(section * before.section_size)));
    }

    let after = eventually("the hot sections are shared", async || {
        let table = client.route(0).await.ok()?;
        (HOT / 3..=HOT - HOT / 3).contains(&moved(&table, idle)).then_some(table)
    })
    .await;
    let since = Instant::now();
    while since.elapsed() < TWO_LOOKS {
        let now = client.route(0).await.unwrap();
        assert_eq!(now.version, after.version, "{} of {HOT} have moved by now", moved(&now, idle));
        sleep(Duration::from_millis(100)).await;
    }

    assert!(callers.try_join_next().is_none(), "a caller was told a number that is not larger, or gave up");
    callers.shutdown().await;
    assert_eq!(client.metrics().regressions, 0);
    cluster.stop().await.unwrap();
}

/// Takes numbers at a steady pace, each larger than those before, wherever they come from.
async fn keep_asking(client: Client, uid: Uid) {
    let mut pace = interval(Duration::from_millis(100));
    let mut last = 0;
    loop {
        pace.tick().await;
        let granted = client.next(uid, COUNT).await.unwrap();
        assert!(granted.first > last, "{} came after {last}", granted.first);
        last = granted.last;
    }
}

/// The node that holds each of the hot sections.
fn hot(table: &Table) -> Vec<u32> {
    (0..HOT).map(|section| table.owner(SectionId::new(section)).unwrap().node).collect()
}

fn moved(table: &Table, to: u32) -> u32 {
    hot(table).into_iter().map(|node| u32::from(node == to)).sum()
}
