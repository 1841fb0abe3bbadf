//! Files in exports: whole, cut off, changed; and those of one user. Over SQLite and a directory; `files::moving` has the others.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tidemark_test_support::until::until;

use super::{Home, done, lines, refused, seal, text};
use crate::api::files::{objects, read, send, upload};
use crate::support::{Database, Person, TestApp};

/// More than one part of an export has.
const BYTES: usize = (5 << 20) / 2;

fn bytes() -> Vec<u8> {
    (0..BYTES).map(|n| (n % 253) as u8).collect()
}

/// A server over what is there.
async fn on_sqlite(home: &Home) -> TestApp {
    Database::Sqlite.start_with(|config| home.configure(&mut config.storage)).await
}

/// Ann has sent two files to Bob, in a directory of SQLite.
struct Sent {
    place: tempfile::TempDir,
    home: Home,
    app: TestApp,
    ann: Person,
    bob: Person,
    /// A large one and a small one.
    files: [String; 2],
}

impl Sent {
    async fn new() -> Sent {
        let place = tempfile::tempdir().expect("a directory");
        let home = Home::Directory(place.path().join("data"));
        let app = on_sqlite(&home).await;
        let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
        let files =
            [upload(&app, &ann, "large", &bytes()).await, upload(&app, &ann, "small.txt", b"low tide").await];
        send(&app, &ann, &bob, 1, &[&files[0], &files[1]]).await;
        Sent { place, home, app, ann, bob, files }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// What `who` reads there of both files: status and bytes.
    async fn read(&self, app: &TestApp, who: &Person) -> Vec<(u16, Vec<u8>)> {
        let mut read = Vec::new();
        let rows = app.rows(who).await;
        let row = rows.iter().find(|row| row["body"]["files"].is_array()).expect("a row with files");
        for file in &self.files {
            let path = format!("/files/{}/{file}", row["message_id"]);
            let answer = app.request(reqwest::Method::GET, &path).bearer_auth(&who.token).send().await;
            let answer = answer.expect("an answer");
            read.push((answer.status().as_u16(), answer.bytes().await.expect("all of them").to_vec()));
        }
        read
    }
}

#[tokio::test]
async fn an_interrupted_export_goes_on_in_the_middle_of_a_file() {
    let sent = Sent::new().await;
    let file = sent.path("whole.jsonl");
    done(&sent.home, &["export", text(&file)]).await;
    let whole = fs::read(&file).expect("readable");
    let all = lines(&file);
    let kinds: Vec<&str> = all.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "file_part").count(),
        4,
        "three of the large one, one more"
    );
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let first = kinds.iter().position(|kind| *kind == "file").expect("a file");
    for end in &ends[first..kinds.len() - 1] {
        for cut in [*end, end + 9] {
            fs::write(&file, &whole[..cut]).expect("written");
            done(&sent.home, &["export", text(&file), "--resume"]).await;
            assert!(fs::read(&file).expect("readable") == whole, "cut at byte {cut}");
        }
    }
    fs::write(&file, &whole[..ends[first]]).expect("written");
    let reported = refused(&sent.home, &["export", text(&file), "--resume", "--without-files"]).await;
    assert!(reported.contains("it was begun with the bytes of files"), "{reported}");
    // A file more, and nothing of the interrupted export is good any more.
    upload(&sent.app, &sent.ann, "another", b"high tide").await;
    let reported = done(&sent.home, &["export", text(&file), "--resume"]).await;
    assert!(reported.contains("nothing of the interrupted export was kept"), "{reported}");
}

#[tokio::test]
async fn a_part_that_is_changed_or_missing_is_named() {
    let sent = Sent::new().await;
    let good = sent.path("good.jsonl");
    done(&sent.home, &["export", text(&good)]).await;
    let all = lines(&good);
    let at = |kind: &str, nth: usize| {
        let found = all.iter().enumerate().filter(|(_, line)| line["type"] == kind).nth(nth);
        found.expect("a line").0
    };
    let (part, last) = (at("file_part", 1), at("file_part", 3));
    let target = Home::Directory(sent.path("new"));
    let bad = sent.path("bad.jsonl");
    let changed = |line: usize, change: &dyn Fn(&mut Value)| {
        let mut lines = all.clone();
        change(&mut lines[line]);
        lines
    };
    let without = |line: usize| {
        let mut lines = all.clone();
        lines.remove(line);
        lines
    };
    let other = |line: &mut Value| line["bytes"] = json!("AAAA");
    let nobody = |line: &mut Value| line["sender"] = json!(99_999);
    for (lines, why) in [
        (changed(part, &other), format!("line {}: the bytes of part", part + 1)),
        (without(part), format!("line {}: part ", part + 1)),
        (without(last), "are missing".to_owned()),
        (without(at("file", 0)), "does not follow it".to_owned()),
        (changed(at("file_use", 0), &nobody), "there is no account with uid 99999".to_owned()),
    ] {
        seal(lines, &bad);
        let reported = refused(&target, &["import", text(&bad)]).await;
        assert!(reported.contains("bad.jsonl") && reported.contains(&why), "expected {why:?}: {reported}");
    }
    assert!(!sent.path("new").exists(), "nothing has happened");
    done(&target, &["import", text(&good)]).await;
}

