//! Writes the folder of this version, when it is released:
//! `FIXTURES=yes cargo xtask test writes_what_this_version_leaves`.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use tidemark_test_support::servers::postgres::durable_database;
use tidemark_test_support::until::until;

use super::caller::{ASKED, Caller, list, text};
use super::{Database, fixtures, path, settings, shell};
use crate::support::client_id;
use crate::table::tell::{put_next, told};
use crate::table::world::{World, output};

/// Sessions of the folder are to be good in later years.
const LONGEST_SESSION_DAYS: &str = "3650";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_what_this_version_leaves() {
    if std::env::var_os("FIXTURES").is_none() {
        return;
    }
    for database in [Database::Sqlite, Database::Postgres] {
        let folder = database.folder(&fixtures().join(env!("CARGO_PKG_VERSION")));
        std::fs::create_dir_all(&folder).expect("a folder");
        write(database, &folder).await;
    }
}

async fn write(database: Database, folder: &Path) {
    let url = if database == Database::Postgres { durable_database().await } else { String::new() };
    let mut settings = settings(&url);
    settings.push(("TIDEMARK_ACCOUNTS__SESSION_DAYS", LONGEST_SESSION_DAYS));
    // Every kind of row, a deleted account, and tables.
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/before/archive.jsonl");
    let mut world = World::of_export_with(&earlier, &settings).await;
    world.key = world.make_key(&["--instance", "fixture"]).await;
    let mut people = Vec::new();
    for name in ["ann", "bob", "cat"] {
        let body = json!({"name": name, "password": "correct horse"});
        people.push(Caller::new(&world).post("", "sessions", body).await);
    }
    let mut sent = happens(&world, &people, 1_000).await;
    // The first half is in the tables of SQLite, the second one in its journal.
    let world = world.stop().await.start_again().await;
    sent.extend(happens(&world, &people, 2_000).await);
    let caller = Caller::new(&world);
    let guest = caller.sign_up("gus").await;
    caller.send(&text(&guest, "token"), 3_000, json!({"user": people[0]["uid"]}), "new here").await;
    people.push(guest.clone());
    let next_row = put_next(&world, "ann").await;

    let mut told_to = Vec::new();
    for person in &people {
        let token = text(person, "token");
        let mut answers = serde_json::Map::new();
        for asked in ASKED {
            if let (200, answer) = caller.call(Method::GET, &token, asked, &Value::Null).await {
                answers.insert(asked.to_owned(), answer);
            }
        }
        let (name, uid) = (&person["name"], &person["uid"]);
        told_to.push(json!({"name": name, "uid": uid, "token": token, "answers": answers}));
    }
    let key = json!({"id": world.key.id, "secret": world.key.secret, "instance": world.key.instance});
    let recovery = json!({"name": "gus", "code": guest["recovery_codes"][0]});
    let answers = json!({
        "people": told_to, "sent": sent, "key": key, "recovery": recovery,
        "tables": told(&world).await, "next_row": next_row,
    });
    let written = serde_json::to_string_pretty(&answers).expect("JSON");
    std::fs::write(folder.join("answers.json"), written + "\n").expect("written");
    let archive = folder.join("archive.jsonl");
    _ = std::fs::remove_file(&archive);
    output(world.command(&["export", path(&archive)])).await;

    let stopped = world.kill().await;
    match database {
        Database::Sqlite => {
            let files = folder.join("files.tar.gz");
            let pack = "tar --exclude=trial.log -czf \"$1\" -C \"$2\" .";
            shell(pack, &[path(&files), path(stopped.data())]).await;
        }
        Database::Postgres => {
            let dump = folder.join("dump.sql.gz");
            let pack = "pg_dump --no-owner --no-privileges \"$2\" | gzip -9 > \"$1\"";
            shell(pack, &[path(&dump), &url]).await;
        }
    }
}

/// A row of each kind that people write often; what was sent. `first`: of the names that requests have.
async fn happens(world: &World, people: &[Value], first: u128) -> Vec<Value> {
    let caller = Caller::new(world);
    let [ann, bob, cat] = [0, 1, 2].map(|n| text(&people[n], "token"));
    let [of_ann, of_bob] = [0, 1].map(|n| &people[n]["uid"]);
    let name = |n: u128| json!(client_id(first + n));
    let mut sent = Vec::new();
    for n in 0..3 {
        sent.push(caller.send(&ann, first + n, json!({"user": of_bob}), &format!("no {n} of {first}")).await);
    }
    sent.push(caller.send(&bob, first + 3, json!({"group": 1}), "to all \u{1F30A}").await);
    let own = |n: usize| sent[n]["answer"]["message_id"].clone();
    let with_bob = |n: usize, act: &str| format!("conversations/u:{of_bob}/messages/{}/{act}", own(n));
    let edit = json!({"client_id": name(10), "body": {"text": "better"}});
    caller.post(&ann, &with_bob(0, "edit"), edit).await;
    caller.post(&ann, &with_bob(1, "recall"), json!({"client_id": name(11)})).await;
    caller.post(&ann, &with_bob(2, "reaction"), json!({"client_id": name(12), "emoji": ["👍"]})).await;
    caller.post(&ann, &with_bob(2, "star"), json!({"client_id": name(13), "starred": true})).await;
    let in_group = format!("conversations/g:1/messages/{}/pin", own(3));
    caller.post(&bob, &in_group, json!({"client_id": name(14), "pinned": true})).await;
    let tide = format!("the tide of {first}");
    let moment = json!({"client_id": name(15), "text": tide});
    caller.post(&ann, "moments", moment).await;
    // The copies of a message come to others by themselves.
    until("Bob has all", async || {
        let rows = caller.get(&bob, "range").await;
        let texts = list(&rows, "rows").iter().map(|row| &row["body"]["text"]);
        texts.filter(|text| **text == tide.as_str()).count() == 1
    })
    .await;
    let rows = caller.get(&bob, "range").await;
    let with_ann = format!("u:{of_ann}");
    let newest =
        list(&rows, "rows").iter().rfind(|row| row["conversation"] == with_ann.as_str()).expect("one");
    let mark = json!({"message_id": newest["message_id"]});
    caller.put(&bob, &format!("conversations/{with_ann}/read"), mark).await;
    let setting = json!({"client_id": name(16), "value": {"pinned": true}});
    caller.put(&cat, &format!("conversations/u:{of_ann}/settings/pin"), setting).await;
    put_next(world, "ann").await;
    sent
}
