//! `tidemark import` of a whole installation.

use std::path::Path;

use async_trait::async_trait;
use indicatif::ProgressBar;
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::boot;
use tidemark::config::{Config, MessageIds};
use tidemark::domain::{Clock, HistoryId};
use tidemark::store::StoreError;
use tidemark::store::archive::{Import, ImportError, Record};
use tidemark::transfer::{self, Filling, TransferError};
use tidemark_process::Version;

use super::{World, done, lines, over, refused, seal, text};
use crate::support::{PATIENCE, Person, client_id, is_on_postgres, message};

#[tokio::test]
async fn an_import_gives_back_everything_but_sessions_and_history() {
    let mut world = World::new().await;
    let file = world.export("all.jsonl").await;
    let fresh = world.other("fresh").await;
    let reported = done(&fresh, &["import", text(&file)]).await;
    assert!(reported.contains("records imported; the history is "), "{reported}");

    let copy = over(&fresh).await;
    let old = world.app.get(&world.people[0], "/api/v1/me").await.ok(200);
    assert_eq!(copy.get(&world.people[0], "/api/v1/me").await.status, 401, "the old session");
    for person in &world.people {
        let again = copy.log_in(&person.name).await;
        assert_eq!(again.uid, person.uid);
        assert_eq!(copy.rows(&again).await, world.app.rows(person).await, "{}", person.name);
        let list = "/api/v1/conversations";
        assert_eq!(copy.get(&again, list).await.ok(200), world.app.get(person, list).await.ok(200));
        let me = copy.get(&again, "/api/v1/me").await.ok(200);
        assert_ne!(me["history"], old["history"]);
    }

    // Life goes on where it was: numbers, names, counters, repetitions.
    let (ann, bob) = (copy.log_in("ann").await, copy.log_in("bob").await);
    let latest = copy.rows(&ann).await.last().map(|row| row["message_id"].as_u64()).expect("rows");
    let next = copy.say(&ann, &bob, 777, "after the import").await;
    assert!(Some(next) > latest, "{next} after {latest:?}");
    let repeated = message(3, json!({"user": bob.uid}), "in the tables \"3\"\n");
    let first = world.app.post(&world.people[0], "/api/v1/messages", repeated.clone()).await.ok(200);
    assert_eq!(copy.post(&ann, "/api/v1/messages", repeated).await.ok(200), first);
    assert_eq!(copy.sign_up("dan").await.uid, world.people[2].uid + 100_001);
    let group = json!({"name": "swimmers", "members": []});
    let gid = copy.post(&ann, "/api/v1/groups", group).await.ok(201)["gid"].as_u64();
    assert!(gid > Some(world.gid), "{gid:?}");
    let cat = copy.log_in("cat").await;
    let to_group = message(778, json!({"group": world.gid}), "am I in?");
    assert!(copy.post(&cat, "/api/v1/messages", to_group).await.status.is_client_error(), "cat had left");
    world.app.stop().await;
}

