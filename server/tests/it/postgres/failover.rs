//! The database goes on from an older state: a standby took over that lacks the newest rows, or a backup was restored. Real servers of
//! PostgreSQL behind one address, which moves as that of a real installation does.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use tidemark::boot;
use tidemark::config::Config;
use tidemark::domain::Clock;
use tidemark::store::postgres::Replication;
use tidemark_process::Version;
use tidemark_test_support::servers::postgres::{Server, durable_database};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use super::refusals::{refused_with, served_with};
use super::servers::beside;
use crate::support::{Database, PATIENCE, Person, Socket, TestApp, message, texts};

const RESTART: u16 = 1012;

/// A primary behind an address of its own.
pub(super) struct World {
    pub(super) primary: Server,
    address: TempDir,
    url: String,
}

impl World {
    pub(super) async fn start() -> World {
        let primary = Server::start_with("-c fsync=on");
        let address = tempfile::tempdir().expect("a directory");
        let at = address.path().join("db");
        let url = primary.new_database().await;
        let url = url.replace(&primary.folder().display().to_string(), &at.display().to_string());
        let world = World { primary, address, url };
        world.lead_to(&world.primary);
        world
    }

    fn lead_to(&self, server: &Server) {
        let (at, next) = (self.address.path().join("db"), self.address.path().join("next"));
        symlink(server.folder(), &next).expect("made");
        fs::rename(next, at).expect("moved");
    }

    pub(super) async fn server(&self, change: impl FnOnce(&mut Config)) -> TestApp {
        let url = self.url.clone();
        Database::Postgres
            .start_with(|config| {
                config.storage.database_url = url.into();
                change(config);
            })
            .await
    }

    /// A standby for which every commit waits from now on.
    pub(super) async fn synchronous_standby(&self) -> Server {
        let standby = self.primary.standby("-c fsync=on");
        standby.run();
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
        self.primary.execute("SELECT pg_reload_conf()").await;
        standby
    }

    /// The primary is lost, and this standby takes over.
    pub(super) async fn fail_over_to(&self, standby: &Server) {
        self.primary.kill();
        standby.promote().await;
        self.lead_to(standby);
    }
}

/// Asks again while connections are found broken, which are replaced one call after the other.
async fn history(app: &TestApp, who: &Person) -> Value {
    let told = timeout(PATIENCE, async {
        loop {
            let answer = app.get(who, "/api/v1/me").await;
            if answer.status != 503 {
                break answer.ok(200)["history"].clone();
            }
        }
    });
    told.await.expect("in time")
}

/// Connections that broke are replaced one call after the other; the client sends again, under the same name.
async fn say_again(app: &TestApp, from: &Person, to: &Person, n: u128, text: &str) -> u64 {
    let sent = timeout(PATIENCE, async {
        loop {
            let answer = app.post(from, "/api/v1/messages", message(n, json!({"user": to.uid}), text)).await;
            if answer.status.is_success() {
                break answer.json()["message_id"].as_u64().expect("an id");
            }
            answer.refused(503);
        }
    });
    sent.await.expect("in time")
}

/// The rows of a device that drops everything because of a new history.
async fn device_from_nothing(app: &TestApp, who: &Person) -> Vec<Value> {
    let mut device = app.socket(who).await;
    device.expect("welcome").await;
    device.heartbeat(0).await;
    let entries = device.expect("entries").await;
    assert_eq!(entries["more"], false, "{entries}");
    entries["entries"].as_array().expect("rows").clone()
}

