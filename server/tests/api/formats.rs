//! What earlier versions wrote, opened by this one: each schema that the database ever had, with the files beside it,
//! and each export. `fixtures/README.md` says which version wrote which, and how the next one is made.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidemark::config::MessageIdsSetting;

use crate::support::{Person, TestApp, client_id, message};
use crate::transfer::{done, over};

/// What the tests send themselves is numbered from here.
const OWN: u128 = 900;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/fixtures")
}

/// The folders of fixtures, oldest first.
fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures()).expect("readable").map(|entry| entry.expect("readable").path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Makes the files of an installation from a folder of fixtures.
pub(crate) fn lay_out(folder: &str, data: &Path) {
    fs::create_dir(data).expect("made");
    for entry in fs::read_dir(fixtures().join(folder)).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if let Some(name) = name.strip_suffix(".sql") {
            let database = rusqlite::Connection::open(data.join(format!("{name}.db"))).expect("made");
            database.execute_batch(&fs::read_to_string(&path).expect("readable")).expect("filled");
        } else if name == "invites.key" {
            fs::copy(&path, data.join(name)).expect("copied");
        }
    }
}

/// What the version that wrote a fixture answered before it was killed.
struct Answers(Value);

impl Answers {
    fn of(folder: &Path) -> Answers {
        let text = fs::read_to_string(folder.join("answers.json")).expect("readable");
        Answers(serde_json::from_str(&text).expect("JSON"))
    }

    fn list(&self, name: &str) -> &[Value] {
        self.0[name].as_array().expect("a list")
    }

    /// The largest id in the group of answers, and 0 without any.
    fn largest(&self, name: &str, field: &str) -> u64 {
        self.list(name).iter().filter_map(|one| one[field].as_u64()).max().unwrap_or_default()
    }

    /// Logs everybody in, who must be who they were.
    async fn log_in(&self, app: &TestApp) -> Vec<Person> {
        let mut people = Vec::new();
        for one in self.list("people") {
            let person = app.log_in(one["name"].as_str().expect("a name")).await;
            assert_eq!(person.uid, one["uid"], "{}", person.name);
            people.push(person);
        }
        people
    }

    /// Everything that was answered is still so, and what was accepted has reached everybody, once. Answers the people and their rows.
    async fn check(&self, app: &TestApp) -> Vec<(Person, Vec<Value>)> {
        let mut all = Vec::new();
        for (person, before) in self.log_in(app).await.into_iter().zip(self.list("people")) {
            let rows = app.rows(&person).await;
            let seen = before["rows"].as_array().expect("rows");
            assert_eq!(&rows[..seen.len()], seen, "{}", person.name);
            assert!(rows.is_sorted_by_key(id), "{}", person.name);
            let once: BTreeSet<String> = rows.iter().filter_map(key).collect();
            assert_eq!(
                once.len(),
                rows.iter().filter_map(key).count(),
                "{}: no row is there twice",
                person.name
            );

            let lines = app.get(&person, "/api/v1/conversations").await.ok(200);
            for was in before["conversations"].as_array().expect("conversations") {
                let is = lines.as_array().expect("lines").iter().find(|line| line["id"] == was["id"]);
                let is = is.unwrap_or_else(|| panic!("{}: {} is gone", person.name, was["id"]));
                assert_eq!(
                    (&is["title"], &is["read_to"]),
                    (&was["title"], &was["read_to"]),
                    "{}",
                    person.name
                );
                // What was accepted at the kill is newer.
                if id(&is["last"]) == id(&was["last"]) {
                    assert_eq!(is, was, "{}", person.name);
                }
            }
            all.push((person, rows));
        }
        for group in self.list("groups") {
            let (member, _) = all.iter().find(|(person, _)| is_member(group, person)).expect("a member");
            let is = app.get(member, &format!("/api/v1/groups/{}", group["gid"])).await.ok(200);
            assert_eq!(is["name"], group["name"]);
            for (person, _) in &all {
                assert_eq!(is_member(&is, person), is_member(group, person), "{} in {is}", person.name);
            }
        }
        for sent in self.list("sent") {
            let (sender, _) = all.iter().find(|(person, _)| person.name == sent["by"]).expect("the sender");
            let again = app.post(sender, "/api/v1/messages", sent["body"].clone()).await.ok(200);
            assert_eq!(again, sent["answer"], "the first answer");
            let mut other = sent["body"].clone();
            other["body"]["text"] = json!("something else");
            app.post(sender, "/api/v1/messages", other).await.refused(409);
            let to = &sent["body"]["to"];
            let group = self.list("groups").iter().find(|group| group["gid"] == to["group"]);
            let receives = |person: &Person| match group {
                Some(group) => is_member(group, person),
                None => to["user"] == person.uid || sender.uid == person.uid,
            };
            for (person, rows) in all.iter().filter(|(person, _)| receives(person)) {
                let copies = rows.iter().filter(|row| row["client_id"] == sent["body"]["client_id"]);
                assert_eq!(copies.count(), 1, "{} of {}", sent["body"], person.name);
            }
        }
        all
    }

