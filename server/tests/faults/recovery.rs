//! The real process, killed in the middle of things: what was acknowledged is there, once, in order (I1 to I6, I12).
//!
//! A short form of `cargo xtask chaos`; the long form runs for minutes under a seed of its own.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use indicatif::ProgressBar;
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::domain::{Kind, WrittenBy};
use tidemark_test_support::ports::free_port;
use tidemark_test_support::until::until;
use tidemark_trials::chaos::{ChatFault, Database, FaultRun, KINDS, TablesRun};
use tokio::process::Command;
use tokio::task::JoinSet;

async fn survive(fault: ChatFault, seed: u64) {
    let data = tempfile::tempdir().expect("a folder");
    let run = FaultRun { fault, seed, length: Duration::from_secs(8), bar: ProgressBar::hidden() };
    let summary = run.run(Path::new(env!("CARGO_BIN_EXE_tidemark")), data.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("{fault:?} with seed {seed}: {broken}"));
    assert!(summary.faults >= 2 && summary.acknowledged > 100, "too little happened: {summary}");
    assert!(summary.never_done().is_empty(), "{:?} was never done: {summary}", summary.never_done());
}

/// A kind of row that is new belongs into the fault runs, if people make it.
#[test]
fn the_fault_runs_know_every_kind_of_row() {
    for kind in Kind::ALL.into_iter().filter(|kind| kind.writer() == WrittenBy::People) {
        let word = kind.as_str();
        let known = KINDS.iter().any(|listed| listed.as_str() == word);
        assert!(known, "{word} is missing in `KINDS` of trials/src/chaos/action.rs");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_sigkill_at_any_moment() {
    survive(ChatFault::Kill, 20_261_121).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn being_asked_to_stop_loses_nothing_and_ends_with_0() {
    survive(ChatFault::Stop, 20_261_122).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_tables_survive_kills_in_the_order_of_their_numbers() {
    let (seed, data) = (20_261_123, tempfile::tempdir().expect("a folder"));
    let length = Duration::from_secs(8);
    let run = TablesRun { database: Database::Sqlite, seed, length, bar: ProgressBar::hidden() };
    let summary = run.run(Path::new(env!("CARGO_BIN_EXE_tidemark")), data.path()).await;
    let summary = summary.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    assert!(summary.faults >= 2 && summary.acknowledged > 100, "too little happened: {summary}");
}

/// The program on the files of `data`, ready.
async fn served(data: &Path, port: u16) -> tokio::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(data);
    // With several queues a copy is written a commit after its acceptance.
    for (key, value) in [
        ("TABLE__LISTEN", format!("127.0.0.1:{}", free_port())),
        ("QUEUES__COUNT", "3".to_owned()),
        ("ACCOUNTS__PASSWORD_MEMORY_KIB", "8".to_owned()),
        ("LIMITS__SIGN_UPS_PER_ADDRESS_PER_MINUTE", "0".to_owned()),
        ("LIMITS__STRANGERS_PER_ACCOUNT_PER_DAY", "0".to_owned()),
    ] {
        command.env(format!("TIDEMARK_{key}"), value);
    }
    let process = command.stdout(Stdio::null()).kill_on_drop(true).spawn().expect("started");
    let ready = format!("http://127.0.0.1:{port}/ready");
    until("it serves", async || reqwest::get(&ready).await.is_ok_and(|ready| ready.status() == 200)).await;
    process
}

/// Somebody who joins a group with a visible history has all of it or, where the joining was not acknowledged, none of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_joins_has_all_of_the_history_or_none_whenever_the_server_is_killed() {
    const MESSAGES: usize = 20;
    let (data, port, http) = (tempfile::tempdir().expect("a folder"), free_port(), reqwest::Client::new());
    let here = format!("http://127.0.0.1:{port}/api/v1");
    let sign_up = async |name: String| {
        let body = json!({"name": name, "password": "correct horse"});
        let made = http.post(format!("{here}/accounts")).json(&body).send().await.expect("answered");
        let made: Value = made.error_for_status().expect("signed up").json().await.expect("JSON");
        (made["uid"].as_u64().expect("a uid"), made["token"].as_str().expect("a token").to_owned())
    };
    let rows = async |token: &str| {
        let rows = http.get(format!("{here}/range")).bearer_auth(token);
        let rows: Value = rows.send().await.expect("answered").json().await.expect("JSON");
        rows["rows"].as_array().unwrap_or_else(|| panic!("{rows}")).clone()
    };
    let mut process = served(data.path(), port).await;
    let (_, owner) = sign_up("owner".to_owned()).await;
    let call = |method, path: String, body: Value| {
        http.request(method, format!("{here}/{path}")).bearer_auth(&owner).json(&body)
    };
    let made = call(Method::POST, "groups".to_owned(), json!({"name": "walkers"})).send().await;
    let made: Value = made.expect("answered").json().await.expect("JSON");
    let gid = made["gid"].as_u64().expect("a number");
    let visible = call(Method::PATCH, format!("groups/{gid}"), json!({"history": "visible"})).send().await;
    assert_eq!(visible.expect("answered").status(), 204);
    for n in 0..MESSAGES {
        let message = json!({
            "client_id": format!("11111111-1111-4111-8111-{n:012x}"),
            "to": {"group": gid}, "body": {"text": format!("number {n}")},
        });
        let sent = call(Method::POST, "messages".to_owned(), message).send().await.expect("answered");
        assert_eq!(sent.status(), 201);
    }
    let expected: Vec<String> = (0..MESSAGES).map(|n| format!("number {n}")).collect();

    for round in 0..6_usize {
        let mut people = Vec::new();
        for n in 0..24 {
            people.push(sign_up(format!("guest {round} {n}")).await);
        }
        let mut adding = JoinSet::new();
        for (uid, _) in &people {
            let (uid, add) = (*uid, call(Method::POST, format!("groups/{gid}/members"), json!({"uid": uid})));
            adding.spawn(
                async move { add.send().await.is_ok_and(|added| added.status() == 204).then_some(uid) },
            );
        }
        // Some are in, and the others on their way.
        let mut acknowledged = Vec::new();
        while acknowledged.len() < 2 + 3 * round {
            acknowledged.extend(adding.join_next().await.expect("more of them").expect("no panic"));
        }
        process.kill().await.expect("killed");
        while let Some(added) = adding.join_next().await {
            acknowledged.extend(added.expect("no panic"));
        }
        process = served(data.path(), port).await;
        for (uid, token) in &people {
            let joins = |rows: &[Value]| rows.iter().position(|row| row["body"]["uid"] == *uid);
            if acknowledged.contains(uid) {
                until("who was acknowledged is in", async || joins(&rows(token).await).is_some()).await;
            }
            let rows = rows(token).await;
            let said = |rows: &[Value]| {
                let said = rows.iter().filter(|row| row["kind"] == "message");
                said.map(|row| row["body"]["text"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
            };
            match joins(&rows) {
                Some(at) => {
                    assert_eq!((said(&rows[..at]), said(&rows[at..])), (expected.clone(), Vec::new()))
                }
                None => assert_eq!(rows, Vec::<Value>::new(), "half of it"),
            }
        }
    }
}

#[tokio::test]
async fn a_standard_output_that_nobody_reads_ends_nothing() {
    let (data, port) = (tempfile::tempdir().expect("a folder"), free_port());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(data.path());
    command.env("TIDEMARK_TABLE__LISTEN", format!("127.0.0.1:{}", free_port()));
    let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("started");
    drop(process.stdout.take());
    let ready = format!("http://127.0.0.1:{port}/ready");
    until("it serves", async || reqwest::get(&ready).await.is_ok_and(|ready| ready.status() == 200)).await;
    // It ends only when it is asked to, and well.
    let pid = process.id().expect("it has not ended").to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.expect("run").success());
    assert!(process.wait().await.expect("waited").success());
}