async fn closed_for_a_restart(mut device: Socket) {
    assert_eq!(device.closed().await, RESTART);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_without_the_newest_rows_begins_another_history_with_larger_ids() {
    let world = World::start().await;
    let mut one = world.server(|_| {}).await;
    let mut other = beside(&one).await;
    let (ann, bob) = (one.sign_up("ann").await, one.sign_up("bob").await);
    // Has no row, and no head, before the standby is cut off.
    let cem = one.sign_up("cem").await;
    one.say(&ann, &bob, 1, "kept").await;
    let before = history(&one, &ann).await;

    let standby = world.primary.standby("-c fsync=on");
    let lost = other.say(&ann, &bob, 2, "lost").await;
    other.say(&ann, &cem, 3, "lost, too").await;
    let dea = one.sign_up("dea").await;
    let mut device = other.socket(&bob).await;
    assert_eq!(device.begin().await, lost);
    world.primary.kill();
    standby.run();
    world.fail_over_to(&standby).await;

    // One has something to do, and the other looks by itself.
    one.get(&ann, "/api/v1/range").await.refused(503);
    assert!(one.must_end().await.contains("continues an older state"));
    other.must_end().await;
    tokio::join!(one.stop(), other.stop(), closed_for_a_restart(device));
    tokio::join!(one.start_again(), other.start_again());

    let after = history(&one, &ann).await;
    assert_ne!(after, before);
    assert_eq!(history(&other, &ann).await, after, "one of the two renewed it");
    let next = one.say(&ann, &bob, 4, "after").await;
    assert_eq!(next, 10_000_002, "moved once, by far more than was lost");
    other.say(&ann, &cem, 5, "the first").await;
    for (who, had) in [(&bob, vec!["kept", "after"]), (&cem, vec!["the first"])] {
        let rows = device_from_nothing(&other, who).await;
        assert_eq!(rows, one.rows(who).await);
        assert_eq!(texts(&rows), had);
        assert!(rows.last().is_some_and(|row| row["message_id"].as_u64() > Some(lost)), "{rows:?}");
    }
    let eve = one.sign_up("eve").await;
    assert!(eve.uid > dea.uid, "{} was given before", eve.uid);

    one.restart().await;
    assert_eq!(history(&one, &ann).await, after, "nothing has changed since");
    assert_eq!(one.say(&ann, &bob, 6, "more").await, next + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_the_same_primary_loses_nothing_and_keeps_the_history() {
    let world = World::start().await;
    let mut app = world.server(|_| {}).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "before").await;
    let before = history(&app, &ann).await;
    world.primary.kill();
    world.primary.run();
    app.restart().await;
    assert_eq!(app.say(&ann, &bob, 2, "after").await, 2);
    assert_eq!(history(&app, &ann).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_synchronous_standby_takes_over_under_the_same_history() {
    let world = World::start().await;
    let standby = world.synchronous_standby().await;
    let mut app = world.server(|config| config.storage.replication = Replication::Synchronous).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "before").await;
    let before = history(&app, &ann).await;
    let mut device = app.socket(&bob).await;
    let cursor = device.begin().await;
    world.fail_over_to(&standby).await;

    let next = say_again(&app, &ann, &bob, 2, "after").await;
    assert_eq!(next, cursor + 1, "the server and its sockets go on");
    let entries = timeout(PATIENCE, async {
        loop {
            device.heartbeat(cursor).await;
            let frame = device.next().await.expect("open");
            if frame["type"] == "entries" {
                break frame["entries"].clone();
            }
        }
    });
    let entries = entries.await.expect("in time");
    assert_eq!(texts(entries.as_array().expect("rows")), ["after"]);
    assert_eq!(history(&app, &ann).await, before);

    app.config.storage.replication = Replication::Asynchronous;
    app.restart().await;
    assert_eq!(history(&app, &ann).await, before, "this failover is known");
}

/// One server was told that replication is synchronous, which it is not; the other one was not told so.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wrongly_trusts_a_standby_does_not_speak_for_the_others() {
    let world = World::start().await;
    let mut careful = world.server(|_| {}).await;
    let mut trusting = world.server(|config| config.storage.replication = Replication::Synchronous).await;
    let (ann, bob) = (careful.sign_up("ann").await, careful.sign_up("bob").await);
    careful.say(&ann, &bob, 1, "kept").await;
    let before = history(&careful, &ann).await;
    let standby = world.primary.standby("-c fsync=on");
    careful.say(&ann, &bob, 2, "lost").await;
    world.primary.kill();
    standby.run();
    world.fail_over_to(&standby).await;
    let goes_on = async {
        loop {
            if trusting.get(&ann, "/api/v1/range").await.status.is_success() {
                break history(&trusting, &ann).await;
            }
        }
    };
    tokio::select! {
        served = timeout(PATIENCE, goes_on) => assert_eq!(served.expect("it goes on"), before),
        // The careful one was first.
        _ = trusting.must_end() => {}
    }

    assert!(careful.must_end().await.contains("continues an older state"));
    trusting.must_end().await;
    tokio::join!(careful.stop(), trusting.stop());
    tokio::join!(careful.start_again(), trusting.start_again());
    assert_ne!(history(&trusting, &ann).await, before);
    assert!(trusting.say(&ann, &bob, 3, "after").await > 10_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_by_hand_needs_stopped_servers_and_begins_another_history() {
    let mut app = Database::Postgres.start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let last = app.say(&ann, &bob, 1, "before").await;
    let before = history(&app, &ann).await;
    let mut restored = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    restored.arg("restored").env("TIDEMARK_DATABASE_URL", app.config.storage.database_url.with_password());
    let said = timeout(PATIENCE, restored.output()).await.expect("in time").expect("runs");
    let reported = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.status.success() && reported.contains("are using the database"), "{reported}");
    assert_eq!(history(&app, &ann).await, before);
    app.stop().await;
    let said = timeout(PATIENCE, restored.output()).await.expect("in time").expect("runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    app.start_again().await;
    let after = history(&app, &ann).await;
    assert_ne!(after, before);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains(after.as_str().expect("a name")), "{said}");
    assert!(app.say(&ann, &bob, 2, "after").await > last + 1_000_000);
    let cem = app.sign_up("cem").await;
    assert!(cem.uid > bob.uid + 100_000, "{}", cem.uid);
}

/// A snapshot of the disk was put back under a server, or the address leads to a copy beside the original: nothing says so but the
/// log, which is shorter than it was.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_of_the_disk_is_noticed_by_servers_at_work() {
    let mut world = World::start().await;
    let mut app = world.server(|config| config.storage.replication = Replication::Synchronous).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "kept").await;
    let before = history(&app, &ann).await;
    world.primary.kill();
    let copy = world.primary.copy("-c fsync=on");
    world.primary.run();
    let lost = say_again(&app, &ann, &bob, 2, "lost").await;
    // It looks how far the log is with each connection: this one is new.
    world.primary.cut_connections().await;
    timeout(PATIENCE, async { while !app.get(&ann, "/api/v1/range").await.status.is_success() {} })
        .await
        .expect("in time");
    world.primary.kill();
    copy.run();
    world.lead_to(&copy);
    world.primary = copy;

    app.get(&ann, "/api/v1/range").await.refused(503);
    app.must_end().await;
    app.stop().await;
    app.start_again().await;
    assert_ne!(history(&app, &ann).await, before);
    assert!(app.say(&ann, &bob, 3, "after").await > lost + 1_000_000);
    assert_eq!(texts(&device_from_nothing(&app, &bob).await), ["kept", "after"]);
}

/// It was given up, and has all that it had then; so the standby's new messages are missing.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_primary_that_comes_back_is_noticed_by_servers_at_work() {
    let world = World::start().await;
    let standby = world.synchronous_standby().await;
    let mut app = world.server(|config| config.storage.replication = Replication::Synchronous).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "kept").await;
    let before = history(&app, &ann).await;
    world.fail_over_to(&standby).await;
    let lost = say_again(&app, &ann, &bob, 2, "lost").await;
    standby.kill();
    world.primary.run();
    // It has no standby any more.
    world.primary.execute("ALTER SYSTEM RESET synchronous_standby_names").await;
    world.primary.execute("SELECT pg_reload_conf()").await;
    world.lead_to(&world.primary);

    app.get(&ann, "/api/v1/range").await.refused(503);
    app.must_end().await;
    app.stop().await;
    app.start_again().await;
    assert_ne!(history(&app, &ann).await, before);
    assert!(app.say(&ann, &bob, 3, "after").await > lost + 1_000_000);
    assert_eq!(texts(&device_from_nothing(&app, &bob).await), ["kept", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_are_not_taken_from_another_installation() {
    let (app, other) = (Database::Postgres.start().await, Database::Postgres.start().await);
    let url = app.config.storage.database_url.with_password();
    let same = [("TIDEMARK_STORAGE__LISTEN_URL", url)];
    served_with(url, &same).await;
    let unused = durable_database().await;
    for elsewhere in [other.config.storage.database_url.with_password(), &unused] {
        let said = refused_with(url, &[("TIDEMARK_STORAGE__LISTEN_URL", elsewhere)]).await;
        let wrong = "[storage] listen_url leads to PostgreSQL at ";
        assert!(said.contains(wrong) && said.contains("not the database of database_url"), "{said}");
    }
}

/// Somebody loaded rows by other means; the next id would be that of one of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_above_the_latest_id_is_found_at_the_start_and_made_good_by_restored() {
    let mut app = Database::Postgres.start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "first").await;
    app.stop().await;
    let url = app.config.storage.database_url.with_password().to_owned();
    let mut beside = PgConnection::connect(&url).await.expect("connected");
    let back = "UPDATE heads SET last_id = 0 WHERE receiver = $1";
    let back = sqlx::query(back).bind(bob.uid.cast_signed()).execute(&mut beside).await.expect("set back");
    assert_eq!(back.rows_affected(), 1);
    let refused = boot::start(&app.config, Clock::system(), Version::default())
        .await
        .err()
        .expect("refused")
        .to_string();
    assert!(refused.contains(&format!("the inbox of user {} has a row 1", bob.uid)), "{refused}");
    let mut restored = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    let said = timeout(PATIENCE, restored.arg("restored").env("TIDEMARK_DATABASE_URL", &url).output());
    let said = said.await.expect("in time").expect("runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    app.start_again().await;
    assert_eq!(app.say(&ann, &bob, 2, "second").await, 10_000_002);
    let rows = app.rows(&bob).await;
    assert_eq!(texts(&rows), ["first", "second"]);
    assert_eq!(rows.last().expect("a row")["message_id"], 10_000_002, "after the row that was there");
}

/// A server of the program ends by itself, with a code by which a service manager starts it again.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_ends_with_a_clear_line() {
    let app = Database::Postgres.start().await;
    let place = tempfile::tempdir().expect("a directory");
    let url = app.config.storage.database_url.with_password();
    let program = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        command.args(arguments).current_dir(&place).env("TIDEMARK_DATABASE_URL", url).kill_on_drop(true);
        command
    };
    let mut serving = program(&["serve", "--listen", "127.0.0.1:0"]);
    serving.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut serving = serving.spawn().expect("runs");
    let mut first = [0];
    let out = serving.stdout.as_mut().expect("piped");
    timeout(PATIENCE, out.read_exact(&mut first)).await.expect("in time").expect("listens");
    // As a restore from elsewhere does.
    let mut beside = PgConnection::connect(url).await.expect("connected");
    let other = sqlx::query("UPDATE meta SET value = gen_random_uuid()::text WHERE key = 'history'");
    other.execute(&mut beside).await.expect("another life");
    let ended = timeout(PATIENCE, serving.wait_with_output()).await.expect("in time").expect("ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.ends_with("start it again")), "{said}");
}