    /// What is made now has larger numbers than all that there is. `start`: how often that was done.
    async fn go_on(&self, app: &TestApp, all: &[(Person, Vec<Value>)], start: u128) {
        if let [(ann, anns), (bob, bobs), ..] = all {
            let sent = app.say(ann, bob, OWN + start, "new").await;
            assert!(sent > anns.last().map_or(0, id), "{sent}");
            let received = app.rows(bob).await;
            let last = received.last().expect("a row");
            assert_eq!(
                (&last["client_id"], &last["body"]["text"]),
                (&json!(client_id(OWN + start)), &json!("new"))
            );
            assert!(id(last) > bobs.last().map_or(0, id), "{last}");
            let again = message(OWN + start, json!({"user": bob.uid}), "new");
            assert_eq!(id(&app.post(ann, "/api/v1/messages", again).await.ok(200)), sent);
        }
        let guest = app.sign_up(&format!("guest{start}")).await;
        assert!(guest.uid > self.largest("people", "uid"), "{}", guest.uid);
        let made = app.post(&guest, "/api/v1/groups", json!({"name": "new"})).await.ok(201);
        assert!(made["gid"].as_u64() > Some(self.largest("groups", "gid")), "{made}");
    }
}

fn id(row: &Value) -> u64 {
    row["message_id"].as_u64().unwrap_or_default()
}

/// By what a row is known as the copy of a message: sender and idempotency key.
fn key(row: &Value) -> Option<String> {
    Some(format!("{} {}", row["sender"], row["client_id"].as_str()?))
}

fn is_member(group: &Value, person: &Person) -> bool {
    group["members"].as_array().expect("members").iter().any(|member| member["uid"] == person.uid)
}

/// The lines of an export between header and footer, in the words of version 2.
fn records(archive: &Path) -> Vec<String> {
    let mut text = fs::read_to_string(archive).expect("readable");
    if text.lines().next().expect("a header").contains("\"version\":1,") {
        for (before, now) in
            [("\"type\":\"stay\"", "\"type\":\"ended_epoch\""), ("\"generation\":", "\"epoch\":")]
        {
            assert!(text.contains(before), "{}", archive.display());
            text = text.replace(before, now);
        }
    }
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1..lines.len() - 1].to_vec()
}

#[test]
fn each_migration_has_a_fixture() {
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations/sqlite");
    let mut due: Vec<PathBuf> = (1..=fs::read_dir(migrations).expect("readable").count())
        .map(|n| fixtures().join(format!("migration_{n}")))
        .collect();
    due.sort();
    assert_eq!(folders(), due, "make one as fixtures/README.md says");
}

