//! Several servers on one database; and the program's commands on it.

use std::path::Path;

use futures_util::future::join_all;
use serde_json::json;
use tidemark_test_support::until::until;
use tokio::process::Command;
use tokio::time::timeout;

use crate::api::transfer::{Home, done};
use crate::support::{Database, PATIENCE, Person, TestApp, message, texts};

/// Another server on the same database.
pub(crate) async fn beside(app: &TestApp) -> TestApp {
    let url = app.config.storage.database_url.clone();
    Database::Postgres.start_with(|config| config.storage.database_url = url).await
}

fn ids(rows: &[serde_json::Value]) -> Vec<u64> {
    rows.iter().map(|row| row["message_id"].as_u64().expect("an id")).collect()
}

#[tokio::test]
async fn status_names_the_servers_that_are_at_work() {
    let one = Database::Postgres.start().await;
    let url = one.config.storage.database_url.with_password().to_owned();
    let status = async || {
        let said = done(&Home::Database(url.clone()), &["status", "--json"]).await;
        serde_json::from_str::<serde_json::Value>(&said).expect("JSON")
    };
    let mut other = beside(&one).await;
    let two = status().await;
    assert_eq!(two["servers"].as_array().map(Vec::len), Some(2), "{two}");
    assert_eq!(two["owed_messages"], 0);
    assert!(two["history"].is_string() && two["timeline"].as_u64() >= Some(1), "{two}");
    other.stop().await;
    until("one has gone", async || status().await["servers"].as_array().map(Vec::len) == Some(1)).await;
}

#[tokio::test]
async fn servers_of_one_database_are_one_chat() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, other.sign_up("bob").await);
    assert_ne!(ann.uid, bob.uid);
    let taken = json!({"name": "ANN", "password": "correct horse"});
    other.post_as_nobody("/api/v1/accounts", taken).await.refused(409);
    let of = async |app: &TestApp, who: &Person| app.get(who, "/api/v1/me").await.ok(200);
    assert_eq!(of(&one, &ann).await, of(&other, &ann).await, "a token and the history are good everywhere");

    let first = one.say(&ann, &bob, 1, "from one").await;
    let again = other.post(&ann, "/api/v1/messages", message(1, json!({"user": bob.uid}), "from one")).await;
    assert_eq!(again.ok(200)["message_id"], first, "sent again elsewhere, it is the same message");
    other.say(&bob, &ann, 2, "from the other").await;
    for (app, who) in [(&one, &ann), (&other, &ann), (&one, &bob), (&other, &bob)] {
        let rows = app.rows(who).await;
        assert_eq!(texts(&rows), ["from one", "from the other"]);
        assert_eq!(ids(&rows), [1, 2]);
    }
}

#[tokio::test]
async fn what_many_servers_send_to_one_inbox_has_ids_of_its_own() {
    let one = Database::Postgres.start().await;
    let (other, third) = (beside(&one).await, beside(&one).await);
    let (ann, bob) = (one.sign_up("ann").await, one.sign_up("bob").await);
    let servers = [&one, &other, &third];
    let sending = servers.iter().enumerate().map(|(server, app)| {
        let (ann, bob) = (&ann, &bob);
        async move {
            for n in 0..20 {
                let (from, to) = if n % 2 == 0 { (ann, bob) } else { (bob, ann) };
                app.say(from, to, (100 * server + n) as u128, "hi").await;
            }
        }
    });
    join_all(sending).await;
    for who in [&ann, &bob] {
        let rows = ids(&other.rows(who).await);
        assert_eq!(rows, (1..=60).collect::<Vec<u64>>(), "each id once");
    }
}

#[tokio::test]
async fn an_invitation_of_one_server_is_taken_at_another() {
    let one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, other.sign_up("bob").await);
    let group = one.post(&ann, "/api/v1/groups", json!({"name": "friends", "members": []})).await.ok(201);
    let gid = group["gid"].as_str().map_or_else(|| group["gid"].to_string(), str::to_owned);
    let invite = one.post(&ann, &format!("/api/v1/groups/{gid}/invites"), json!({})).await.ok(201);
    let code = invite["code"].as_str().expect("a code");
    let joined = other.post(&bob, &format!("/api/v1/invites/{code}"), json!({})).await;
    assert!(joined.status.is_success(), "{}", joined.text);
    let members = one.get(&bob, &format!("/api/v1/groups/{gid}")).await.ok(200);
    assert_eq!(members["members"].as_array().map(Vec::len), Some(2), "{members}");
}

#[tokio::test]
async fn a_server_that_starts_again_goes_on_where_the_others_are() {
    let mut one = Database::Postgres.start().await;
    let other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, one.sign_up("bob").await);
    one.say(&ann, &bob, 1, "before").await;
    one.stop().await;
    other.say(&ann, &bob, 2, "meanwhile").await;
    one.start_again().await;
    one.say(&bob, &ann, 3, "after").await;
    assert_eq!(texts(&one.rows(&ann).await), ["before", "meanwhile", "after"]);
    let there = one.config.storage.data_dir.read_dir().expect("a directory");
    let names: Vec<_> = there.map(|entry| entry.expect("readable").file_name()).collect();
    assert_eq!(names, ["files"], "nothing else lies in the data directory");
    assert_ne!(one.sign_up("cem").await.uid, other.sign_up("dea").await.uid);
}

/// Exit code, standard output and standard error of the program.
pub(crate) async fn run(place: &Path, url: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(arguments).current_dir(place).env("TIDEMARK_DATABASE_URL", url).kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await.expect("it ends in time").expect("run");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn commands_work_on_the_database() {
    let app = Database::Postgres.start().await;
    let place = tempfile::tempdir().expect("a directory");
    let url = app.config.storage.database_url.with_password();
    let ann = app.sign_up("ann").await;
    let (code, out, said) = run(place.path(), url, &["user", "list"]).await;
    assert_eq!((code, out.as_str()), (0, format!("{}\tann\n", ann.uid).as_str()), "{said}");
    assert_eq!(run(place.path(), url, &["migrate"]).await.0, 0);
    for command in [&["ids", "seqsvr"][..], &["ids", "store"]] {
        let (code, _, said) = run(place.path(), url, command).await;
        assert!(code == 1 && said.contains("is not possible on PostgreSQL yet"), "{command:?}: {said}");
    }
    assert_eq!(run(place.path(), url, &["user", "disable", "ann"]).await.0, 0);
    let body = json!({"name": "ann", "password": "correct horse"});
    app.post_as_nobody("/api/v1/sessions", body).await.refused(401);

    let with_password = url.replace("postgres@", "postgres:s3cret@");
    let (code, out, said) = run(place.path(), &with_password, &["check-config"]).await;
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("postgres:***@") && !out.contains("s3cret"), "{out}");
    assert_eq!(place.path().read_dir().expect("readable").count(), 0, "nothing was made");
}

#[tokio::test]
async fn an_unused_database_is_not_an_installation() {
    let url = tidemark_test_support::servers::postgres::durable_database().await;
    let place = tempfile::tempdir().expect("a directory");
    let (code, _, said) = run(place.path(), &url, &["user", "list"]).await;
    assert!(code == 1 && said.contains("has no tables of Tidemark"), "{said}");
}
