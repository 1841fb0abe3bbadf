//! What earlier versions wrote, opened by this one: each schema that the database ever had, with the files beside it,
//! and each export. `fixtures/README.md` says which version wrote which, and how the next one is made.

use std::fs;
use std::path::{Path, PathBuf};

use tidemark::config::MessageIdsSetting;

use crate::answers::{Answers, OWN, id};
use crate::fixtures::{fixtures, lay_out};
use crate::support::TestApp;
use crate::transfer::{done, over};

/// The folders of fixtures, oldest first.
fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures()).expect("readable").map(|entry| entry.expect("readable").path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
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
    let number = |name: &str| name.split('_').next().and_then(|number| number.parse().ok());
    let mut due: Vec<PathBuf> = fs::read_dir(migrations)
        .expect("readable")
        .map(|file| file.expect("readable").file_name().into_string().expect("UTF-8"))
        .map(|name| number(&name).expect("a number, then the name"))
        .map(|number: u32| fixtures().join(format!("migration_{number}")))
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
        lay_out(&folder, &data);
        let answers = Answers::of(&folder);
        for start in 0..2 {
            let mut app = over(&data).await;
            let all = answers.check(&app).await;
            answers.names_are_known(&app).await;
            answers.go_on(&app, &all, start).await;
            answers.let_in(&app, &all, start).await;
            app.stop().await;
        }
    }
}

/// Whoever made a group owns it, if still in; else the one of those who never left with the smallest uid. Both in the tables and in the
/// journal of an earlier version.
#[tokio::test]
async fn groups_of_earlier_versions_are_owned_by_who_made_them() {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("data");
    lay_out(&fixtures().join("migration_10"), &data);
    let answers = Answers::of(&fixtures().join("migration_10"));
    let mut app = over(&data).await;
    let mut by_makers = 0;
    for person in answers.log_in(&app).await {
        for row in app.rows(&person).await.iter().filter(|row| row["body"]["action"] == "created") {
            let (gid, maker) = (&row["body"]["group"], row["body"]["by"].as_u64().expect("a uid"));
            let shown = app.get(&person, &format!("/api/v1/groups/{gid}")).await;
            if shown.status != 200 {
                continue;
            }
            let members = shown.json()["members"].as_array().expect("members").clone();
            let owners: Vec<_> = members.iter().filter(|member| member["role"] == "owner").collect();
            assert_eq!(owners.len(), 1, "{members:?}");
            if members.iter().any(|member| member["uid"] == maker) {
                assert_eq!(owners[0]["uid"], maker);
                by_makers += 1;
            }
        }
    }
    assert!(by_makers > 1, "{by_makers}");
    app.stop().await;
    let stored = "SELECT count(*) FROM members WHERE active AND standing = 2";
    let tables = rusqlite::Connection::open(data.join("tidemark.db")).expect("opened");
    assert!(tables.query_row(stored, (), |row| row.get::<_, i64>(0)).expect("asked") > 0);
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
            answers.names_are_known(&app).await;
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
        lay_out(&fixtures().join("migration_7"), &data);
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
