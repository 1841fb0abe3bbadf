//! The assigner of message ids, the sequence service or the database: an installation keeps to the one that it was made with.

use std::path::Path;

use rusqlite::Connection;
use serde_json::json;
use tidemark::boot;
use tidemark::config::MessageIdsSetting;
use tidemark::domain::Clock;
use tidemark_process::Version;
use tokio::process::Command;

use crate::api::transfer::World;
use crate::sqlite::restored::copy;
use crate::support::{Person, TestApp, message, texts};

async fn start(ids: MessageIdsSetting) -> TestApp {
    TestApp::start_with(|config| config.messages.ids = ids).await
}

/// `tidemark ids` over the data directory of a stopped server.
async fn change(app: &mut TestApp, to: MessageIdsSetting, name: &str) {
    app.stop().await;
    app.config.messages.ids = to;
    let refused = boot::start(&app.config, Clock::system(), Version::default())
        .await
        .err()
        .expect("refused")
        .to_string();
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
    app.config.messages.ids = MessageIdsSetting::Auto;
    app.restart().await;
    ids.push(app.say(&ann, &bob, 4, "as before").await);
    assert_eq!(ids[3], ids[2] + 1, "left open, it is as installed");
    change(&mut app, MessageIdsSetting::Seqsvr, "seqsvr").await;
    ids.push(app.say(&ann, &bob, 5, "five").await);
    assert!(ids.is_sorted(), "{ids:?}");
    for who in [&ann, &bob] {
        let rows = app.rows(who).await;
        let rows: Vec<u64> = rows.iter().filter_map(|row| row["message_id"].as_u64()).collect();
        assert!(rows.is_sorted() && rows.len() == ids.len(), "{rows:?}");
    }
}

/// Deletes the newest rows of an inbox, as an operator does by hand, or retention by itself.
fn delete_rows(app: &TestApp, receiver: &Person, from: u64) {
    let tables = Connection::open(app.config.storage.data_dir.join("tidemark.db")).expect("opened");
    let delete = |rows| {
        let sql = format!("DELETE FROM {rows} WHERE receiver = ? AND message_id >= ?");
        tables.execute(&sql, (receiver.uid.cast_signed(), from.cast_signed())).expect("deleted")
    };
    let deleted = delete("entries") + delete("young_entries");
    assert!(deleted > 0, "something was there");
}

#[tokio::test]
async fn an_inbox_whose_newest_rows_were_deleted_gets_larger_ids_whoever_assigns_them() {
    let mut app = start(MessageIdsSetting::Store).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let mut given = 0;
    for n in 0..3 {
        given = app.say(&ann, &bob, n, "kept or not").await;
    }
    assert_eq!(given, 3);
    // Again while the database assigns them, then by the sequence service, which knows nothing of them, and back.
    for (n, to) in
        [None, Some((MessageIdsSetting::Seqsvr, "seqsvr")), Some((MessageIdsSetting::Store, "store"))]
            .into_iter()
            .enumerate()
    {
        match to {
            Some((ids, name)) => change(&mut app, ids, name).await,
            None => app.restart().await,
        }
        app.stop().await;
        delete_rows(&app, &ann, 2);
        delete_rows(&app, &bob, 1);
        app.start_again().await;
        assert_eq!(app.get(&ann, "/api/v1/seq").await.ok(200)["seq"], given, "the latest id stays");
        let next = app.say(&ann, &bob, 100 + n as u128, "after").await;
        assert!(next > given, "{next} after {given}");
        given = next;
        for who in [&ann, &bob] {
            let rows = app.rows(who).await;
            assert_eq!(rows.last().and_then(|row| row["message_id"].as_u64()), Some(given), "{}", who.name);
        }
    }
}

