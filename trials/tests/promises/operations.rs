//! The commands of operators: `status`, `route`, `add` and `remove` on real processes, while some of them are gone.

use serde_json::Value;
use tidemark_trials::cluster::Cluster;

use crate::support::{assert_says, eventually, program, refusal, seqsvr, shape};

/// The answer to `seqsvr status --json` for the one Set, and the exit code.
async fn status(cluster: &Cluster) -> (Option<i32>, Value) {
    let reported = seqsvr(&["status", "--json"], cluster.client_config()).await;
    let sets: Value = serde_json::from_str(&reported.out).unwrap_or_else(|why| panic!("{why}: {reported:?}"));
    (reported.code, sets[0].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_see_who_serves_in_truth() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape(3, 2)).await.unwrap();
    let config = cluster.client_config().to_owned();

    let (_, whole) = eventually("everything is served", async || {
        let (code, set) = status(&cluster).await;
        (code == Some(0)).then_some((code, set))
    })
    .await;
    assert_eq!(
        (&whole["sections_unserved"], &whole["unserved"]),
        (&Value::from(0), &Value::Array(Vec::new()))
    );
    let all = |key: &str, field: &str| -> Vec<Value> {
        whole[key].as_array().unwrap().iter().map(|one| one[field].clone()).collect()
    };
    assert_eq!(all("allocators", "state"), ["serving", "serving", "serving"]);
    assert_eq!(all("stores", "answers"), [true, true, true]);
    assert_eq!(all("arbiters", "acts").iter().filter(|acts| **acts == true).count(), 1);
    assert!(all("allocators", "lease_remaining_ms").iter().all(|left| left.as_u64().unwrap() > 0));

    // Nobody is there.
    assert_says(
        &refusal(1, &["add", "alloc9", "http://127.0.0.1:1"], &config).await,
        "alloc9 does not answer at http://127.0.0.1:1",
    );
    assert_says(&refusal(1, &["remove", "alloc3"], &config).await, "run `seqsvr drain alloc3` first");
    assert_eq!(seqsvr(&["drain", "alloc3"], &config).await.code, Some(0));
    let removed = seqsvr(&["remove", "alloc3", "--json"], &config).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let table: Value = serde_json::from_str(&removed.out).unwrap();
    assert_eq!(table["nodes"].as_array().unwrap().len(), 2);
    assert_says(&refusal(1, &["remove", "alloc3"], &config).await, "there is no node alloc3");

    // One of two is killed: its sections are told as not served, or have moved by then; `route` tells that it is gone either way.
    cluster.allocators[0].kill().await.unwrap();
    let route = seqsvr(&["route"], &config).await;
    let line = route.out.lines().find(|line| line.contains("alloc1")).unwrap_or_else(|| panic!("{route:?}"));
    assert_says(line, "unreachable");
    let (_, moved) = eventually("the other one serves everything", async || {
        let (code, set) = status(&cluster).await;
        (code == Some(0)).then_some((code, set))
    })
    .await;
    assert_eq!(moved["allocators"][0]["state"], "unreachable");

    // Without a majority of the stores every lease runs out.
    for store in &mut cluster.stores[..2] {
        store.kill().await.unwrap();
    }
    // The arbiter asks the stores now and then, so what it tells of them follows the loss by a moment.
    let alive = cluster.stores[2].url();
    let lost = eventually("the loss is told", async || {
        let (code, set) = status(&cluster).await;
        let stores = set["stores"].as_array()?;
        let reported = set["allocators"][1]["state"] == "no lease"
            && stores.len() == 3
            && stores.iter().all(|store| store["answers"] == (store["addr"] == alive));
        (code == Some(1) && reported).then_some(set)
    })
    .await;
    assert_eq!(lost["served"], false);
    assert_eq!(lost["sections_unserved"], lost["sections"]);
    let route = seqsvr(&["route"], &config).await;
    assert_says(&route.out, "no lease");
    let reported = seqsvr(&["drain", "alloc2", "--within", "2"], &config).await;
    assert_says(&reported.err, "the stores do not answer this arbiter");

    // Text for people, too, with what is wrong in one line.
    let text = seqsvr(&["status"], &config).await;
    assert_eq!(text.code, Some(1));
    assert_says(&text.out, "AllocSvrs");
    assert_says(&text.out, "no lease: the stores do not answer it");
    assert_says(&text.err, "sections of Set 0 are not served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_loss_of_all_stores_a_backup_gives_no_number_a_second_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape(2, 1)).await.unwrap();
    let config = cluster.client_config().to_owned();
    let arbiter = folder.path().join("arbiter1.toml");
    let file = folder.path().join("set0.backup");
    let file = file.to_str().unwrap();
    let number = async |uid: &str| {
        let reported = seqsvr(&["next", uid, "--within", "100"], &config).await;
        reported.out.trim().parse::<u64>().unwrap_or_else(|_| panic!("{reported:?}"))
    };
    number("42").await;
    let backup = seqsvr(&["backup", file], &arbiter).await;
    assert_eq!(backup.code, Some(0), "while the cluster serves: {backup:?}");
    // Handed out since: of a section that the backup knows, and of one that it does not.
    let (known, unknown) = (number("42").await, number("4000000000").await);
    assert_says(&refusal(1, &["restore", file], &arbiter).await, "the stores are in use");
    assert_says(
        &refusal(1, &["restore", file, "--into-used"], &arbiter).await,
        "an arbiter acts on these stores",
    );

    for role in [&mut cluster.arbiters, &mut cluster.allocators] {
        for member in role {
            member.stop().await.unwrap();
        }
    }
    for store in &mut cluster.stores {
        store.lose_disk().await.unwrap();
    }
    let started = cluster.stores.iter_mut().map(|store| store.start_with(&["--init"]));
    futures_util::future::try_join_all(started).await.unwrap();
    let whole = std::fs::read_to_string(file).unwrap();
    let cut = folder.path().join("cut.backup");
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    assert_says(&refusal(1, &["restore", cut.to_str().unwrap()], &arbiter).await, "it is incomplete");
    let restored = seqsvr(&["restore", file, "--ahead", "1000000", "--json"], &arbiter).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    for member in cluster.allocators.iter_mut().chain(&mut cluster.arbiters) {
        member.start().await.unwrap();
    }
    let (after, other) = (number("42").await, number("4000000000").await);
    assert!(after > known && other > unknown && after > 1_000_000 && other > 1_000_000, "{after} {other}");
    cluster.stop().await.unwrap();
}