#[tokio::test]
async fn what_was_gone_at_an_export_is_gone_after_the_import_and_says_so() {
    let mut sent = Sent::new().await;
    let file = sent.path("gone.jsonl");
    // The second object of the server's directory that lies there is the small file.
    let small =
        objects(&sent.app).into_iter().find(|object| object.contains(&sent.files[1].replace('-', "")));
    fs::remove_file(small.expect("an object")).expect("removed");
    let reported = done(&sent.home, &["export", text(&file)]).await;
    assert!(reported.contains("of 1 files the bytes were not in `[files] store`"), "{reported}");
    let target = Home::Directory(sent.path("new"));
    let reported = done(&target, &["import", text(&file)]).await;
    assert!(reported.contains("; 1 of 2 files are gone, as they were at the export"), "{reported}");
    let app = on_sqlite(&target).await;
    let bob = app.log_in("bob").await;
    let read = sent.read(&app, &bob).await;
    assert!(read[0] == (200, bytes()));
    assert_eq!(read[1].0, 410);
    assert!(String::from_utf8_lossy(&read[1].1).contains("file_gone"));
    sent.app.stop().await;
}

/// An operator brings back the rows of somebody who has deleted them, after which the files went.
#[tokio::test]
async fn the_files_of_one_user_come_back_with_the_rows_and_stay() {
    let mut sent = Sent::new().await;
    let (file, bare) = (sent.path("all.jsonl"), sent.path("bare.jsonl"));
    done(&sent.home, &["export", text(&file)]).await;
    done(&sent.home, &["export", text(&bare), "--without-files"]).await;
    assert!(lines(&bare).iter().all(|line| line["type"] != "file_part"));
    let home = Home::Directory(sent.path("other"));
    let mut app = on_sqlite(&home).await;
    let (_, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.stop().await;
    let into = bob.uid.to_string();
    let import = |file: &Path| ["import", text(file), "--user", "bob", "--into", &into].map(str::to_owned);
    let run = async |file: &Path| {
        let args = import(file);
        done(&home, &args.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    let reported = run(&bare).await;
    assert!(reported.contains("0 files came along, 2 are neither here nor in the export"), "{reported}");
    let mut app = on_sqlite(&home).await;
    let bob = app.log_in("bob").await;
    assert!(sent.read(&app, &bob).await.iter().all(|(status, _)| *status == 410));
    app.stop().await;
    let reported = run(&file).await;
    assert!(reported.contains("0 rows of user") && reported.contains("; 2 files came along"), "{reported}");

    let mut app = on_sqlite(&home).await;
    let expected = [(200, bytes()), (200, b"low tide".to_vec())];
    assert!(sent.read(&app, &app.log_in("bob").await).await == expected);
    // Two days later the walk has looked, and the rows still have their files.
    for _ in 0..2 {
        app.pass(Duration::from_secs(86_460)).await;
        app.restart().await;
    }
    let ann = app.log_in("ann").await;
    let unnamed = upload(&app, &ann, "unnamed", b"x").await;
    app.pass(Duration::from_secs(86_460)).await;
    app.restart().await;
    let folder = unnamed.replace('-', "");
    until("what nothing names has gone", async || !objects(&app).iter().any(|path| path.contains(&folder)))
        .await;
    assert!(sent.read(&app, &app.log_in("bob").await).await == expected);
    let reported = {
        app.stop().await;
        run(&file).await
    };
    assert!(!reported.contains("files came along"), "{reported}");
    sent.app.stop().await;
}

#[tokio::test]
async fn the_data_of_an_account_says_where_each_file_is_read() {
    let sent = Sent::new().await;
    let request = sent.app.request(reqwest::Method::GET, "/api/v1/me/data").bearer_auth(&sent.ann.token);
    let data = sent.app.send(request).await;
    let lines: Vec<Value> = data.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let files: Vec<&Value> = lines.iter().filter(|line| line["type"] == "file").collect();
    let small = files.iter().find(|file| file["id"] == sent.files[1]).expect("it is there");
    assert_eq!((&small["name"], &small["size"]), (&json!("small.txt"), &json!(8)));
    assert!(small["media_type"].is_string());
    let row = lines.iter().find(|line| line["files"].is_array()).expect("a row with files");
    let paths: Vec<&str> = row["files"].as_array().expect("paths").iter().filter_map(Value::as_str).collect();
    assert_eq!(paths.len(), 2);
    let request = sent.app.request(reqwest::Method::GET, paths[1]).bearer_auth(&sent.ann.token);
    assert_eq!(sent.app.send_unjudged(request).await.text, "low tide");
    let own = row["row"]["message_id"].as_u64().expect("an id");
    assert_eq!(read(&sent.app, &sent.ann, own, &sent.files[1]).await.text, "low tide");
    assert!(sent.app.rows(&sent.bob).await.len() == 1);
}
