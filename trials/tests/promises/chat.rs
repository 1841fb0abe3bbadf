//! The chat server over a cluster: `[sequence] source = "cluster"`.

use seqsvr_core::Uid;
use tidemark_client::{Draft, Http, RangeQuery, Recipient};
use tidemark_trials::cluster::Cluster;
use tidemark_trials::server::Server;

use crate::support::{eventually, program, shape};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_owner_died_the_next_message_is_stored_with_a_larger_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape(2, 1)).await.unwrap();
    let settings = [
        ("TIDEMARK_SEQUENCE__SOURCE", "cluster".to_owned()),
        ("TIDEMARK_SEQUENCE__CLIENT_CONFIG", cluster.client_config().display().to_string()),
    ];
    let data = folder.path().join("chat");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start_with(&settings, 0, &program("tidemark"), &data).await.unwrap();
    let http = server.http().unwrap();
    let sender = http.sign_up("ana", "a password for a trial").await.unwrap();
    let receiver = http.sign_up("ben", "a password for a trial").await.unwrap();
    let (sending, receiving) = (http.with_token(&sender.token), http.with_token(&receiver.token));
    let to = Recipient::User(receiver.uid);
    sending.send(&Draft::text(to, "before")).await.unwrap();

    let table = cluster.client().unwrap().route(0).await.unwrap();
    let owner = table.owner(table.section(Uid::new(receiver.uid))).unwrap();
    let owner = table.nodes[owner.node as usize].name.clone();
    let dies = cluster.allocators.iter_mut().find(|one| one.name() == owner).unwrap();
    dies.kill().await.unwrap();
    // As people's devices do: the same draft, until the server has it.
    let after = Draft::text(to, "after");
    eventually("the next message is accepted", async || sending.send(&after).await.ok()).await;

    // An accepted message may still be owed to the receiver, whose section may get its owner a moment after the sender is answered.
    let both = async || Some(inbox(&receiving).await).filter(|rows| rows.len() >= 2);
    let rows = eventually("the next message is delivered", both).await;
    assert_eq!(rows.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["before", "after"]);
    assert!(rows[1].0 > rows[0].0, "{rows:?}");
    let granted = cluster.client().unwrap().next(Uid::new(receiver.uid), 1).await.unwrap();
    assert!(granted.first > rows[1].0, "the numbers are the cluster's: {granted:?}, {rows:?}");
    assert!(server.stop().await.unwrap().success());
    cluster.stop().await.unwrap();
}

/// Id and text of each message that somebody was sent.
async fn inbox(http: &Http) -> Vec<(u64, String)> {
    let page = http.range(&RangeQuery::after(0)).await.unwrap();
    page.rows.iter().filter_map(|row| Some((row.message_id, row.text()?))).collect()
}
