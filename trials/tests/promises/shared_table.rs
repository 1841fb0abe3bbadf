//! One routing table for all processes of a machine (S12): what one client process has learnt, the others use without
//! asking.

use seqsvr_client::{Client, ClientConfig};
use seqsvr_core::Uid;
use tidemark_trials::cluster::Cluster;

use crate::support::{altered, assert_says, program, refusal, seqsvr, shape};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_process_learns_the_others_use_without_asking() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape(2, 1)).await.unwrap();
    let alone = cluster.client_config();
    let sharing = format!("cache_dir = {:?}\n\n[[sets]]", folder.path().join("shared"));
    let config = altered(alone, "sharing", &[("\n[[sets]]", &sharing)]);
    let client = Client::new(&ClientConfig::read(&config).unwrap()).unwrap();
    let table = client.route(0).await.unwrap();
    let uid = Uid::new(table.of("alloc1").next().unwrap().sections.start().get() * table.section_size);
    let word = uid.to_string();
    let first = client.next(uid, 1).await.unwrap();

    // The table changes; this process hears nothing of it.
    let drained = seqsvr(&["drain", "alloc1"], alone).await;
    assert_eq!(drained.code, Some(0), "{drained:?}");
    // Another process asks alloc1, since it finds the old table in the file, and learns the new one.
    let other = seqsvr(&["next", &word], &config).await;
    let other: u64 = other.out.trim().parse().unwrap_or_else(|_| panic!("no number: {other:?}"));
    assert!(other > first.last);

    let before = client.metrics();
    let second = client.next(uid, 1).await.unwrap();
    assert!(second.first > other);
    let after = client.metrics();
    assert_eq!(after.tables, before.tables + 1, "it has the new table: {after:?}");
    assert_eq!(
        (after.not_owner, after.retries),
        (before.not_owner, before.retries),
        "and asked nobody in vain"
    );
    let known = client.tables()[0].clone().unwrap();
    assert_eq!(known.version, client.route(0).await.unwrap().version);

    // One that can reach nobody whom its own configuration names.
    let named: Vec<String> = cluster.allocators.iter().map(|one| format!("{:?}", one.url())).collect();
    let named = format!("allocators = [{}]", named.join(", "));
    let nobody: [(&str, &str); 1] = [(&named, "allocators = [\"http://127.0.0.1:1\"]")];
    let lost = refusal(1, &["next", &word, "--within", "1"], &altered(alone, "lost", &nobody)).await;
    assert_says(&lost, "no answer from http://127.0.0.1:1");
    let found = seqsvr(&["next", &word], &altered(&config, "found", &nobody)).await;
    assert_eq!(found.code, Some(0), "it goes by the file: {found:?}");
    cluster.stop().await.unwrap();
}
