//! Sets (S6): ranges of uids, each with stores, arbiter and table of its own. What happens to one touches no other, also where they
//! share AllocSvrs.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use seqsvr::Uid;
use seqsvr::client::{CallError, Client, ClientConfig};
use tidemark_trials::cluster::{Cluster, Shape};
use tokio::time::Instant;

use crate::support::{Running, altered, assert_says, eventually, held, program, refusal, shape};

const LOWER: RangeInclusive<u32> = 0..=2_147_399_999;
const UPPER: RangeInclusive<u32> = 2_147_400_000..=u32::MAX;

/// How long a call for a dead Set tries, and how much later it may end on a busy machine.
const PATIENCE: Duration = Duration::from_millis(400);
const SLACK: Duration = Duration::from_millis(1_600);

fn uids(uids: impl IntoIterator<Item = u32>) -> Vec<Uid> {
    uids.into_iter().map(Uid::new).collect()
}

/// In both Sets, to and fro.
fn mixed() -> Vec<Uid> {
    uids([1, u32::MAX, *LOWER.end(), *UPPER.start(), 1, u32::MAX])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_set_leaves_the_other_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let lower = alone(&folder.path().join("lower"), 0, LOWER).await;
    let mut upper = alone(&folder.path().join("upper"), 1, UPPER).await;
    let config = joined(folder.path(), &[&lower, &upper]);
    let client = Client::new(&ClientConfig::read(&config).unwrap()).unwrap();

    let before = client.next_each(&mixed()).await.unwrap();
    assert!(before[4] > before[0] && before[5] > before[1], "each uid has a line of its own: {before:?}");
    let tables = client.tables();
    assert_eq!(tables.iter().flatten().map(|table| table.uids.clone()).collect::<Vec<_>>(), [LOWER, UPPER]);

    for member in upper.members() {
        member.kill().await.unwrap();
    }
    let hasty = client.within(PATIENCE);
    let began = Instant::now();
    let error = hasty.next_each(&mixed()).await.unwrap_err();
    assert!(began.elapsed() < PATIENCE + SLACK, "{:?}", began.elapsed());
    let served: Vec<bool> = error.numbers.iter().map(Result::is_ok).collect();
    assert_eq!(served, [true, false, true, false, true, false]);
    assert!(error.first.is_retryable(), "{error}");
    assert_says(&error.to_string(), "no answer from http://127.0.0.1");
    // Not even slower: none of these waits for the dead ones.
    let unhurt = client.metrics();
    for _ in 0..200 {
        client.next(Uid::new(1), 1).await.unwrap();
    }
    assert_eq!(client.metrics().retries, unhurt.retries, "no call for the living Set was repeated");
    assert_says(&refusal(1, &["next", "4294967295", "--within", "1"], &config).await, "no answer from");
    lower.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_may_share_allocators_but_no_stores() {
    let folder = tempfile::tempdir().unwrap();
    let sets = vec![(0, LOWER), (7, UPPER)];
    let shape = Shape { stores: 1, sets, ..shape(2, 1) };
    let mut cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape).await.unwrap();
    let client = cluster.client().unwrap();
    let before = client.next_each(&mixed()).await.unwrap();
    for set in [0, 7] {
        let table = client.route(set).await.unwrap();
        assert!(held(&table, "alloc1") > 0 && held(&table, "alloc2") > 0, "both serve Set {set}");
    }

    // One process of the pool is gone: each Set's arbiter moves its own sections.
    cluster.allocators[0].kill().await.unwrap();
    let after = eventually("alloc2 serves both Sets", async || {
        let numbers = client.next_each(&mixed()).await.ok()?;
        let (lower, upper) = (client.route(0).await.ok()?, client.route(7).await.ok()?);
        (held(&lower, "alloc1") + held(&upper, "alloc1") == 0).then_some(numbers)
    })
    .await;
    assert!(after.iter().zip(&before).all(|(after, before)| after > before), "{before:?}, then {after:?}");

    // The stores and the arbiter of one are gone: the other goes on, though the same process serves both.
    cluster.stores[1].kill().await.unwrap();
    cluster.arbiters[1].kill().await.unwrap();
    let hasty = client.within(PATIENCE);
    let error =
        eventually("the lease of Set 7 has run out", async || hasty.next(Uid::new(u32::MAX), 1).await.err())
            .await;
    assert!(matches!(error, CallError::Unavailable(_)), "{error}");
    assert_says(&error.to_string(), "did not serve: it cannot reach the stores, and its lease is over");
    let unhurt = client.metrics();
    for _ in 0..200 {
        client.next(Uid::new(1), 1).await.unwrap();
    }
    assert_eq!(client.metrics().retries, unhurt.retries, "no call for the living Set was repeated");

    wrong_stores_are_refused(&cluster, folder.path()).await;
}

/// A Set 7 over the stores of Set 0 is not served.
async fn wrong_stores_are_refused(cluster: &Cluster, folder: &Path) {
    let (lower, upper) = (cluster.stores[0].url(), cluster.stores[1].url());
    let text = std::fs::read_to_string(folder.join("alloc1.toml")).unwrap();
    let directory = text.lines().find(|line| line.starts_with("directory")).unwrap();
    let elsewhere = format!("directory = {:?}", folder.join("elsewhere"));
    let shared = altered(&folder.join("alloc1.toml"), "shared", &[(&upper, &lower), (directory, &elsewhere)]);
    Running::start("alloc", &shared).says("Set 0").await;
}

/// A Set with everything of its own.
async fn alone(folder: &Path, number: u32, uids: RangeInclusive<u32>) -> Cluster {
    std::fs::create_dir(folder).unwrap();
    let shape = Shape { stores: 1, sets: vec![(number, uids)], ..shape(1, 1) };
    Cluster::start(&program("seqsvr"), folder, &shape).await.unwrap()
}

/// A client configuration of all of these.
fn joined(folder: &Path, clusters: &[&Cluster]) -> std::path::PathBuf {
    let text: String =
        clusters.iter().map(|one| std::fs::read_to_string(one.client_config()).unwrap()).collect();
    let path = folder.join("client.toml");
    std::fs::write(&path, text).unwrap();
    path
}
