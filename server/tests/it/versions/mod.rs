//! An installation of each version since 0.1.0 is opened whole: its files on SQLite, its database on PostgreSQL, its export.
//!
//! Each folder here is named for the version whose program wrote it; `write.rs` has the command. It holds what that program left
//! when it was killed, the export that it wrote just before, and what it had answered.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark_test_support::servers::postgres::durable_database;
use tokio::process::Command;

use crate::table::tell::{put_next, told};
use crate::table::world::{Key, World, output};

mod caller;
mod write;

use caller::{Caller, list, text};

/// The database of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    fn folder(self, version: &Path) -> PathBuf {
        version.join(if self == Database::Sqlite { "sqlite" } else { "postgres" })
    }
}

/// Where the folders of the versions are.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/versions")
}

/// The folders of all versions.
fn versions() -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(fixtures()).expect("readable").map(|entry| entry.expect("readable").path());
    let versions: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    assert!(!versions.is_empty());
    versions
}

/// Runs a shell line with these arguments.
async fn shell(line: &str, arguments: &[&str]) {
    let mut command = Command::new("sh");
    command.args(["-e", "-c", line, "sh"]).args(arguments);
    output(command).await;
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The settings of a server over this database, or over the files in its folder.
fn settings(url: &str) -> Vec<(&'static str, &str)> {
    if url.is_empty() { Vec::new() } else { vec![("TIDEMARK_DATABASE_URL", url)] }
}

/// A server over a copy of what the version has left.
async fn opened(database: Database, fixture: &Path) -> World {
    let data = TempDir::new().expect("a folder");
    let mut url = String::new();
    match database {
        Database::Sqlite => {
            let files = fixture.join("files.tar.gz");
            shell("tar -xzf \"$1\" -C \"$2\"", &[path(&files), path(data.path())]).await;
        }
        Database::Postgres => {
            url = durable_database().await;
            let dump = fixture.join("dump.sql.gz");
            let restore =
                "gunzip -c \"$1\" | psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 \"$2\" > /dev/null";
            shell(restore, &[path(&dump), &url]).await;
        }
    }
    World::over(data, &settings(&url)).await
}

/// The records that `world` exports, but for the header and the footer, and how far numbers are: `goes_on` looks at those.
async fn exported(world: &World) -> Vec<Value> {
    let place = TempDir::new().expect("a folder");
    let file = place.path().join("export.jsonl");
    output(world.command(&["export", path(&file)])).await;
    let text = std::fs::read_to_string(&file).expect("readable");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let mut records: Vec<Value> =
        lines.filter(|line: &Value| line["type"] != "header" && line["type"] != "footer").collect();
    for record in &mut records {
        let fields = record.as_object_mut().expect("an object");
        fields.retain(|name, _| !["latest_id", "begins_after", "last_id"].contains(&name.as_str()));
    }
    records
}

async fn is_opened_whole(database: Database) {
    for version in versions() {
        let fixture = database.folder(&version);
        let answers = std::fs::read_to_string(fixture.join("answers.json")).expect("readable");
        let answers: Value = serde_json::from_str(&answers).expect("JSON");
        let mut world = opened(database, &fixture).await;
        world.key = Key {
            id: text(&answers["key"], "id"),
            secret: text(&answers["key"], "secret"),
            instance: text(&answers["key"], "instance"),
        };
        all_is_there(database, &world, &answers).await;

        let archive = World::of_export(&fixture.join("archive.jsonl")).await;
        let (is, was) = (exported(&world).await, exported(&archive).await);
        let changed: Vec<_> = is.iter().zip(&was).filter(|(is, was)| is != was).take(3).collect();
        assert_eq!(
            (is.len(), changed),
            (was.len(), Vec::new()),
            "{}: the export is the same",
            version.display()
        );

        let world = world.kill().await.start_again().await;
        all_is_there(database, &world, &answers).await;
        goes_on(&world, &answers).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_of_each_version_are_opened_whole() {
    is_opened_whole(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_of_each_version_is_opened_whole() {
    is_opened_whole(Database::Postgres).await;
}

/// Sessions go on, everything is answered as before, perhaps with more fields, and a message that is sent again is the one that was sent.
async fn all_is_there(database: Database, world: &World, before: &Value) {
    let caller = Caller::new(world);
    for person in list(before, "people") {
        let (name, token) = (text(person, "name"), text(person, "token"));
        // A dump that is restored elsewhere counts as a backup: another history, and numbers far ahead.
        let is_stable = |path: &str| database == Database::Sqlite || path != "me";
        for (path, was) in
            person["answers"].as_object().expect("answers").iter().filter(|(path, _)| is_stable(path))
        {
            assert_eq!(&as_before(caller.get(&token, path).await, was), was, "{name}: {path}");
        }
    }
    for sent in list(before, "sent") {
        let again = caller.call(Method::POST, &text(sent, "token"), "messages", &sent["body"]).await;
        assert_eq!(again, (200, sent["answer"].clone()), "the first answer");
    }
    assert_eq!(told(world).await, before["tables"]);
}

/// An answer without the fields that this version has added to it.
fn as_before(mut is: Value, was: &Value) -> Value {
    match (&mut is, was) {
        (Value::Object(fields), Value::Object(known)) => {
            fields.retain(|name, _| known.contains_key(name));
            for (name, field) in fields {
                *field = as_before(field.take(), &known[name]);
            }
        }
        (Value::Array(items), Value::Array(known)) => {
            for (item, known) in items.iter_mut().zip(known) {
                *item = as_before(item.take(), known);
            }
        }
        _ => {}
    }
    is
}

/// Numbers grow, and secrets are still known by what is stored of them.
async fn goes_on(world: &World, before: &Value) {
    let caller = Caller::new(world);
    for (person, n) in list(before, "people").iter().zip(9_000..) {
        let (uid, token) = (&person["uid"], text(person, "token"));
        let newest = list(&person["answers"]["range"], "rows").last().expect("rows")["message_id"].as_u64();
        let sent = caller.send(&token, n, json!({"user": uid}), "later").await["answer"].clone();
        assert!(sent["message_id"].as_u64() > newest, "{uid}: {sent} after {newest:?}");
    }
    let (name, code) = (text(&before["recovery"], "name"), text(&before["recovery"], "code"));
    let body = json!({"name": name, "code": code, "password": "battery staple"});
    assert_eq!(caller.call(Method::POST, "", "recovery", &body).await.0, 201);
    let newest = before["next_row"].as_i64().expect("a number");
    assert!(put_next(world, "ann").await > newest);
    let guest = caller.sign_up("gil").await;
    let highest = list(before, "people").iter().filter_map(|person| person["uid"].as_u64()).max();
    assert!(guest["uid"].as_u64() > highest);
}
