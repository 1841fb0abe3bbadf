//! Sets (S6): ranges of uids, each with stores, arbiter and table of its own. A fault in one touches no other, also where they share
//! AllocSvrs.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use seqsvr_client::{CallError, Client, ClientConfig};
use seqsvr_core::Uid;
use tidemark_trials::cluster::{Cluster, Shape};
use tokio::time::Instant;

use crate::support::{RunningRole, altered, assert_says, eventually, held, program, refusal, seqsvr, shape};

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
    RunningRole::start("alloc", &shared).says("Set 0").await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uids_move_from_one_set_to_another_and_no_number_comes_again() {
    const MOVED: u32 = 2_000_000_000;
    let folder = tempfile::tempdir().unwrap();
    let mut lower = alone(&folder.path().join("lower"), 0, LOWER).await;
    let mut upper = alone(&folder.path().join("upper"), 1, UPPER).await;
    let old = joined(folder.path(), &[&lower, &upper]);
    let changes = [
        ("last_uid = 2147399999", "last_uid = 1999999999"),
        ("first_uid = 2147400000", "first_uid = 2000000000"),
    ];
    let new = altered(&old, "new", &changes);
    let client = |path: &Path| Client::new(&ClientConfig::read(path).unwrap()).unwrap();
    let (of_old_map, of_new_map) = (client(&old), client(&new));
    let (kept, moved, others) = (1, MOVED + 5, u32::MAX);
    let before = of_old_map.next_each(&uids([kept, moved, others])).await.unwrap();
    // Two maps, but only one Set serves it.
    let wrong = of_new_map.next(Uid::new(moved), 1).await.unwrap_err();
    assert_says(&wrong.to_string(), "is outside Set 1, which has the uids 2147400000 to 4294967295");

    let arbiter = |set: &str| folder.path().join(set).join("arbiter1.toml");
    for set in ["lower", "upper"] {
        let log = folder.path().join(set).join("alloc1.log");
        eventually("a configuration is stored", async || {
            std::fs::read_to_string(&log)
                .is_ok_and(|log| log.contains("the stores of the Set are"))
                .then_some(())
        })
        .await;
    }
    let file = folder.path().join("moved.uids").display().to_string();
    let words = ["backup", file.as_str(), "--uids", "2000000000-2147399999", "--to", "1"];
    assert_says(
        &refusal(1, &words, &arbiter("lower")).await,
        "stop all arbiters and AllocSvrs of the Set first",
    );
    for set in [&mut lower, &mut upper] {
        for member in set.arbiters.iter_mut().chain(&mut set.allocators) {
            member.stop().await.unwrap();
        }
    }
    let given = eventually("the arbiter is silent for long enough", async || {
        let given = seqsvr(&words, &arbiter("lower")).await;
        (given.code == Some(0)).then_some(given)
    })
    .await;
    assert_says(&given.out, "which Set 0 no longer has");
    let restore = ["restore", file.as_str()];
    assert_says(&refusal(2, &restore, &arbiter("lower")).await, "is for Set 1 of cluster");
    let taken = eventually("the other one is, too", async || {
        let taken = seqsvr(&restore, &arbiter("upper")).await;
        (taken.code == Some(0)).then_some(taken)
    })
    .await;
    assert_says(&taken.out, "uids 2000000000 to 2147399999 are added: Set 1");
    assert_says(&refusal(1, &restore, &arbiter("upper")).await, "the file was used before");
    for (set, (from, to)) in [("lower", changes[0]), ("upper", changes[1])] {
        let text = std::fs::read_to_string(arbiter(set)).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(arbiter(set), text.replace(from, to)).unwrap();
    }
    for set in [&mut lower, &mut upper] {
        for member in set.allocators.iter_mut().chain(&mut set.arbiters) {
            member.start().await.unwrap();
        }
    }
    let granted =
        eventually("Set 1 serves them", async || of_new_map.next(Uid::new(moved), 1).await.ok()).await;
    assert!(granted.first > before[1], "{} after {before:?}", granted.first);
    let why = of_old_map.next(Uid::new(moved), 1).await.unwrap_err().to_string();
    assert_says(&why, "is outside Set 0, which has the uids 0 to 1999999999; correct the Sets of the caller");
    let all = async || of_new_map.next_each(&uids([kept, moved, others])).await.ok();
    let now = eventually("both Sets serve", all).await;
    assert!(now[0] > before[0] && now[1] > granted.last && now[2] > before[2], "{now:?}");
    // An arbiter that starts with the file from before is told what to set.
    let wrong = altered(&arbiter("lower"), "wrong", &[(changes[0].1, changes[0].0)]);
    lower.arbiters[0].stop().await.unwrap();
    let mut running = RunningRole::start("arbiter", &wrong);
    running.says("correct number, first_uid, last_uid and section_size in [set]").await;
    lower.stop().await.unwrap();
    upper.stop().await.unwrap();
}
