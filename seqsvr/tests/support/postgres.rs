//! A real PostgreSQL of the test's own, in a temporary folder, reached over a socket there. Started as the user `postgres`
//! where the test runs as root, which PostgreSQL refuses to run as.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, Executor, PgConnection};

use crate::waiting::until_now;

/// See the module. Dropping it ends the server.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    programs: PathBuf,
    process: Mutex<Option<Child>>,
    databases: AtomicU32,
}

impl Server {
    /// Makes a cluster and starts it.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server =
            Self { programs: programs(), process: Mutex::new(None), databases: AtomicU32::new(0), folder };
        if let Some((uid, gid)) = other_user() {
            chown(server.folder.path(), Some(uid), Some(gid)).unwrap();
        }
        let data = server.data();
        let made = server
            .command("initdb")
            .args(["--username=postgres", "--auth=trust", "--no-sync", "--pgdata"])
            .arg(data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server.run();
        server
    }

    /// Starts the server again, and waits until it answers.
    pub(crate) fn run(&self) {
        until_now("PostgreSQL starts", || {
            // What was killed may hold its shared memory for a moment; then this fails and is tried again.
            if self.exited() {
                *self.process.lock().unwrap() = Some(self.spawn());
            }
            self.answers()
        });
    }

    fn spawn(&self) -> Child {
        self.command("postgres")
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=40", "-k"])
            .arg(self.folder.path())
            .arg("-D")
            .arg(self.data())
            .spawn()
            .unwrap()
    }

    /// Ends the server at once, as a crash does.
    pub(crate) fn kill(&self) {
        if let Some(mut process) = self.process.lock().unwrap().take() {
            let pid = Pid::from_raw(process.id() as i32).unwrap();
            let _ = kill_process(pid, Signal::QUIT);
            let _ = process.wait();
        }
    }

    /// The URL of a new, empty database.
    pub(crate) async fn new_database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        connection.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
        self.url(&name)
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@localhost/{database}?host={}", self.folder.path().display())
    }

    fn answers(&self) -> bool {
        let asked = self.command("pg_isready").arg("-q").arg("-h").arg(self.folder.path()).status();
        asked.is_ok_and(|status| status.success())
    }

    fn exited(&self) -> bool {
        self.process.lock().unwrap().as_mut().is_none_or(|process| process.try_wait().unwrap().is_some())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some((uid, gid)) = other_user() {
            command.uid(uid).gid(gid);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where Debian puts the programs of the newest version; elsewhere they are in the path.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin")).max().unwrap_or_default()
}

/// The ids of `postgres` when the test runs as root.
fn other_user() -> Option<(u32, u32)> {
    if fs::metadata(Path::new("/proc/self")).unwrap().uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut user =
        fields.filter(|fields| fields[0] == "postgres").map(|user| (user[2].parse(), user[3].parse()));
    match user.next() {
        Some((Ok(uid), Ok(gid))) => Some((uid, gid)),
        _ => panic!("install the Debian package postgresql: its user runs the server"),
    }
}
