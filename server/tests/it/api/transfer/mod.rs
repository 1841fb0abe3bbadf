//! Export and import: the program's commands against the files, or the database, of a whole server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tidemark::config::StorageSection;
use tidemark_test_support::servers::postgres::durable_database;
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::{PATIENCE, Person, TestApp, is_on_postgres, message};

mod before;
mod export;
mod files;
mod import;
mod one_user;

/// Where an installation is.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    /// In a directory, on SQLite.
    Directory(PathBuf),
    /// In a database of PostgreSQL.
    Database(String),
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Home {
    fn from(directory: &P) -> Home {
        Home::Directory(directory.as_ref().to_owned())
    }
}

impl From<&Home> for Home {
    fn from(home: &Home) -> Home {
        home.clone()
    }
}

impl Home {
    /// A new one: `directory`, or a database in the tests on PostgreSQL.
    async fn new(directory: PathBuf) -> Home {
        if is_on_postgres() { Home::Database(durable_database().await) } else { Home::Directory(directory) }
    }

    fn configure(&self, storage: &mut StorageSection) {
        match self {
            Home::Directory(directory) => storage.data_dir.clone_from(directory),
            Home::Database(url) => storage.database_url = url.clone().into(),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        command.args(args).env("TIDEMARK_LOG__FILTER", "warn").stdin(Stdio::null()).kill_on_drop(true);
        match self {
            Home::Directory(directory) => command.arg("--data-dir").arg(directory),
            Home::Database(url) => command.env("TIDEMARK_DATABASE_URL", url),
        };
        command
    }
}

/// Runs a command to its end: exit code, and the last line that it said.
pub(crate) async fn tidemark(home: impl Into<Home>, args: &[&str]) -> (i32, String) {
    let output = home.into().command(args).output();
    let output = timeout(PATIENCE, output).await.expect("in time").expect("run");
    let reported = if output.status.success() { output.stdout } else { output.stderr };
    let reported = String::from_utf8(reported).expect("UTF-8");
    (output.status.code().expect("an exit code"), reported.lines().last().unwrap_or_default().to_owned())
}

/// Runs a command that must succeed there.
pub(crate) async fn done(home: impl Into<Home>, args: &[&str]) -> String {
    let (code, reported) = tidemark(home, args).await;
    assert_eq!(code, 0, "{args:?}: {reported}");
    reported
}

/// Runs a command that must fail there.
pub(crate) async fn refused(home: impl Into<Home>, args: &[&str]) -> String {
    let (code, reported) = tidemark(home, args).await;
    assert_eq!(code, 1, "{args:?}: {reported}");
    reported
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A server over what is there.
pub(crate) async fn over(home: impl Into<Home>) -> TestApp {
    let home = home.into();
    TestApp::start_with(|config| {
        home.configure(&mut config.storage);
        config.limits.sends_per_account_per_second = 0;
        config.limits.searches_per_account_per_minute = 0;
    })
    .await
}

/// Three people with messages, a group, read markers and a member who left; on SQLite half of it in the tables, half in
/// the journal.
pub(crate) struct World {
    place: TempDir,
    pub(crate) home: Home,
    pub(crate) app: TestApp,
    pub(crate) people: Vec<Person>,
    pub(crate) gid: u64,
}

impl World {
    pub(crate) async fn new() -> World {
        let place = tempfile::tempdir().expect("a directory");
        let home = Home::new(place.path().join("data")).await;
        let mut app = over(&home).await;
        let mut people = Vec::new();
        for name in ["ann", "bob", "cat"] {
            people.push(app.sign_up(name).await);
        }
        let [ann, bob, cat] = &people[..] else { unreachable!("three") };
        let group = json!({"name": "walkers", "members": [bob.uid, cat.uid]});
        let gid = app.post(ann, "/api/v1/groups", group).await.ok(201)["gid"].as_u64().expect("a gid");
        for n in 0..20 {
            app.say(ann, bob, n, &format!("in the tables \"{n}\"\n")).await;
        }
        app.delete(cat, &format!("/api/v1/groups/{gid}/members/{}", cat.uid)).await.ok(204);
        read(&app, bob, ann, 9).await;
        app.restart().await;
        for n in 100..120 {
            app.say(bob, ann, n, &format!("in the journal {n} é \u{2028}")).await;
            app.post(ann, "/api/v1/messages", message(200 + n, json!({"group": gid}), "all")).await.ok(201);
        }
        app.say(cat, cat, 1, "to myself").await;
        read(&app, bob, ann, 15).await;
        World { place, home, app, people, gid }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A place for another installation.
    pub(crate) async fn other(&self, name: &str) -> Home {
        Home::new(self.file(name)).await
    }

    /// Exports into a new file.
    pub(crate) async fn export(&self, name: &str) -> PathBuf {
        let file = self.file(name);
        done(&self.home, &["export", text(&file)]).await;
        file
    }
}

/// `who` reads up to the `nth` message of `other`.
async fn read(app: &TestApp, who: &Person, other: &Person, nth: usize) {
    let rows = app.rows(who).await;
    let messages: Vec<&Value> = rows
        .iter()
        .filter(|row| row["sender"] == other.uid && row["conversation"] == format!("u:{}", other.uid))
        .collect();
    let mark = json!({"message_id": messages[nth]["message_id"]});
    app.put(who, &format!("/api/v1/conversations/u:{}/read", other.uid), mark).await.ok(204);
}

/// The lines of an archive.
fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("readable");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Writes an archive of these lines, with the counts and the checksum that belong to them.
fn seal(mut lines: Vec<Value>, file: &Path) {
    let of_type = |kind: &str, lines: &[Value]| lines.iter().filter(|line| line["type"] == kind).count();
    let kinds = ["account", "group", "ended_epoch", "row", "sent", "pending", "file", "file_use"];
    let totals: Value = kinds.iter().map(|kind| ((*kind).to_owned(), json!(of_type(kind, &lines)))).collect();
    lines.retain(|line| line["type"] != "footer");
    lines[0]["totals"] = totals.clone();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let sha256: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = of_type("file_part", &lines) + of_type("file_gone", &lines);
    let footer = json!({"type": "footer", "totals": totals, "parts": parts, "sha256": sha256});
    std::fs::write(file, format!("{text}{footer}\n")).expect("written");
}

/// The rows of an archive by receiver, in the form in which a range answers them.
fn inboxes(lines: &[Value]) -> BTreeMap<u64, Vec<Value>> {
    let mut inboxes: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["type"] == "row") {
        let mut row = line.clone();
        let receiver = row["receiver"].as_u64().expect("a uid");
        let fields = row.as_object_mut().expect("an object");
        fields.remove("type");
        let key = tidemark::domain::Uid(receiver as u32).partition_key().to_string();
        fields.insert("partition_key".to_owned(), key.into());
        inboxes.entry(receiver).or_default().push(row);
    }
    inboxes
}
