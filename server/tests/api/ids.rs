//! Who assigns the ids of messages: the sequence service or the database; what an installation was made with is kept to.

use std::path::Path;

use serde_json::json;
use tidemark::boot;
use tidemark::config::MessageIdsSetting;
use tidemark::domain::Clock;
use tokio::process::Command;

use crate::support::{TestApp, message, texts};

async fn start(ids: MessageIdsSetting) -> TestApp {
    TestApp::start_with(|config| config.messages.ids = ids).await
}

/// `tidemark ids` over the data directory of a stopped server.
async fn change(app: &mut TestApp, to: MessageIdsSetting, name: &str) {
    app.stop().await;
    app.config.messages.ids = to;
    let refused = boot::start(&app.config, Clock::system()).await.err().expect("refused").to_string();
    assert!(refused.contains(&format!("or run `tidemark ids {name}` once")), "{refused}");
    let (code, said) = run(&app.config.storage.data_dir, &["ids", name]).await;
    assert_eq!(code, 0, "{said}");
    app.start_again().await;
}

async fn run(data: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    let output = command.args(arguments).arg("--data-dir").arg(data).output().await.expect("run");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn the_database_assigns_ids_one_after_the_other_and_no_sequence_is_served() {
    let mut app = start(MessageIdsSetting::Store).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    assert_eq!(app.say(&ann, &bob, 1, "one").await, 1);
    assert_eq!(app.say(&ann, &bob, 2, "two").await, 2);
    let again = app.post(&ann, "/api/v1/messages", message(1, json!({"user": bob.uid}), "one")).await.ok(200);
    assert_eq!(again["message_id"], 1, "the first answer");
    app.restart().await;
    assert_eq!(app.say(&bob, &ann, 3, "three").await, 3, "without a gap");
    assert_eq!(texts(&app.rows(&ann).await), ["one", "two", "three"]);
    let metrics = app.send(app.request(reqwest::Method::GET, "/metrics")).await.text;
    assert!(!metrics.contains("seqsvr_") && metrics.contains("tidemark_messages_total"), "{metrics}");
    assert!(!app.config.storage.data_dir.join("sequence.db").exists());
}

#[tokio::test]
async fn ids_grow_when_somebody_else_assigns_them() {
    let mut app = start(MessageIdsSetting::Auto).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let mut ids = vec![app.say(&ann, &bob, 1, "one").await];
    app.restart().await;
    ids.push(app.say(&ann, &bob, 2, "two").await);
    assert!(ids[1] > 2, "a sequence goes on at its ceiling: {ids:?}");
    change(&mut app, MessageIdsSetting::Store, "store").await;
    ids.push(app.say(&ann, &bob, 3, "three").await);
    assert_eq!(ids[2], ids[1] + 1, "the next one");
    change(&mut app, MessageIdsSetting::Seqsvr, "seqsvr").await;
    ids.push(app.say(&ann, &bob, 4, "four").await);
    assert!(ids.is_sorted(), "{ids:?}");
    for who in [&ann, &bob] {
        let rows = app.rows(who).await;
        let rows: Vec<u64> = rows.iter().filter_map(|row| row["message_id"].as_u64()).collect();
        assert!(rows.is_sorted() && rows.len() == ids.len(), "{rows:?}");
    }
}

#[tokio::test]
async fn what_needs_sequences_says_so_where_there_are_none() {
    let mut app = start(MessageIdsSetting::Store).await;
    app.stop().await;
    let data = app.config.storage.data_dir.clone();
    let (code, said) = run(&data, &["restored"]).await;
    assert!(code == 1 && said.contains("come from \"store\" in this installation"), "{said}");
    let file = data.with_file_name("store.toml");
    std::fs::write(&file, "[messages]\nids = \"store\"\n").expect("written");
    let (code, said) = run(&data, &["restored", "--config", &file.display().to_string()]).await;
    assert!(code == 1 && said.contains("run `tidemark ids seqsvr`"), "{said}");
    app.start_again().await;
}
