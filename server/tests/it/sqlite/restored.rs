//! `tidemark restored`, after files were restored.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::api::transfer::{World, done, over, tidemark};
use crate::support::{Person, TestApp, message};

#[tokio::test]
async fn numbers_go_on_beyond_all_that_were_lost_under_a_new_history() {
    let mut world = World::new().await;
    world.app.stop().await;
    let saved = world.file("saved");
    copy(&world.file("data"), &saved);

    // Life goes on after the backup, and is lost with the disk.
    let app = over(&world.file("data")).await;
    let (ann, bob) = (app.log_in("ann").await, app.log_in("bob").await);
    let mut lost = 0;
    for n in 5_000..5_010 {
        lost = app.say(&ann, &bob, n, "lost").await;
    }
    let before = app.get(&ann, "/api/v1/seq").await.ok(200)["history"].clone();
    drop(app);
    done(&saved, &["restored"]).await;

    let app = over(&saved).await;
    let (ann, bob) = (app.log_in("ann").await, app.log_in("bob").await);
    let after = app.get(&ann, "/api/v1/seq").await.ok(200);
    assert_ne!(after["history"], before);
    let newest = app.rows(&ann).await.last().and_then(|row| row["message_id"].as_u64());
    assert!(newest < Some(lost), "the backup is older");
    assert!(after["seq"].as_u64() > Some(lost + 9_000_000), "{after}");
    let first = app.say(&ann, &bob, 6_000, "again").await;
    assert!(first > lost + 9_000_000, "{first} after {lost}");
    let group = json!({"group": world.gid});
    app.post(&bob, "/api/v1/messages", message(6_001, group, "all")).await.ok(201);
    for person in [&ann, &bob] {
        let rows = app.rows(person).await;
        assert!(rows.is_sorted_by_key(|row| row["message_id"].as_u64()), "{}", person.name);
    }
}

/// The ids and codes that one life of the data gave out.
#[derive(Debug, Default)]
pub(crate) struct Given {
    uids: HashSet<u64>,
    gids: HashSet<u64>,
    pub(crate) codes: HashSet<String>,
}

/// A new person with a group and a link into it.
async fn founder(app: &TestApp, name: &str) -> (Person, u64, String) {
    let person = app.sign_up(name).await;
    let group = json!({"name": format!("{name}'s")});
    let gid = app.post(&person, "/api/v1/groups", group).await.ok(201)["gid"].as_u64().expect("a gid");
    let invite = app.post(&person, &format!("/api/v1/groups/{gid}/invites"), json!({})).await.ok(201);
    (person, gid, invite["code"].as_str().expect("a code").to_owned())
}

/// Three of them. None of their numbers and codes may have been given `before`.
pub(crate) async fn give(app: &TestApp, before: &Given) -> Given {
    let mut given = Given::default();
    for name in ["dan", "eve", "fay"] {
        let (person, gid, code) = founder(app, name).await;
        assert!(!before.uids.contains(&person.uid), "uid {} came again", person.uid);
        assert!(!before.gids.contains(&gid), "gid {gid} came again");
        assert!(!before.codes.contains(&code), "code {code} came again");
        given.uids.insert(person.uid);
        given.gids.insert(gid);
        given.codes.insert(code);
    }
    given
}

pub(crate) async fn no_code_leads_anywhere(app: &TestApp, codes: &HashSet<String>) {
    let guest = app.sign_up("guest").await;
    for code in codes {
        let answer = app.post(&guest, &format!("/api/v1/invites/{code}"), json!({})).await;
        assert_eq!(answer.refused(404), "unknown_invite", "{code}");
    }
    let list = app.get(&guest, "/api/v1/conversations").await.ok(200);
    assert_eq!(list.as_array().map(Vec::len), Some(0), "{list}");
}

/// No uid, gid or code that was given after the backup comes a second time, and no link of that time, or of before it, leads into a
/// group of the new life. A browser keeps what was not sent under the uid, so it is never sent as somebody else's.
#[tokio::test]
async fn nothing_that_was_given_after_the_backup_is_given_again() {
    let mut world = World::new().await;
    let (.., old_code) = founder(&world.app, "old").await;
    world.app.stop().await;
    let saved = world.file("saved");
    copy(&world.file("data"), &saved);
    let again = world.file("again");
    copy(&world.file("data"), &again);

    let mut app = over(&world.file("data")).await;
    let mut lost = give(&app, &Given::default()).await;
    app.stop().await;
    lost.codes.insert(old_code);
    done(&saved, &["restored"]).await;

    let mut app = over(&saved).await;
    let mut given = give(&app, &lost).await;
    assert!(given.uids.iter().all(|uid| *uid > 110_000), "{given:?}");
    no_code_leads_anywhere(&app, &lost.codes).await;
    app.stop().await;
    given.uids.extend(lost.uids);
    given.gids.extend(lost.gids);
    given.codes.extend(lost.codes);

    // From the same backup once more, beyond what the life after it gave.
    done(&again, &["restored", "--ahead", "200000"]).await;
    let app = over(&again).await;
    give(&app, &given).await;
    no_code_leads_anywhere(&app, &given.codes).await;
}

/// A sequence that is behind the rows is found at the start; the first message comes after them.
#[tokio::test]
async fn a_sequence_behind_the_rows_is_found_at_the_start() {
    let mut app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    for n in 1..=10 {
        app.say(&ann, &bob, n, "before").await;
    }
    app.stop().await;
    let sequence = app.config.storage.data_dir.join("sequence.db");
    let sequence = rusqlite::Connection::open(sequence).expect("opened");
    sequence.execute("UPDATE sections SET ceiling = 0", ()).expect("set back");
    drop(sequence);

    app.start_again().await;
    let metrics = app.send(app.request(reqwest::Method::GET, "/metrics")).await.text;
    assert!(metrics.contains("tidemark_sequence_overtaken_total 1\n"), "{metrics}");
    let next = app.say(&ann, &bob, 11, "after").await;
    assert!(next > 10, "{next}");
    let rows = app.rows(&bob).await;
    assert!(rows.len() == 11 && rows.is_sorted_by_key(|row| row["message_id"].as_u64()), "{rows:?}");
}

#[tokio::test]
async fn a_wrong_distance_is_refused() {
    let mut world = World::new().await;
    world.app.stop().await;
    for wrong in ["0", "1000000001", "many"] {
        let (code, reported) = tidemark(&world.file("data"), &["restored", "--ahead", wrong]).await;
        assert!(code == 2 && reported.contains("--ahead"), "{wrong}: {code} {reported}");
    }
}

/// An import is a new life, too: what the old installation gave after the export does not come again.
#[tokio::test]
async fn an_import_gives_nothing_that_was_given_after_the_export() {
    let mut world = World::new().await;
    let (.., old_code) = founder(&world.app, "old").await;
    let file = world.export("all.jsonl").await;
    let mut lost = give(&world.app, &Given::default()).await;
    lost.codes.insert(old_code);
    world.app.stop().await;

    let new = world.file("new");
    done(&new, &["import", file.to_str().expect("UTF-8")]).await;
    let app = over(&new).await;
    give(&app, &lost).await;
    no_code_leads_anywhere(&app, &lost.codes).await;
    let people: Value = app.get(&app.log_in("ann").await, "/api/v1/conversations").await.ok(200);
    assert!(people.as_array().is_some_and(|list| !list.is_empty()), "{people}");
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("made");
    for entry in std::fs::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
}
