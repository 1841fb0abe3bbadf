//! `tidemark export`, beside a server at work.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::ProgressBar;
use serde_json::{Value, json};
use tidemark::transfer;

use super::{Home, World, done, inboxes, lines, refused, text};
use crate::support::{is_on_postgres, message};

#[tokio::test]
async fn an_export_holds_what_every_range_answers() {
    let world = World::new().await;
    let file = world.export("all.jsonl").await;
    let lines = lines(&file);
    let exported = inboxes(&lines);
    for person in &world.people {
        assert_eq!(exported[&person.uid], world.app.rows(person).await, "{}", person.name);
    }
    let of_type = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let names: Vec<_> = of_type("account").iter().map(|account| account["name"].clone()).collect();
    assert_eq!(names, ["ann", "bob", "cat"]);
    let members = &of_type("group")[0]["members"];
    assert_eq!(members.as_array().map(Vec::len), Some(3));
    assert_eq!(members[2]["active"], false, "cat left");
    assert_eq!(of_type("ended_epoch")[0]["uid"], world.people[2].uid);
    // 20 + 20 + 20 + 1 messages, and the two changes of the group.
    assert_eq!(of_type("sent").len(), 63);
    assert!(!lines.iter().any(|line| line.to_string().contains(&world.people[0].token)), "no session");
    let mode = std::fs::metadata(&file).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_under_load_shows_one_moment() {
    let world = World::new().await;
    let stop = Arc::new(AtomicBool::new(false));
    let load = async {
        let [ann, bob, cat] = &world.people[..] else { unreachable!("three") };
        let send = async |from: &_, to: Value, base: u128| {
            let mut n = base;
            while !stop.load(Ordering::Relaxed) {
                world.app.post(from, "/api/v1/messages", message(n, to.clone(), "load")).await.ok(201);
                n += 1;
            }
        };
        tokio::join!(
            send(ann, json!({"user": bob.uid}), 10_000),
            send(bob, json!({"user": cat.uid}), 20_000),
            send(cat, json!({"user": ann.uid}), 30_000),
            send(ann, json!({"group": world.gid}), 40_000),
        );
    };
    let exports = async {
        let mut files = Vec::new();
        for n in 0..4 {
            files.push(world.export(&format!("{n}.jsonl")).await);
        }
        stop.store(true, Ordering::Relaxed);
        files
    };
    let ((), files) = tokio::join!(load, exports);

    let mut counts = HashSet::new();
    for file in files {
        transfer::check(&file, 100_000, &ProgressBar::hidden()).expect("a good archive");
        let lines = lines(&file);
        let exported = inboxes(&lines);
        counts.insert(exported.values().map(Vec::len).sum::<usize>());
        for person in &world.people {
            // The exported rows have no holes: they are all rows up to some id.
            let all = all_rows(&world, person).await;
            let rows = &exported[&person.uid];
            assert_eq!(rows[..], all[..rows.len()], "{}", person.name);
        }
        // Each message is there whole, or names the receivers that it is owed to.
        let owed: HashSet<(Value, Value)> = lines
            .iter()
            .filter(|line| line["type"] == "pending")
            .flat_map(|line| {
                let owed = line["owed"].as_array().expect("a list");
                owed.iter().map(|to| (line["client_id"].clone(), to["uid"].clone())).collect::<Vec<_>>()
            })
            .collect();
        let copies: HashSet<(Value, u64)> = exported
            .iter()
            .flat_map(|(uid, rows)| rows.iter().map(|row| (row["client_id"].clone(), *uid)))
            .collect();
        let own = exported.iter().flat_map(|(uid, rows)| rows.iter().filter(|row| row["sender"] == *uid));
        for sent in own {
            let Some(peer) = sent["conversation"].as_str().and_then(|name| name.strip_prefix("u:")) else {
                continue;
            };
            if sent["kind"] == "message" {
                let name = sent["client_id"].clone();
                let peer: u64 = peer.parse().expect("a uid");
                assert!(
                    copies.contains(&(name.clone(), peer)) || owed.contains(&(name, peer.into())),
                    "{sent} is missing at {peer}"
                );
            }
        }
    }
    assert!(counts.len() > 1, "the load went on meanwhile: {counts:?}");
}

/// All rows, page by page.
async fn all_rows(world: &World, person: &crate::support::Person) -> Vec<Value> {
    let mut rows: Vec<Value> = Vec::new();
    let mut start = json!(1);
    loop {
        let path = format!("/api/v1/range?start={start}&end=INF_MAX&limit=5000");
        let page = world.app.get(person, &path).await.ok(200);
        rows.extend(page["rows"].as_array().expect("rows").clone());
        if page["next_start"].is_null() {
            return rows;
        }
        start = page["next_start"].clone();
    }
}

#[tokio::test]
async fn an_interrupted_export_goes_on_and_is_written_anew_when_something_has_changed() {
    let world = World::new().await;
    let file = world.export("whole.jsonl").await;
    let whole = std::fs::read(&file).expect("readable");
    let lines: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    // Cut off in the header's successor, behind a complete line, in a row, in the middle of the records of sends,
    // before the footer, and not at all.
    for cut in
        [lines[0] + 1, lines[2], lines[20] + 30, lines[lines.len() - 30], whole.len() - 10, whole.len()]
    {
        let part = world.file("part.jsonl");
        std::fs::write(&part, &whole[..cut]).expect("written");
        done(&world.home, &["export", text(&part), "--resume"]).await;
        assert_eq!(std::fs::read(&part).expect("readable"), whole, "cut at {cut}");
    }

    let reported = refused(&world.home, &["export", text(&file)]).await;
    assert!(
        reported.contains("exists already; choose another name, or finish it with --resume"),
        "{reported}"
    );
    world.app.say(&world.people[0], &world.people[1], 999, "one more").await;
    let reported = refused(&world.home, &["export", text(&file), "--resume"]).await;
    assert!(reported.contains("it is complete, and shows the installation as it was at 20"), "{reported}");
    assert_eq!(std::fs::read(&file).expect("readable"), whole);
    let now = std::fs::read_to_string(world.export("now.jsonl").await).expect("readable");
    let records = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.contains("\"totals\":")).map(str::to_owned).collect()
    };
    for cut in [0, lines[20], lines[20] + 3] {
        std::fs::write(&file, &whole[..cut]).expect("written");
        let reported = done(&world.home, &["export", text(&file), "--resume"]).await;
        assert_eq!(reported.contains("nothing of the interrupted export was kept"), cut > 0, "{reported}");
        let written = std::fs::read_to_string(&file).expect("readable");
        assert!(records(&written) == records(&now), "cut at {cut}");
        assert!(transfer::check(&file, 100_000, &ProgressBar::hidden()).is_ok());
    }
    for (content, why) in [
        (&b"a text\n"[..], "line 1: "),
        (b"a text", "it is not an interrupted export: its header is missing"),
        (
            &[&whole[lines[0]..lines[1]]].concat()[..],
            "it is not an interrupted export: its header is missing",
        ),
    ] {
        std::fs::write(&file, content).expect("written");
        let reported = refused(&world.home, &["export", text(&file), "--resume"]).await;
        assert!(reported.contains(why), "{reported}");
        assert_eq!(std::fs::read(&file).expect("readable"), content);
    }
    let other = String::from_utf8(whole[..lines[2]].to_vec()).expect("text");
    let at = other.find("\"history\":\"").expect("a history") + 11;
    let other = [&other[..at], "00000000-0000-0000-0000-000000000000", &other[at + 36..]].concat();
    std::fs::write(&file, &other).expect("written");
    let reported = refused(&world.home, &["export", text(&file), "--resume"]).await;
    assert!(reported.contains("an export of another installation"), "{reported}");
    assert_eq!(std::fs::read_to_string(&file).expect("readable"), other);
}

#[tokio::test]
async fn there_must_be_something_to_export() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("none.jsonl");
    let nowhere = Home::new(place.path().join("data")).await;
    let why = if is_on_postgres() { "has no tables of Tidemark" } else { "tidemark.db" };
    let reported = refused(&nowhere, &["export", text(&file)]).await;
    assert!(reported.contains(why) && !file.exists(), "{reported}");
}
