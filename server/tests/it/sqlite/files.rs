//! The files of an installation: what of them is missing, damaged or of another moment is named with what helps; and
//! nobody but their owner reads them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use tidemark::boot;
use tidemark::config::Config;
use tidemark::domain::Clock;
use tidemark_process::Version;
use tokio::process::Command;

use crate::api::transfer::{done, over, refused};
use crate::sqlite::restored::copy;
use crate::support::{TestApp, message, texts};

const FILES: [&str; 4] = ["tidemark.db", "sequence.db", "ids.db", "invites.key"];

/// The log of the journal.
const LOG: [&str; 2] = ["tidemark.journal.0.dat", "tidemark.journal.1.dat"];

fn config(data: &Path) -> Config {
    let mut config = Config::default();
    config.storage.data_dir = data.to_owned();
    config.server.listen = "127.0.0.1:0".parse().expect("an address");
    config
}

/// Why no server starts over these files.
async fn no_start(data: &Path) -> String {
    let error = boot::start(&config(data), Clock::system(), Version::default())
        .await
        .err()
        .expect("refused")
        .to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

/// A stopped installation with two people and a message.
async fn stopped(data: &Path) {
    let mut app = over(data).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "hi").await;
    app.stop().await;
}

/// An interrupted start has marked some of the files; and the one after it may be interrupted, too.
#[tokio::test]
async fn starts_that_are_interrupted_again_and_again_harm_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("data");
    stopped(&data).await;
    for _ in 0..2 {
        for name in ["ids.db", "sequence.db", "ids.db", "sequence.db"] {
            let file = rusqlite::Connection::open(data.join(name)).expect("opened");
            file.execute_batch(UNMARKABLE).expect("prepared");
            drop(file);
            let reported = no_start(&data).await;
            assert!(reported.contains(&format!("{name} cannot be used now (not now)")), "{reported}");
            let file = rusqlite::Connection::open(data.join(name)).expect("opened");
            file.execute_batch("DROP TRIGGER refuse").expect("mended");
        }
        over(&data).await.stop().await;
    }
}

/// `restored` renews numbers in several files; when it ends in between, some may come again.
#[tokio::test]
async fn after_an_interrupted_restored_nothing_starts_until_it_is_run_again() {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("data");
    stopped(&data).await;
    let ids = data.join("ids.db");
    rusqlite::Connection::open(&ids).expect("opened").execute_batch(UNMARKABLE).expect("prepared");
    let reported = refused(&data, &["restored"]).await;
    assert!(reported.contains("ids.db cannot be used now"), "{reported}");
    rusqlite::Connection::open(&ids).expect("opened").execute_batch("DROP TRIGGER refuse").expect("mended");

    let reported = no_start(&data).await;
    assert!(reported.contains("tidemark.db was restored") && reported.contains("run it again"), "{reported}");
    done(&data, &["restored"]).await;
    let app = over(&data).await;
    assert!(app.sign_up("cat").await.uid > 100_000);
}

/// Lets a start end when it marks this file, after those before it.
const UNMARKABLE: &str =
    "CREATE TRIGGER refuse BEFORE INSERT ON stamp BEGIN SELECT RAISE(FAIL, 'not now'); END";

