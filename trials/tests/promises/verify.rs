//! `seqsvr verify`: the files of all roles beside what the stores have stored.

use tidemark_trials::cluster::Cluster;

use crate::support::{altered, assert_says, program, said, seqsvr, shape};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_of_a_cluster_fit_until_a_store_is_another_and_a_file_says_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape(2, 1)).await.unwrap();
    let names = ["arbiter1", "alloc1", "alloc2", "store1", "store2", "store3", "client"];
    let file = |name: &str| folder.path().join(format!("{name}.toml")).display().to_string();
    let files = names.map(file);
    let verify = async |files: &[String]| {
        let words: Vec<&str> = ["verify"].into_iter().chain(files.iter().map(String::as_str)).collect();
        said(&words).await
    };
    let reported = verify(&files).await;
    assert_eq!(
        (reported.code, reported.out.matches(": fits").count()),
        (Some(0), names.len()),
        "{reported:?}"
    );

    // It lost its disk and was started anew, and nobody has taken it in.
    cluster.stores[2].lose_disk().await.unwrap();
    cluster.stores[2].start_with(&["--init"]).await.unwrap();
    let reported = verify(&files).await;
    assert_eq!(reported.code, Some(1), "{reported:?}");
    assert_says(&reported.out, "store3.toml: ");
    assert_says(&reported.out, "does not hold the files of the member store3");
    assert_says(&reported.out, "is store3, which is not a member of configuration 1");
    assert_says(&reported.out, "no listed address leads to the member store3");
    assert_says(&reported.err, "files do not match what is stored");
    let replace = ["store", "replace", "store3", &cluster.stores[2].url()];
    assert_eq!(seqsvr(&replace, folder.path().join("arbiter1.toml").as_path()).await.code, Some(0));
    assert_eq!(verify(&files).await.code, Some(0));

    let path = |name: &str| folder.path().join(format!("{name}.toml"));
    let wrong = [
        altered(&path("alloc1"), "alloc", &[("[[sets]]\n", "[[sets]]\nstep = 77\n")]),
        altered(&path("client"), "uids", &[("last_uid = 4294967295", "last_uid = 99999")]),
        altered(&path("store1"), "layout", &[("set = 0\n", "set = 0\nstep = 77\n")]),
    ];
    let wrong = wrong.map(|path| path.display().to_string());
    let reported = verify(&[&files[..1], &wrong].concat()).await;
    assert_says(
        &reported.out,
        "uids.toml: first_uid and last_uid are 0 and 99999, but the Set has 0 and 4294967295",
    );
    for file in ["alloc", "layout"] {
        let line = format!("{file}.toml: configuration 2 of the Set has section_size 100000 and step 10000");
        assert_says(&reported.out, &line);
    }
    let alone = verify(&files[3..4]).await;
    assert_says(&alone.out, "name the file of one of its arbiters, too");
    cluster.stop().await.unwrap();
}