/// A row of each kind that people share, some in the tables and some in the journal.
#[tokio::test]
async fn friends_moments_settings_and_deletions_come_through() {
    let mut world = World::new().await;
    let [ann, bob, _] = &world.people[..] else { unreachable!("three") };
    let (app, key) = (&world.app, |n| json!({"client_id": client_id(n)}));
    let with = |n: u128, more: Value| {
        let mut body = key(n);
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    let wish = with(900, json!({"wanted": true, "text": "it is me"}));
    app.put(ann, &format!("/api/v1/friends/{}", bob.uid), wish.clone()).await.ok(201);
    app.put(bob, &format!("/api/v1/friends/{}", ann.uid), wish).await.ok(201);
    for n in [901, 902] {
        app.post(ann, "/api/v1/moments", with(n, json!({"text": "sun"}))).await.ok(201);
    }
    let feed = app.get(bob, "/api/v1/moments").await.ok(200);
    let at = |n: usize| format!("/api/v1/moments/{}", feed["rows"][n]["message_id"]);
    app.put(bob, &format!("{}/like", at(0)), with(903, json!({"liked": true}))).await.ok(201);
    app.post(bob, &format!("{}/comments", at(0)), with(904, json!({"text": "at last"}))).await.ok(201);
    let own = app.get(ann, "/api/v1/moments").await.ok(200);
    let last = own["rows"].as_array().expect("rows").last().expect("one")["message_id"].clone();
    app.post(ann, &format!("/api/v1/moments/{last}/delete"), key(905)).await.ok(201);
    // As a program may write it: in lines.
    let value = "{\n  \"write\": \"friends\"\n}";
    let body = format!("{{\"client_id\": \"{}\",\n \"value\": {value}}}", client_id(906));
    let request = app.request(Method::PUT, "/api/v1/settings/privacy").bearer_auth(&ann.token).body(body);
    app.send(request).await.ok(201);
    let read = json!({"message_id": feed["rows"][0]["message_id"]});
    app.put(bob, "/api/v1/conversations/u:0/read", read).await.ok(204);

    let file = world.export("kinds.jsonl").await;
    let fresh = world.other("fresh").await;
    done(&fresh, &["import", text(&file)]).await;
    let copy = over(&fresh).await;
    for person in &world.people {
        let again = copy.log_in(&person.name).await;
        assert_eq!(copy.rows(&again).await, world.app.rows(person).await, "{}", person.name);
        for path in ["/api/v1/friends", "/api/v1/moments", "/api/v1/settings"] {
            assert_eq!(copy.get(&again, path).await.ok(200), world.app.get(person, path).await.ok(200));
        }
    }
    world.app.stop().await;
}

/// Also elsewhere. A file from before the deletion brings its rows into no deleted account; a new installation is as the file says.
#[tokio::test]
async fn a_deleted_account_stays_so_and_its_rows_are_not_brought_back() {
    let mut world = World::new().await;
    let before = world.export("before.jsonl").await;
    let (ann, bob) = (world.people[0].clone(), world.people[1].clone());
    world.app.post(&ann, "/api/v1/me/delete", json!({"password": "correct horse"})).await.ok(204);
    let after = world.export("after.jsonl").await;
    let [moved, of_before] = [world.other("moved").await, world.other("of_before").await];
    done(&moved, &["import", text(&after)]).await;
    let mut copy = over(&moved).await;
    let account = json!({"name": ann.name, "password": "correct horse"});
    assert_eq!(
        copy.post_as_nobody("/api/v1/sessions", account.clone()).await.refused(401),
        "wrong_credentials"
    );
    assert_eq!(copy.post_as_nobody("/api/v1/accounts", account).await.refused(409), "name_taken");
    let again = copy.log_in(&bob.name).await;
    let shown = copy.get(&again, &format!("/api/v1/users/{}", ann.uid)).await.ok(200);
    assert_eq!(shown, json!({"uid": ann.uid, "name": "Deleted account", "deleted": true}));
    copy.stop().await;

    world.app.stop().await;
    let uid = ann.uid.to_string();
    let one = ["import", text(&before), "--user", &ann.name, "--into", &uid];
    let reported = refused(&world.home, &one).await;
    assert!(reported.contains(&format!("the account {uid} is deleted")), "{reported}");
    done(&of_before, &["import", text(&before)]).await;
    over(&of_before).await.log_in(&ann.name).await;
}

#[tokio::test]
async fn exporting_the_import_gives_the_same_records() {
    let world = World::new().await;
    let file = world.export("first.jsonl").await;
    let fresh = world.other("fresh").await;
    done(&fresh, &["import", text(&file)]).await;
    let second = world.file("second.jsonl");
    done(&fresh, &["export", text(&second)]).await;
    let records = |file: &Path| {
        let mut lines = lines(file);
        lines.retain(|line| line["type"] != "header" && line["type"] != "footer");
        lines
    };
    assert_eq!(records(&file), records(&second));
}

#[tokio::test]
async fn a_damaged_file_is_refused_by_line_and_nothing_has_happened() {
    let world = World::new().await;
    let file = world.export("good.jsonl").await;
    let good = std::fs::read_to_string(&file).expect("readable");
    let all: Vec<&str> = good.lines().collect();
    let count = all.len();
    let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let without = |at: usize| joined(&[&all[..at], &all[at + 1..]].concat());
    let cases = [
        (good[..good.len() / 2].to_owned(), "is cut off after line"),
        (joined(&all[..count - 1]), "is cut off after line"),
        (good.trim_end().to_owned(), "is cut off after line"),
        (String::new(), "is cut off after line 0"),
        (good.replace("in the tables", "in the fables"), "the checksum does not fit"),
        (without(10), "the checksum does not fit"),
        (without(0), "line 1: the header must come first"),
        (good.replacen("\"version\":4", "\"version\":9", 1), "line 1: this is tidemark-export version 9"),
        (good.replacen("\"type\":\"row\"", "\"type\":\"raw\"", 1), "`raw` is not a type of record"),
        (format!("{good}{}\n", all[5]), "comes after the footer"),
        (good.replacen('{', "[", 1), "line 1: "),
    ];
    let fresh = world.other("fresh").await;
    let bad = world.file("bad.jsonl");
    for (content, why) in cases {
        std::fs::write(&bad, content).expect("written");
        let reported = refused(&fresh, &["import", text(&bad)]).await;
        assert!(reported.contains("bad.jsonl") && reported.contains(why), "expected {why:?}: {reported}");
    }
    done(&fresh, &["import", text(&file)]).await;
}

#[tokio::test]
async fn copies_that_were_still_owed_are_delivered_after_the_import() {
    let world = World::new().await;
    let mut lines = lines(&world.export("all.jsonl").await);
    let [ann, bob, cat] = &world.people[..] else { unreachable!("three") };
    // As if the export had come between the acceptance of a message and its copy for Bob; and between Cat's leaving
    // and the copy for Ann.
    let mut owe = |is_it: &dyn Fn(&Value) -> bool, to: &Person, acceptance: u64, epoch: u32| {
        let at =
            lines.iter().position(|line| line["type"] == "row" && line["receiver"] == to.uid && is_it(line));
        let row = lines.remove(at.expect("the row is there"));
        let target = match row["conversation"].as_str() {
            Some(group) if group.starts_with("g:") => group.to_owned(),
            _ => format!("u:{}", to.uid),
        };
        let mut pending = json!({
            "type": "pending", "acceptance": acceptance, "target": target,
            "owed": [{"uid": to.uid, "epoch": epoch}],
        });
        for field in ["kind", "sender", "client_id", "body", "sent_at"] {
            pending[field] = row[field].clone();
        }
        let footer = lines.len() - 1;
        lines.insert(footer, pending.clone());
        pending
    };
    let reported = owe(&|row| row["body"]["text"] == "in the tables \"7\"\n", bob, 9, 0);
    let left = owe(&|row| row["body"]["action"] == "left", ann, 12, 1);
    let file = world.file("owing.jsonl");
    seal(lines, &file);
    let fresh = world.other("fresh").await;
    done(&fresh, &["import", text(&file)]).await;

    let copy = over(&fresh).await;
    for (person, owed, marked) in [(bob, reported, "u"), (ann, left, "g")] {
        let person = copy.log_in(&person.name).await;
        let delivered = async {
            loop {
                let rows = copy.rows(&person).await;
                if rows.last().is_some_and(|row| row["client_id"] == owed["client_id"]) {
                    return rows;
                }
            }
        };
        let rows = tokio::time::timeout(PATIENCE, delivered).await.expect("delivered in time");
        let last = rows.last().expect("rows");
        assert_eq!((&last["body"], &last["sent_at"]), (&owed["body"], &owed["sent_at"]));
        assert!(last["conversation"].as_str().is_some_and(|name| name.starts_with(marked)), "{last}");
    }
    assert_eq!(cat.name, "cat");
}

#[tokio::test]
async fn an_id_near_the_end_of_the_line_is_refused() {
    let world = World::new().await;
    let mut lines = lines(&world.export("all.jsonl").await);
    let crafted = lines.iter().rposition(|line| line["type"] == "row").expect("rows");
    for (id, why) in
        [(9_007_199_254_740_990u64, "is implausible"), (9_007_199_254_740_992, "is not between 1 and")]
    {
        lines[crafted]["message_id"] = id.into();
        let file = world.file("crafted.jsonl");
        seal(lines.clone(), &file);
        let reported = refused(&world.other("fresh").await, &["import", text(&file)]).await;
        assert!(reported.contains(&format!("line {}: message_id {id} {why}", crafted + 1)), "{reported}");
    }
}

#[tokio::test]
async fn only_an_empty_installation_is_filled() {
    let mut world = World::new().await;
    let file = world.export("all.jsonl").await;
    let at_work = if is_on_postgres() {
        "servers or an import are using the database"
    } else {
        "in use by another process"
    };
    let reported = refused(&world.home, &["import", text(&file)]).await;
    assert!(reported.contains(at_work), "{reported}");
    world.app.stop().await;
    let reported = refused(&world.home, &["import", text(&file)]).await;
    assert!(reported.contains("the installation is not empty"), "{reported}");
}

/// Fails instead of writing the chunk after so many.
struct Dies<'a> {
    inner: &'a mut dyn Import,
    after: usize,
}