#[tokio::test]
async fn a_missing_or_damaged_file_is_named_with_what_helps() {
    let place = tempfile::tempdir().expect("a directory");
    let good = place.path().join("good");
    stopped(&good).await;
    let data = place.path().join("data");
    let check = async |change: &dyn Fn(&Path), name: &str, parts: &[&str]| {
        copy(&good, &data);
        change(&data.join(name));
        let before = fs::read(data.join(name)).ok();
        let reported = no_start(&data).await;
        assert!(reported.contains(name), "{name}: {reported}");
        parts
            .iter()
            .for_each(|part| assert!(reported.contains(part), "{name}: {part} is not in: {reported}"));
        assert_eq!(fs::read(data.join(name)).ok(), before, "{name} was changed");
        fs::remove_dir_all(&data).expect("removed");
    };
    let cut = |path: &Path| {
        let bytes = fs::read(path).expect("readable");
        fs::write(path, &bytes[..bytes.len() - 4096]).expect("cut");
    };
    for name in &FILES[1..] {
        let restored = ["restore it", "run `tidemark restored`"];
        check(
            &|path| fs::remove_file(path).expect("removed"),
            name,
            &["is missing", restored[0], restored[1]],
        )
        .await;
        if *name == "invites.key" {
            check(&|path| fs::write(path, "").expect("emptied"), name, &["is missing", restored[1]]).await;
            check(
                &|path| fs::write(path, "f".repeat(32)).expect("other"),
                name,
                &["run `tidemark restored`"],
            )
            .await;
            continue;
        }
        check(&|path| fs::write(path, "").expect("emptied"), name, &["is empty", restored[0], restored[1]])
            .await;
        check(
            &|path| fs::write(path, "x".repeat(9_000)).expect("garbage"),
            name,
            &["it is not a database", "good copy"],
        )
        .await;
        check(&cut, name, &["it is cut off", "good copy"]).await;
        let of_another_program = |path: &Path| {
            fs::remove_file(path).expect("removed");
            let file = rusqlite::Connection::open(path).expect("made");
            file.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE notes (text)").expect("filled");
        };
        check(&of_another_program, name, &["does not belong to this installation", restored[1]]).await;
    }
    let lost = ["is missing", "restore it", "run `tidemark restored`"];
    for log in LOG {
        check(&|path| fs::remove_file(path).expect("removed"), log, &lost).await;
        check(&|path| fs::write(path, "").expect("emptied"), log, &["is empty", lost[1], lost[2]]).await;
        let garbage = ["it does not begin as a log", "good copy"];
        check(&|path| fs::write(path, "x".repeat(9_000)).expect("garbage"), log, &garbage).await;
        let a_bit = |path: &Path| {
            let mut bytes = fs::read(path).expect("readable");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(path, bytes).expect("changed");
        };
        check(&a_bit, log, &["its checksum is wrong", "move it away and run `tidemark restored`"]).await;
        let one_byte = |path: &Path| {
            let bytes = fs::read(path).expect("readable");
            fs::write(path, &bytes[..bytes.len() - 1]).expect("cut");
        };
        check(&one_byte, log, &["it is cut off", "move it away and run `tidemark restored`"]).await;
    }
    let all = "restore all files of one moment";
    check(
        &|path| fs::write(path, "x".repeat(9_000)).expect("garbage"),
        FILES[0],
        &["it is not a database", all],
    )
    .await;
    check(&cut, FILES[0], &["it is cut off", all]).await;
    let belongs = ["sequence.db is there", "restore the database that belongs to it"];
    check(&|path| fs::remove_file(path).expect("removed"), FILES[0], &["is missing", belongs[0], belongs[1]])
        .await;
    check(&|path| fs::write(path, "").expect("emptied"), FILES[0], &["is empty", belongs[0]]).await;
    let wrong = |path: &Path| _ = fs::copy(path.with_file_name("ids.db"), path).expect("copied");
    check(&wrong, "sequence.db", &["is the file `ids`", "its name back"]).await;
}

