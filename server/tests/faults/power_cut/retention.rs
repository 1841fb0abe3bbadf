//! The power goes while old rows are removed: what is not old is there, and the next start removes the rest.

use std::path::PathBuf;

use tidemark_client::{Draft, Http, RangeQuery, Recipient};
use tidemark_test_support::until::until;
use uuid::Uuid;

use super::{Acknowledged, Disk, PATIENCE, Person, Server, load, log_in, missing, numbers_go_on, sign_up};

const MESSAGES: usize = 600;

/// Rows are kept for a minute, the shortest time that there is.
fn settings() -> [(&'static str, PathBuf); 2] {
    [("TIDEMARK_RETENTION__SECONDS", "60".into()), ("TIDEMARK_STORAGE__FLUSH_ROWS", "100".into())]
}

/// The id of the oldest row.
async fn oldest(http: &Http) -> Option<u64> {
    let first = RangeQuery { limit: Some(1), ..RangeQuery::after(0) };
    http.range(&first).await.expect("a page").rows.first().map(|row| row.message_id)
}

/// Each says something to the next one.
async fn say_around(people: &[Person]) -> Vec<Acknowledged> {
    let mut said = Vec::new();
    for sender in 0..people.len() {
        let receiver = (sender + 1) % people.len();
        let client_id = Uuid::from_u128(u128::MAX - 1 - sender as u128);
        let draft = Draft::text_as(client_id, Recipient::User(people[receiver].0), "young");
        let message_id = people[sender].1.send(&draft).await.expect("sent").message_id;
        said.push(Acknowledged { sender, receiver, draft, message_id });
    }
    said
}

#[tokio::test]
async fn what_is_young_survives_a_power_cut_while_old_rows_are_removed() {
    let disk = Disk::new();
    let server = disk.serve_with(&settings()).await;
    let people = sign_up(&server.http).await;
    let mut answers = load(&people, "");
    let mut old = Vec::new();
    while old.len() < MESSAGES {
        old.push(answers.recv().await.expect("the load goes on"));
    }
    answers.close();
    while let Some(answer) = answers.recv().await {
        old.push(answer);
    }
    let first = oldest(&people[0].1).await;
    until("the first old rows are removed", async || oldest(&people[0].1).await != first).await;
    let young = say_around(&people).await;
    server.kill().await;
    disk.lose_power();

    let server = Server::start(&disk.path("data"), &settings()).await;
    let people = log_in(&server.http).await;
    let all_there = async { while missing(&people, &young).await > 0 {} };
    tokio::time::timeout(PATIENCE, all_there).await.expect("what is young is there");
    until("all old rows are removed", async || missing(&people, &old).await == old.len()).await;
    numbers_go_on(&people, &[old, young].concat()).await;
}
