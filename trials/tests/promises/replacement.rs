//! A store that is gone is replaced by a new one while callers take numbers; and roles that do not belong together are
//! told so.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use seqsvr_client::Client;
use seqsvr_core::Uid;
use tidemark_test_support::ports::free_port;
use tidemark_trials::chaos::Load;
use tidemark_trials::cluster::Cluster;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::{
    RunningRole, altered, assert_says, eventually, every_number_held, program, refusal, seqsvr, shape,
};

/// A store beside those of the cluster. Dropping it kills it.
struct Store {
    _process: Child,
    url: String,
}

/// The file of a store called `name` in the place of `store3`.
fn file_of(folder: &Path, name: &str) -> (PathBuf, String) {
    let port = free_port();
    let text = std::fs::read_to_string(folder.join("store3.toml")).unwrap();
    let listen = text.lines().find(|line| line.starts_with("listen")).unwrap();
    let text = text.replace(listen, &format!("listen = \"127.0.0.1:{port}\"")).replace("store3", name);
    let file = folder.join(format!("{name}.toml"));
    std::fs::write(&file, text).unwrap();
    (file, format!("http://127.0.0.1:{port}"))
}

async fn join(folder: &Path, name: &str) -> Store {
    let (file, url) = file_of(folder, name);
    let mut command = Command::new(program("seqsvr"));
    command.args(["--log", "warn", "store", "--init", "--config"]).arg(file).kill_on_drop(true);
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    assert_eq!(line, format!("listening on {url}"));
    Store { _process: process, url }
}

/// Every AllocSvr has heard of the first configuration.
async fn configured(folder: &Path) {
    eventually("a configuration is stored", async || {
        let logged = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let all = ["alloc1.log", "alloc2.log"].map(logged);
        all.iter().all(|log| log.contains("the stores of the Set are")).then_some(())
    })
    .await;
}

async fn takes_numbers(client: &Client) {
    eventually("numbers are served", async || client.next(Uid::new(42), 1).await.ok()).await;
}

/// A cluster whose configuration is stored, and callers that take numbers from it.
async fn under_load(folder: &Path) -> (Cluster, Client, Load) {
    let cluster = Cluster::start(&program("seqsvr"), folder, &shape(2, 1)).await.unwrap();
    let load = Load::begin(&[cluster.client().unwrap(), cluster.client().unwrap()], 3);
    let client = cluster.client().unwrap();
    takes_numbers(&client).await;
    configured(folder).await;
    (cluster, client, load)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_store_is_replaced_while_callers_take_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let (mut cluster, client, load) = under_load(folder.path()).await;
    let arbiter = folder.path().join("arbiter1.toml");

    cluster.stores[2].kill().await.unwrap();
    let fourth = join(folder.path(), "store4").await;
    let replace = ["store", "replace", "store3", fourth.url.as_str(), "--json"];
    let reported = seqsvr(&replace, &arbiter).await;
    assert_eq!(reported.code, Some(0), "{reported:?}");
    assert_says(&reported.out, "\"configuration\":2");
    assert_says(&reported.out, "store4");
    assert_says(&seqsvr(&replace, &arbiter).await.out, "\"already\":true");

    // The new one has what the old ones confirmed, and votes: with one of them gone it is needed.
    cluster.stores[1].kill().await.unwrap();
    takes_numbers(&client).await;
    // Neither does a replaced one harm that comes back, nor a role that starts with the file from before.
    cluster.stores[2].start().await.unwrap();
    cluster.allocators[0].kill().await.unwrap();
    cluster.allocators[0].start().await.unwrap();
    takes_numbers(&client).await;
    cluster.stores[1].start().await.unwrap();
    takes_numbers(&client).await;

    let says = |store: &str, url: &str| {
        let words = ["store".to_owned(), "replace".to_owned(), store.to_owned(), url.to_owned()];
        let arbiter = arbiter.clone();
        async move { refusal(1, &words.each_ref().map(String::as_str), &arbiter).await }
    };
    let of_another = cluster.stores[1].url();
    assert_says(&says("store1", &of_another).await, "store2, which is no new store");
    let fifth = join(folder.path(), "store5").await;
    assert_says(&says("store3", &fifth.url).await, "store3 is no member of configuration 2");
    let nobody = says("store1", "http://127.0.0.1:1").await;
    assert_says(&nobody, "seqsvr store --config FILE --init");
    every_number_held(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allocator_with_other_sections_serves_nothing_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape(2, 1)).await.unwrap();
    takes_numbers(&cluster.client().unwrap()).await;
    configured(folder.path()).await;
    cluster.allocators[1].stop().await.unwrap();
    let alloc = folder.path().join("alloc2.toml");
    let other = altered(&alloc, "other", &[("[[sets]]\n", "[[sets]]\nstep = 77\n")]);
    let mut running = RunningRole::start("alloc", &other);
    running.says("but this role's file has section_size 100000 and step 77").await;
    cluster.stop().await.unwrap();
}