#[tokio::test]
async fn a_file_of_another_moment_or_installation_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let (early, late, other, data) =
        ["early", "late", "other", "data"].map(|name| place.path().join(name)).into();
    stopped(&early).await;
    copy(&early, &late);
    let mut app = over(&late).await;
    let (ann, bob) = (app.log_in("ann").await, app.log_in("bob").await);
    app.say(&ann, &bob, 2, "later").await;
    app.stop().await;
    stopped(&other).await;
    for name in FILES[1..].iter().chain(&LOG) {
        for (from, part) in [(&early, "of one moment"), (&other, "tidemark restored")] {
            // The key stays the same from start to start.
            if *name == "invites.key" && from == &early {
                continue;
            }
            copy(&late, &data);
            fs::copy(from.join(name), data.join(name)).expect("replaced");
            let reported = no_start(&data).await;
            assert!(reported.contains(name) && reported.contains(part), "{name}: {reported}");
            fs::remove_dir_all(&data).expect("removed");
        }
    }
    // Its frames may follow what the other files have.
    copy(&early, &data);
    for log in LOG {
        fs::copy(late.join(log), data.join(log)).expect("replaced");
    }
    let reported = no_start(&data).await;
    assert!(reported.contains(LOG[0]) && reported.contains("of one moment"), "{reported}");
    fs::remove_dir_all(&data).expect("removed");
    for (from, part) in
        [(&early, "restore files of one moment"), (&other, "does not belong to this installation")]
    {
        copy(&late, &data);
        fs::copy(from.join("tidemark.db"), data.join("tidemark.db")).expect("replaced");
        let reported = no_start(&data).await;
        assert!(reported.contains(part), "{reported}");
        fs::remove_dir_all(&data).expect("removed");
    }

    // The database of a moment and what only counts from another: `restored` goes on. A journal of another moment it does not touch.
    copy(&late, &data);
    fs::copy(early.join("ids.db"), data.join("ids.db")).expect("replaced");
    fs::copy(early.join(LOG[1]), data.join(LOG[1])).expect("replaced");
    let reported = refused(&data, &["restored"]).await;
    assert!(
        reported.contains("tidemark.journal.1.dat is of another moment") && reported.contains("move it away"),
        "{reported}"
    );
    fs::rename(data.join(LOG[1]), place.path().join("away.dat")).expect("moved");
    fs::remove_file(data.join("sequence.db")).expect("removed");
    fs::remove_file(data.join("invites.key")).expect("removed");
    done(&data, &["restored"]).await;
    let app = over(&data).await;
    let (ann, bob) = (app.log_in("ann").await, app.log_in("bob").await);
    assert_eq!(texts(&app.rows(&bob).await), ["hi", "later"]);
    assert!(app.say(&ann, &bob, 3, "latest").await > 10_000_000);
    assert!(app.sign_up("cat").await.uid > 110_000);
}

/// Rows that were accepted and not flushed are lost with the log; all else is there.
#[tokio::test]
async fn restored_goes_on_without_a_log_that_is_lost() {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("data");
    stopped(&data).await;
    fs::remove_file(data.join(LOG[0])).expect("removed");
    assert!(no_start(&data).await.contains("tidemark.journal.0.dat is missing"));
    let exported = refused(&data, &["export", place.path().join("all").to_str().expect("UTF-8")]).await;
    assert!(exported.contains("tidemark.journal.0.dat: it is missing"), "{exported}");
    done(&data, &["restored"]).await;
    let mut app = over(&data).await;
    let (ann, bob) = (app.log_in("ann").await, app.log_in("bob").await);
    assert_eq!(texts(&app.rows(&bob).await), ["hi"]);
    app.say(&ann, &bob, 2, "later").await;
    app.stop().await;
    let app = over(&data).await;
    assert_eq!(texts(&app.rows(&app.log_in("bob").await).await), ["hi", "later"]);
}

/// An operator who gives up one file of the log may still want the contents of the other.
#[tokio::test]
async fn what_is_left_of_a_log_that_is_given_up_is_kept_aside() {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("data");
    stopped(&data).await;
    let log = fs::read(data.join(LOG[0])).expect("readable");
    fs::remove_file(data.join(LOG[1])).expect("removed");
    done(&data, &["restored"]).await;
    let names = fs::read_dir(&data).expect("readable").map(|file| file.expect("readable").path());
    let is_aside = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("{}.", LOG[0])))
    };
    let aside: Vec<_> = names.filter(is_aside).collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert_eq!(fs::read(&aside[0]).expect("readable"), log);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

fn all_private(data: &Path) {
    assert_eq!(mode(data), 0o700, "{}", data.display());
    let mut looked_at = 0;
    for entry in fs::read_dir(data).expect("readable") {
        let path = entry.expect("readable").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        looked_at += 1;
    }
    assert!(looked_at >= 9, "{looked_at} files");
}