/// With this configuration of the assigner.
async fn run_with(ids: &str, data: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(arguments).arg("--data-dir").arg(data).env("TIDEMARK_MESSAGES__IDS", ids);
    let output = command.output().await.expect("run");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn after_a_restore_the_database_assigns_larger_ids_than_were_lost() {
    let mut app = start(MessageIdsSetting::Store).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "kept").await;
    let before = app.get(&ann, "/api/v1/seq").await.ok(200)["history"].clone();
    app.stop().await;
    let data = app.config.storage.data_dir.clone();
    let (saved, lost) = (data.with_file_name("saved"), data.with_file_name("lost"));
    copy(&data, &saved);
    app.start_again().await;
    let given = app.say(&ann, &bob, 2, "lost").await;
    let cem = app.sign_up("cem").await;
    app.stop().await;
    std::fs::rename(&data, lost).expect("moved");
    std::fs::rename(saved, &data).expect("moved");

    let (code, said) = run_with("seqsvr", &data, &["restored"]).await;
    assert!(code == 1 && said.contains("set it to \"store\", and run `tidemark restored` again"), "{said}");
    let (code, said) = run_with("store", &data, &["restored"]).await;
    assert_eq!(code, 0, "{said}");
    app.start_again().await;
    assert_ne!(app.get(&ann, "/api/v1/seq").await.ok(200)["history"], before);
    let next = app.say(&ann, &bob, 3, "after").await;
    assert!(next > given + 9_000_000, "{next} after {given}");
    assert_eq!(texts(&app.rows(&bob).await), ["kept", "after"]);
    assert!(app.sign_up("dan").await.uid > cem.uid, "a uid that was lost is not given again");
    assert!(!data.join("sequence.db").exists());
}

/// Each of the two commands that an operator may think of leads on.
#[tokio::test]
async fn a_lost_file_of_numbers_is_made_good_by_restored_where_the_database_assigns_ids() {
    let mut app = start(MessageIdsSetting::Store).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "before").await;
    app.stop().await;
    let data = app.config.storage.data_dir.clone();
    std::fs::remove_file(data.join("ids.db")).expect("removed");
    let refused = boot::start(&app.config, Clock::system(), Version::default())
        .await
        .err()
        .expect("refused")
        .to_string();
    assert!(refused.contains("ids.db is missing") && refused.contains("`tidemark restored`"), "{refused}");
    let (code, said) = run_with("store", &data, &["ids", "seqsvr"]).await;
    assert!(code == 1 && said.contains("run `tidemark restored`"), "{said}");
    let (code, said) = run_with("store", &data, &["restored"]).await;
    assert_eq!(code, 0, "{said}");
    app.start_again().await;
    assert!(app.sign_up("cem").await.uid > bob.uid + 100_000);
    assert!(app.say(&ann, &bob, 2, "after").await > 10_000_000);
}

#[tokio::test]
async fn an_import_is_served_by_a_database_that_assigns_the_ids() {
    let world = World::new().await;
    let file = world.export("all.jsonl").await;
    let data = world.file("fresh");
    let (code, said) = run_with("store", &data, &["import", file.to_str().expect("UTF-8")]).await;
    assert_eq!(code, 0, "{said}");
    assert!(!data.join("sequence.db").exists());
    let app = TestApp::start_with(|config| {
        config.storage.data_dir = data;
        config.messages.ids = MessageIdsSetting::Store;
    })
    .await;
    for name in ["ann", "bob"] {
        let (before, after) = (world.app.log_in(name).await, app.log_in(name).await);
        assert_eq!(app.rows(&after).await, world.app.rows(&before).await);
    }
    let (ann, bob) = (app.log_in("ann").await, app.log_in("bob").await);
    let latest = app.rows(&ann).await.last().and_then(|row| row["message_id"].as_u64()).expect("rows");
    assert_eq!(app.say(&ann, &bob, 9_000, "next").await, latest + 1);
}

/// Somebody put a row in by other means; the next id would be its own.
#[tokio::test]
async fn a_row_above_the_latest_id_is_found_at_the_start() {
    let mut app = start(MessageIdsSetting::Store).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "first").await;
    app.stop().await;
    let data = app.config.storage.data_dir.clone();
    let tables = Connection::open(data.join("tidemark.db")).expect("opened");
    let changed = tables.execute("UPDATE heads SET last_id = 0 WHERE receiver = ?", [bob.uid.cast_signed()]);
    assert_eq!(changed.expect("changed"), 1);
    drop(tables);
    let refused = boot::start(&app.config, Clock::system(), Version::default())
        .await
        .err()
        .expect("refused")
        .to_string();
    assert!(refused.contains(&format!("the inbox of user {} has a row 1", bob.uid)), "{refused}");
    let (code, said) = run_with("store", &data, &["restored"]).await;
    assert_eq!(code, 0, "{said}");
    app.start_again().await;
    assert!(app.say(&ann, &bob, 2, "second").await > 10_000_000);
    assert_eq!(texts(&app.rows(&bob).await), ["first", "second"]);
}