#[tokio::test]
async fn an_installation_of_each_earlier_version_goes_on_unharmed() {
    for folder in folders() {
        println!("{}", folder.display());
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("data");
        lay_out(folder.file_name().and_then(|name| name.to_str()).expect("a name"), &data);
        let answers = Answers::of(&folder);
        for start in 0..2 {
            let mut app = over(&data).await;
            let all = answers.check(&app).await;
            answers.go_on(&app, &all, start).await;
            for (person, before) in all.iter().zip(answers.list("people")) {
                let Some(token) = before["token"].as_str() else { continue };
                let session = Person { token: token.to_owned(), ..person.0.clone() };
                assert_eq!(
                    app.get(&session, "/api/v1/me").await.ok(200)["uid"],
                    person.0.uid,
                    "the session goes on"
                );
            }
            if let Some(code) = answers.0["invite"].as_str() {
                let guest = app.log_in(&format!("guest{start}")).await;
                app.post(&guest, &format!("/api/v1/invites/{code}"), json!({})).await.ok(200);
            }
            app.stop().await;
        }
    }
}

#[tokio::test]
async fn an_export_of_each_earlier_version_is_imported_whole() {
    for folder in folders() {
        let archive = folder.join("archive.jsonl");
        if !archive.exists() {
            continue;
        }
        println!("{}", folder.display());
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("data");
        done(&data, &["import", archive.to_str().expect("UTF-8")]).await;
        let again = place.path().join("again.jsonl");
        done(&data, &["export", again.to_str().expect("UTF-8")]).await;
        let (before, after) = (records(&archive), records(&again));
        assert!(before == after, "exported again, the lines are the same");
        let answers = Answers::of(&folder);
        for start in 0..2 {
            let mut app = over(&data).await;
            let all = answers.check(&app).await;
            answers.go_on(&app, &all, start).await;
            app.stop().await;
        }
    }
}

/// What an earlier version wrote says how far each inbox had come, also where rows were deleted.
#[tokio::test]
async fn latest_ids_are_taken_from_what_the_version_before_them_wrote() {
    const ROWS: &str = "SELECT receiver, max(message_id) FROM entries GROUP BY receiver ORDER BY receiver";
    const NAMED: &str = "SELECT uid, max(id) FROM
            (SELECT sender AS uid, message_id AS id FROM sent UNION ALL SELECT owner, last_id FROM conversations)
        GROUP BY uid ORDER BY uid";
    for (named, delete) in [(ROWS, ""), (NAMED, "DELETE FROM entries")] {
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("data");
        lay_out("migration_7", &data);
        let tables = || rusqlite::Connection::open(data.join("tidemark.db")).expect("opened");
        let pairs = |sql: &str| -> Vec<(i64, i64)> {
            let tables = tables();
            let mut query = tables.prepare(sql).expect("prepared");
            let rows = query.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).expect("asked");
            rows.map(|row| row.expect("numbers")).collect()
        };
        let expected = pairs(named);
        assert_eq!(expected.len(), 4, "{expected:?}");
        tables().execute_batch(delete).expect("deleted");
        done(&data, &["migrate"]).await;
        assert_eq!(pairs("SELECT receiver, last_id FROM heads ORDER BY receiver"), expected);

        // The next ids are larger than all that were answered.
        done(&data, &["ids", "store"]).await;
        let app = TestApp::start_with(|config| {
            config.storage.data_dir.clone_from(&data);
            config.messages.ids = MessageIdsSetting::Store;
        })
        .await;
        let answers = Answers::of(&fixtures().join("migration_7"));
        for (person, before) in answers.log_in(&app).await.iter().zip(answers.list("people")) {
            let largest = before["rows"].as_array().expect("rows").iter().map(id).max().unwrap_or_default();
            let next = app.say(person, person, OWN, "to myself").await;
            assert!(next > largest, "{}: {next} after {largest}", person.name);
        }
    }
}
