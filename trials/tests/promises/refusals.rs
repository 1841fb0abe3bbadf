//! Bad input: what people type or configure wrongly is refused by the real commands in one line that says what to do.

use std::path::Path;

use tidemark_trials::cluster::Cluster;

use crate::support::{Changes, altered, assert_says, program, refusal, seqsvr, shape};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_calls_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape(2, 1)).await.unwrap();
    let config = cluster.client_config();
    let calls: [(i32, &[&str], &str); 8] = [
        (2, &["next", "42", "--count", "0"], "asked for 0; ask for 1 to 100000 at a time"),
        (2, &["next", "42", "--count", "100001"], "asked for 100001; ask for 1 to 100000 at a time"),
        (2, &["next", "4294967296"], "4294967296"),
        (1, &["drain", "alloc9"], "alloc9"),
        (1, &["add", "alloc9"], "give its address"),
        (1, &["add", "alloc9", "alloc9:7101"], "alloc9:7101 is invalid: write http://host:port"),
        (1, &["drain", "alloc1", "--set", "7"], "Set 7 is not configured; there are 0"),
        (1, &["route", "--set", "7"], "Set 7 is not configured; there are 0"),
    ];
    for (code, words, why) in calls {
        assert_says(&refusal(code, words, config).await, why);
    }

    let narrow = altered(config, "narrow", &[("last_uid = 4294967295", "last_uid = 99999")]);
    assert_says(
        &refusal(2, &["next", "100000"], &narrow).await,
        "uid 100000 is in none of the configured Sets",
    );
    let served = seqsvr(&["next", "42", "--count", "100000"], config).await;
    assert_eq!(served.code, Some(0), "the most is not too much: {served:?}");

    let drained = seqsvr(&["drain", "alloc1"], config).await;
    assert_eq!(drained.code, Some(0), "{drained:?}");
    assert_says(&refusal(1, &["drain", "alloc2"], config).await, "alloc2");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn wrong_configurations_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing is started: the files are those of a cluster that would work.
    Cluster::plan(&program("seqsvr"), folder.path(), &shape(1, 1)).await.unwrap();
    let file = |name: &str| folder.path().join(format!("{name}.toml"));
    let (store, alloc, arbiter, client) = (file("store1"), file("alloc1"), file("arbiter1"), file("client"));
    let another = "\n[[sets]]\nnumber = 1\nfirst_uid = 4000000000\nallocators = [\"http://127.0.0.1:1\"]\n";
    let same = another.replace("number = 1", "number = 0").replace("first_uid", "last_uid");
    let set = "[[sets]]\nnumber = 0\n";
    let roles: [(&str, &Path, Changes<'_>, &str); 10] = [
        ("alloc", &alloc, &[(set, "[[sets]]\nnumber = 0\nlease_ms = 1500\n")], "unknown field"),
        (
            "arbiter",
            &arbiter,
            &[("lease_ms = 1500", "lease_ms = 99")],
            "lease_ms = 99 is not between 100 and 60000",
        ),
        (
            "alloc",
            &alloc,
            &[("patience_ms = 375\n", "patience_ms = 375\nwrite = 1\n")],
            "W must be larger than N / 2",
        ),
        ("alloc", &alloc, &[(set, "[[sets]]\nnumber = 0\nstep = 1\n")], "step"),
        (
            "store",
            &store,
            &[("set = 0\n", "set = 0\nsection_size = 5\n")],
            "section_size = 5 is wrong: set 10000",
        ),
        ("store", &store, &[("set = 0\n", "set = 0\nstep = 1\n")], "step = 1 is wrong: set 2 or more"),
        ("arbiter", &arbiter, &[("first_uid = 0", "first_uid = 5")], "do not lie on borders of sections"),
        (
            "arbiter",
            &arbiter,
            &[("dead_after = 4", "dead_after = 0")],
            "timing.dead_after = 0 is not between 1 and 1000",
        ),
        ("arbiter", &arbiter, &[("\"alloc1\"", "\"Alloc 1\"")], "Alloc 1"),
        ("arbiter", &arbiter, &[("number = 0\npolicy", "number = 256\npolicy")], "256"),
    ];
    for (role, original, changes, why) in roles {
        let config = altered(original, "wrong", changes);
        assert_says(&refusal(2, &[role], &config).await, why);
    }
    let clients = [
        (another.to_owned(), "Sets 0 and 1 overlap: both hold uid 4000000000"),
        (same, "Sets 0 and 0 overlap: both have the number 0"),
    ];
    for (more, why) in clients {
        let text = std::fs::read_to_string(&client).unwrap() + &more;
        std::fs::write(file("wrong"), text).unwrap();
        assert_says(&refusal(2, &["next", "42"], &file("wrong")).await, why);
    }
    let none = altered(&client, "wrong", &[("last_uid = 4294967295", "last_uid = 7\nfirst = 9")]);
    assert_says(&refusal(2, &["next", "42"], &none).await, "unknown field");
    assert_says(&refusal(2, &["route"], &file("absent")).await, "cannot read the client configuration");
}