#[tokio::test]
async fn the_files_are_their_owners_alone_whatever_they_were() {
    let place = tempfile::tempdir().expect("a directory");
    let data: PathBuf = place.path().join("above").join("data");
    // In a process of its own: the umask belongs to the whole process.
    let (program, at) = (env!("CARGO_BIN_EXE_tidemark"), data.display());
    let script = format!("umask 000 && exec '{program}' migrate --data-dir '{at}'");
    let output = tokio::process::Command::new("sh").args(["-c", &script]).output();
    let output = tokio::time::timeout(crate::support::PATIENCE, output).await.expect("in time").expect("run");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(mode(data.parent().expect("a parent")), 0o700);
    for entry in fs::read_dir(&data).expect("readable") {
        let path = entry.expect("readable").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }

    for entry in fs::read_dir(&data).expect("readable") {
        let path = entry.expect("readable").path();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).expect("widened");
    }
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).expect("widened");
    let app: TestApp = over(&data).await;
    app.sign_up("ann").await;
    all_private(&data);
}

/// An operator restores as root what another user serves.
#[tokio::test]
async fn what_root_makes_belongs_to_the_owner_of_the_data_directory() {
    const SERVES: u32 = 65_534;
    let place = tempfile::tempdir().expect("a directory");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("others may pass");
    let data = place.path().join("data");
    stopped(&data).await;
    let owned = |path: &Path| fs::metadata(path).expect("there").uid();
    let all = || fs::read_dir(&data).expect("readable").map(|file| file.expect("readable").path());
    for path in all().chain([data.clone()]) {
        chown(&path, Some(SERVES), Some(SERVES)).expect("this test runs as root");
    }
    for name in ["invites.key", "ids.db"] {
        fs::remove_file(data.join(name)).expect("removed");
    }
    done(&data, &["restored"]).await;
    let others: Vec<_> = all().filter(|path| owned(path) != SERVES).collect();
    assert!(others.is_empty(), "the server could not read {others:?}");

    // A file that is there and cannot be read is not a missing one.
    let key = data.join("invites.key");
    chown(&key, Some(0), Some(0)).expect("root's");
    // Where it was built others may not pass.
    let program = place.path().join("tidemark");
    fs::copy(env!("CARGO_BIN_EXE_tidemark"), &program).expect("copied");
    let mut list = Command::new(program);
    list.args(["user", "list", "--data-dir"]).arg(&data).uid(SERVES).gid(SERVES);
    let said = list.output().await.expect("runs");
    let reported = String::from_utf8_lossy(&said.stderr);
    assert!(reported.contains("invites.key cannot be used now (Permission denied"), "{reported}");
    chown(&key, Some(SERVES), Some(SERVES)).expect("given back");
    assert!(list.output().await.expect("runs").status.success());
}

/// Somebody tidies up beside a server that is at work.
#[tokio::test]
async fn a_second_server_is_refused_also_when_the_lock_file_is_gone() {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("data");
    let mut app = over(&data).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "first").await;
    fs::remove_file(data.join("tidemark.db.lock")).expect("removed");
    let reported = no_start(&data).await;
    assert!(reported.contains("in use by another process"), "{reported}");
    app.say(&ann, &bob, 2, "second").await;
    app.stop().await;
    let app = over(&data).await;
    assert_eq!(texts(&app.rows(&app.log_in("bob").await).await), ["first", "second"]);
}

#[tokio::test]
async fn a_server_whose_files_are_removed_accepts_nothing_more() {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("data");
    let app = over(&data).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "first").await;
    fs::remove_dir_all(&data).expect("removed");
    let to = serde_json::json!({"user": bob.uid});
    app.post(&ann, "/api/v1/messages", message(2, to, "second")).await.refused(503);
    let ready = app.send(app.request(reqwest::Method::GET, "/ready")).await;
    ready.refused(503);
    assert!(ready.text.contains("tidemark.journal.0.dat"), "{}", ready.text);
}
