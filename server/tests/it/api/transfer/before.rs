//! The export of a build before 0.1.0 is imported whole. `../../support/before` has it, and what that build (commit 0bd88b1f) answered before
//! it was killed with copies pending: every kind of row, a group with each standing, a deleted account, tables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidemark_test_support::until::until;

use super::{Home, done, lines, over, text};
use crate::support::{Person, TestApp};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/before").join(name)
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

/// By what a row is known as the copy of a message: sender and idempotency key.
fn key(row: &Value) -> Option<String> {
    Some(format!("{} {}", row["sender"], row["client_id"].as_str()?))
}

#[tokio::test]
async fn an_export_of_a_build_before_the_first_version_is_imported_whole() {
    let place = tempfile::tempdir().expect("a directory");
    let home = Home::new(place.path().join("data")).await;
    let archive = fixture("archive.jsonl");
    done(&home, &["import", text(&archive)]).await;
    let again = place.path().join("again.jsonl");
    done(&home, &["export", text(&again)]).await;
    let records = |file: &Path| {
        let mut records = lines(file);
        records.retain(|line| line["type"] != "header" && line["type"] != "footer");
        records
    };
    assert!(records(&archive) == records(&again), "exported again, the lines are the same");

    let answers = std::fs::read_to_string(fixture("answers.json")).expect("readable");
    let answers: Value = serde_json::from_str(&answers).expect("JSON");
    let mut app = over(&home).await;
    all_is_there(&app, &answers).await;
    names_are_known(&app).await;
    app.restart().await;
    all_is_there(&app, &answers).await;
}

async fn all_is_there(app: &TestApp, answers: &Value) {
    let mut people = Vec::new();
    for before in list(answers, "people") {
        let person = app.log_in(before["name"].as_str().expect("a name")).await;
        assert_eq!(person.uid, before["uid"], "{}", person.name);
        let rows = app.rows(&person).await;
        let seen = list(before, "rows");
        assert_eq!(&rows[..seen.len()], seen, "{}", person.name);
        for (path, was) in before["answers"].as_object().expect("answers") {
            let mut is = app.get(&person, &format!("/api/v1/{path}")).await.ok(200);
            // An answer of today may say more.
            if let (Some(is), Some(was)) = (is.as_object_mut(), was.as_object()) {
                is.retain(|field, _| was.contains_key(field));
            }
            assert_eq!(&is, was, "{}: {path}", person.name);
        }
        conversations_are_there(app, &person, list(before, "conversations")).await;
        people.push(person);
    }
    for sent in list(answers, "sent") {
        let sender = people.iter().find(|person| person.name == sent["by"]).expect("the sender");
        let again = app.post(sender, "/api/v1/messages", sent["body"].clone()).await.ok(200);
        assert_eq!(again, sent["answer"], "the first answer");
        let mut other = sent["body"].clone();
        other["body"]["text"] = json!("something else");
        app.post(sender, "/api/v1/messages", other).await.refused(409);
    }
    // Messages accepted at the kill reach all four in the group, once.
    let last = list(answers, "sent").last().expect("one");
    for person in people.iter().filter(|person| person.name != "fay") {
        until(&format!("{} has all", person.name), async || {
            let rows = app.rows(person).await;
            rows.iter().any(|row| row["client_id"] == last["body"]["client_id"])
        })
        .await;
        let rows = app.rows(person).await;
        assert!(rows.is_sorted_by_key(|row| row["message_id"].as_u64()), "{}", person.name);
        let keys: Vec<String> = rows.iter().filter_map(key).collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{}: each once", person.name);
        assert_eq!(
            rows.iter().filter(|row| row["body"]["text"].to_string().contains("at the kill")).count(),
            12
        );
    }
}

/// Imported names are found by their parts in the end, and from then on nobody new can be taken for one of them.
async fn names_are_known(app: &TestApp) {
    let ann = app.log_in("ann").await;
    for (part, name) in [("ob", "bob"), ("an", "dan")] {
        until(&format!("{name} is found"), async || {
            let found = app.get(&ann, &format!("/api/v1/users?name={part}")).await.ok(200);
            found.as_array().expect("people").iter().any(|found| found["name"] == name)
        })
        .await;
    }
    for look_alike in ["b0b", "d\u{430}n"] {
        let body = json!({"name": look_alike, "password": "correct horse"});
        let refused = app.post_as_nobody("/api/v1/accounts", body).await;
        assert_eq!(refused.refused(409), "name_resembles", "{look_alike}");
    }
}

async fn conversations_are_there(app: &TestApp, person: &Person, before: &[Value]) {
    let lines = app.get(person, "/api/v1/conversations").await.ok(200);
    for was in before {
        let is = lines.as_array().expect("lines").iter().find(|line| line["id"] == was["id"]);
        let is = is.unwrap_or_else(|| panic!("{}: {} is gone", person.name, was["id"]));
        assert_eq!((&is["title"], &is["read_to"]), (&was["title"], &was["read_to"]), "{}", person.name);
        // Messages accepted at the kill are newer.
        if is["last"]["message_id"] == was["last"]["message_id"] {
            assert_eq!(is, was, "{}", person.name);
        }
    }
}