#[async_trait]
impl Import for Dies<'_> {
    async fn begin(&mut self, source: &str) -> Result<u64, ImportError> {
        self.inner.begin(source).await
    }

    async fn write(&mut self, chunk: Vec<Record>) -> Result<(), ImportError> {
        self.after = self.after.checked_sub(1).ok_or(StoreError::unavailable("power is gone"))?;
        self.inner.write(chunk).await
    }

    async fn finish(&mut self, history: HistoryId) -> Result<(), ImportError> {
        self.inner.finish(history).await
    }
}

#[tokio::test]
async fn an_interrupted_import_goes_on_after_its_last_chunk_and_is_not_served_before() {
    let world = World::new().await;
    let [ann, bob, _] = &world.people[..] else { unreachable!("three") };
    for batch in 0..20 {
        let name = |n: u128| message(100_000 + 200 * batch + n, json!({"user": bob.uid}), "one of many");
        let messages: Vec<Value> = (0..200).map(name).collect();
        world.app.post(ann, "/api/v1/messages/batch", json!({"messages": messages})).await.ok(200);
    }
    let file = world.export("many.jsonl").await;

    let home = world.other("fresh").await;
    let mut config = Config::default();
    home.configure(&mut config.storage);
    let bar = ProgressBar::hidden();
    let checked = transfer::check(&file, config.sequence.section_size, &bar).expect("a good archive");
    let storage = boot::Storage::open(&config).await.expect("opened");
    let numbers = match storage.check_message_ids(&config).await.expect("read") {
        MessageIds::Seqsvr => Some(boot::sequencer(&config).await.expect("opened")),
        MessageIds::Store => None,
    };
    let mut import = storage.import().expect("plain");
    let mut dies = Dies { inner: &mut *import, after: 2 };
    let sequencer = numbers.as_deref();
    let files = boot::files_place(&config).expect("a place");
    let filling = Filling { into: &mut dies, sequencer, files: &files };
    let died = transfer::import(filling, &file, &checked, boot::new_history(), &bar).await;
    assert!(matches!(died, Err(TransferError::Import(ImportError::Store(_)))), "{died:?}");
    if let Some(numbers) = &numbers {
        numbers.shutdown().await;
    }
    storage.close().await.expect("closed");
    drop((import, numbers));

    let not_served =
        boot::start(&config, Clock::system(), Version::default()).await.err().map(|error| error.to_string());
    let why = "an import into it was not finished; run `tidemark import` with the same file again";
    assert!(not_served.as_ref().is_some_and(|reported| reported.contains(why)), "{not_served:?}");
    let other = world.file("other.jsonl");
    world.app.say(ann, bob, 9_999, "the file is another now").await;
    done(&world.home, &["export", text(&other)]).await;
    let reported = refused(&home, &["import", text(&other)]).await;
    assert!(reported.contains("the import of another file was started here"), "{reported}");

    let reported = done(&home, &["import", text(&file)]).await;
    assert!(reported.contains("records imported, 10000 of them by an earlier run"), "{reported}");
    let second = world.file("second.jsonl");
    done(&home, &["export", text(&second)]).await;
    let records = |file: &Path| lines(file).into_iter().filter(|line| line["type"] != "header").count();
    assert_eq!(records(&file), records(&second));
    assert!(lines(&file)[1..].iter().zip(&lines(&second)[1..]).all(|(a, b)| a["type"] == "footer" || a == b));
}
