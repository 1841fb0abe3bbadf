//! `tidemark backup` beside a server, and `tidemark restore`: every moment comes back as it was, and no number twice.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::Method;
use serde_json::Value;
use tidemark_test_support::until::until;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::api::transfer::{World, done, over, refused, text};
use crate::sqlite::restored::{Given, give, no_code_leads_anywhere};
use crate::support::{TestApp, texts};

/// The backups in a directory, oldest first.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("readable").map(|entry| entry.expect("readable").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "tidemark-backup")).collect();
    files.sort();
    files
}

fn size(file: &Path) -> u64 {
    std::fs::metadata(file).expect("there").len()
}

/// What everybody has.
async fn rows(app: &TestApp, world: &World) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for person in &world.people {
        // Sessions are those of the backup.
        all.push(app.rows(person).await);
    }
    all
}

/// The time at which a backup file was taken, as `--at` takes it.
fn moment(file: &Path) -> String {
    let name = file.file_stem().and_then(|name| name.to_str()).expect("UTF-8");
    format!("{}:{}:{}", &name[..13], &name[13..15], &name[15..])
}

#[tokio::test]
async fn every_backup_of_a_server_restores_what_was_answered_before_it_and_nothing_later() {
    let world = World::new().await;
    let (app, dir) = (&world.app, world.file("backups"));
    let (ann, bob) = (&world.people[0], &world.people[1]);
    let mut moments = Vec::new();
    let mut last = 0;
    for round in 0..3 {
        moments.push(rows(app, &world).await);
        let said = done(&world.home, &["backup", text(&dir)]).await;
        assert_eq!(said.contains("a full one, since it is the first one here"), round == 0, "{said}");
        for n in 0..10 {
            last = app.say(ann, bob, 5_000 + 10 * round + n, &format!("after backup {round}")).await;
        }
    }
    let lost = app.get(ann, "/api/v1/seq").await.ok(200)["history"].clone();
    let files = files(&dir);
    assert_eq!(files.len(), 3);
    assert_eq!(std::fs::metadata(&dir).expect("there").permissions().mode() & 0o777, 0o700);

    for (round, (file, moment_rows)) in files.iter().zip(&moments).enumerate() {
        assert_eq!(std::fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
        let new = world.file(&format!("new-{round}"));
        let said = done(&new, &["restore", text(&dir), "--at", &moment(file)]).await;
        assert!(said.starts_with("restored as of "), "{said}");
        let app = over(&new).await;
        assert_eq!(&rows(&app, &world).await, moment_rows, "backup {round}");
        assert_ne!(app.get(ann, "/api/v1/seq").await.ok(200)["history"], lost);
        assert!(app.say(ann, bob, 6_000, "again").await > last + 9_000_000);
        let heard = app.rows(bob).await;
        assert!(!texts(&heard).contains(&&*format!("after backup {round}")), "backup {round}");
        assert!(texts(&heard).contains(&"again"));
    }
}

#[tokio::test]
async fn a_second_backup_of_an_idle_installation_is_small_and_a_full_one_is_not() {
    let mut world = World::new().await;
    world.app.stop().await;
    let dir = world.file("backups");
    for args in [&[][..], &[], &["--full"]] {
        done(&world.home, &[&["backup", text(&dir)], args].concat()).await;
    }
    let files = files(&dir);
    let [full, small, again] = &files[..] else { panic!("{files:?}") };
    assert!(size(full) > 200_000, "{}", size(full));
    assert!(size(small) < size(full) / 4, "{} of {}", size(small), size(full));
    assert!(size(again) >= size(full) - 65_536, "{} of {}", size(again), size(full));
    // A full one needs no other.
    std::fs::remove_file(full).expect("removed");
    let said = done(&world.home, &["backup", "--check", text(&dir)]).await;
    assert!(said.contains("can be restored: the moment ") && said.contains(" 0 hours "), "{said}");
    let said = refused(&world.home, &["backup", "--check", text(small)]).await;
    assert!(said.contains("which is missing"), "{said}");
}

/// Whatever is flushed, checkpointed and answered meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn backups_under_load_hold_what_was_answered_before_them_and_nothing_sent_after_them() {
    let place = tempfile::tempdir().expect("a directory");
    let (data, dir) = (place.path().join("data"), place.path().join("backups"));
    let app = TestApp::start_with(|config| {
        config.storage.data_dir.clone_from(&data);
        config.storage.flush_rows = 20;
        config.limits.sends_per_account_per_second = 0;
        config.limits.stored_kib_per_account_per_day = 0;
    })
    .await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let (sent, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    let sending = async {
        loop {
            let n = sent.fetch_add(1, Ordering::SeqCst);
            app.say(&ann, &bob, n.into(), &format!("{n} {}", "x".repeat(2_000))).await;
            answered.store(n + 1, Ordering::SeqCst);
        }
    };
    let backing_up = async {
        let mut ledger = Vec::new();
        for _ in 0..4 {
            let before = answered.load(Ordering::SeqCst);
            until("more is sent", async || answered.load(Ordering::SeqCst) >= before + 40).await;
            let before = answered.load(Ordering::SeqCst);
            done(&data, &["backup", text(&dir)]).await;
            ledger.push((before, sent.load(Ordering::SeqCst)));
        }
        ledger
    };
    let ledger = tokio::select! {
        ledger = backing_up => ledger,
        () = sending => unreachable!("it goes on"),
    };
    let last = app.rows(&bob).await.last().and_then(|row| row["message_id"].as_u64()).expect("an id");
    for (file, (answered, sent)) in files(&dir).iter().zip(ledger) {
        let new = place.path().join(file.file_stem().expect("a name"));
        done(&new, &["restore", text(file)]).await;
        let app = over(&new).await;
        let rows = app.rows(&bob).await;
        let heard: Vec<u64> = texts(&rows)
            .iter()
            .map(|text| text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number"))
            .collect();
        assert!(heard.iter().copied().eq(0..heard.len() as u64), "without gaps, and none twice: {heard:?}");
        let heard = heard.len() as u64;
        assert!((answered..=sent).contains(&heard), "{answered} answered, {sent} sent, {heard} restored");
        assert!(app.say(&ann, &bob, 1_000_000, "again").await > last);
    }
}

#[tokio::test]
async fn nothing_that_was_given_after_the_backup_is_given_again() {
    let mut world = World::new().await;
    let dir = world.file("backups");
    done(&world.home, &["backup", text(&dir)]).await;
    let lost = give(&world.app, &Given::default()).await;
    world.app.stop().await;

    let new = world.file("new");
    done(&new, &["restore", text(&dir)]).await;
    let app = over(&new).await;
    give(&app, &lost).await;
    no_code_leads_anywhere(&app, &lost.codes).await;
}

#[tokio::test]
async fn a_backup_goes_through_a_pipe() {
    let world = World::new().await;
    let before = rows(&world.app, &world).await;
    let program = |args: &[&str], data: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        command.args(args).arg("--data-dir").arg(data).stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    };
    let written = program(&["backup", "-"], &world.file("data")).output().await.expect("runs");
    assert!(written.status.success());
    let file = world.file("a file of another name");
    std::fs::write(&file, &written.stdout).expect("written");
    done(&world.home, &["backup", "--check", text(&file)]).await;

    let new = world.file("new");
    let mut restoring = program(&["restore", "-"], &new).spawn().expect("started");
    let mut to = restoring.stdin.take().expect("piped");
    to.write_all(&written.stdout).await.expect("written");
    drop(to);
    assert!(restoring.wait().await.expect("ended").success());
    let left: Vec<_> =
        std::fs::read_dir(&new).expect("readable").map(|file| file.expect("read").path()).collect();
    assert!(left.iter().all(|path| path.extension().is_some_and(|ending| ending != "part")), "{left:?}");
    assert_eq!(rows(&over(&new).await, &world).await, before);
}

#[tokio::test]
async fn the_metrics_say_when_the_last_good_backup_was_made() {
    let world = World::new().await;
    let metric = async || {
        let text = world.app.send(world.app.request(Method::GET, "/metrics")).await.text;
        let line = text.lines().find_map(|line| line.strip_prefix("tidemark_backup_timestamp_seconds "));
        line.map(|value| value.parse::<f64>().expect("a number"))
    };
    assert_eq!(metric().await, None);
    let dir = world.file("backups");
    done(&world.home, &["backup", text(&dir)]).await;
    let first = metric().await.expect("there was one");
    done(&world.home, &["backup", text(&dir)]).await;
    assert!(metric().await.expect("there was one") > first);
}
