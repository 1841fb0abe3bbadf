//! PostgreSQL for the tests (Debian `postgresql`), on a socket in its folder. Tests that only need a schema
//! share one server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::certificates::{Certificates, issue};
use super::{Hanging, command, folder, give_away, until_ready};
use crate::ports::free_port;

/// Where a server that takes no connections from the network has its socket.
const SOCKET: u16 = 5432;

static SERVER: LazyLock<Server> = LazyLock::new(Server::start);
static DURABLE: LazyLock<Server> = LazyLock::new(|| Server::start_with("-c fsync=on"));
static SCHEMAS: AtomicU32 = AtomicU32::new(0);

/// Where the shared server is, for sqlx.
pub fn url() -> &'static str {
    &SERVER.url
}

/// The name of a schema that nobody else uses in the shared server.
pub fn fresh_schema() -> String {
    format!("test_{}", SCHEMAS.fetch_add(1, Ordering::Relaxed))
}

/// The URL of a new, empty database in another shared server, which syncs what it commits, as one in earnest does.
pub async fn durable_database() -> String {
    DURABLE.new_database().await
}

/// A server. Dropping it ends it.
pub struct Server {
    hanging: Hanging,
    url: String,
    port: u16,
    databases: AtomicU32,
}

impl Server {
    /// Makes a cluster and starts it. It loses what it committed when the machine dies, which no test does.
    pub fn start() -> Self {
        Self::start_with("-c fsync=off")
    }

    /// The same with these arguments of `postgres`.
    pub fn start_with(arguments: &str) -> Self {
        let server = Self::ready(made(), SOCKET, arguments);
        server.run();
        server
    }

    /// One that also takes connections to 127.0.0.1, and encrypts them; and the files with which it is known.
    pub fn start_with_tls(arguments: &str) -> (Self, Certificates) {
        let (folder, port) = (made(), free_port());
        let files = issue(&folder);
        // It takes no key that others may read.
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o600)).expect("it is ours");
        give_away(&files.key);
        let (certificate, key) = (files.certificate.display(), files.key.display());
        let arguments = format!(
            "-c listen_addresses=127.0.0.1 -c ssl=on -c ssl_cert_file={certificate} -c ssl_key_file={key} {arguments}"
        );
        let server = Self::ready(folder, port, &arguments);
        server.run();
        (server, files)
    }

    fn ready(folder: PathBuf, port: u16, arguments: &str) -> Self {
        let kept = folder.display();
        let url = format!("postgres://postgres@localhost:{port}/postgres?host={kept}");
        let line = format!(
            "{} -D {kept}/data -k {kept} -c port={port} -c listen_addresses= -c max_connections=200 {arguments}",
            binary("postgres").display()
        );
        // Its processes go with it, at once.
        let hanging = Hanging::ready(line, "QUIT", folder);
        Self { hanging, url, port, databases: AtomicU32::new(0) }
    }

    /// A copy of the files of a server that does not run, as a snapshot of the disk is. It does not run yet, either.
    pub fn copy(&self, arguments: &str) -> Self {
        let folder = folder("postgres");
        let mut copied = command("cp", &folder);
        copied.arg("--archive").arg(self.folder().join("data")).arg(folder.join("data"));
        assert!(copied.status().expect("cp runs").success(), "the files are copied");
        // Of the process that was killed.
        let _ = fs::remove_file(folder.join("data/postmaster.pid"));
        Self::ready(folder, self.port, arguments)
    }

    /// A standby with what this server has now. It does not run yet; when it does, it follows this server if that runs.
    pub fn standby(&self, arguments: &str) -> Self {
        let folder = folder("postgres");
        let copied = command(binary("pg_basebackup"), &folder)
            .args(["--username=postgres", "--write-recovery-conf", "--checkpoint=fast", "--no-sync"])
            .arg("--host")
            .arg(self.folder())
            .arg("--pgdata")
            .arg(folder.join("data"))
            .output()
            .expect("pg_basebackup runs");
        assert!(copied.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&copied.stderr));
        Self::ready(folder, SOCKET, arguments)
    }

    /// Makes a primary of a standby that runs.
    pub async fn promote(&self) {
        self.execute("SELECT pg_promote()").await;
    }

    /// Runs this statement.
    pub async fn execute(&self, statement: &'static str) {
        let mut connection = PgConnection::connect(&self.url).await.expect("the server runs");
        connection.execute(statement).await.expect("the owner may");
    }

    /// The port under which it is known.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its own database is, for sqlx.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The process id of its first process, the parent of all others.
    pub fn pid(&self) -> u32 {
        pid_of(&self.folder().join("data"))
    }

    /// Where its socket is.
    pub fn folder(&self) -> &Path {
        &self.hanging.folder
    }

    /// Starts the server, and waits until it answers.
    pub fn run(&self) {
        self.hanging.run();
        self.until_ready();
    }

    /// Ends the server at once, as a crash does.
    pub fn kill(&self) {
        self.hanging.kill();
    }

    /// The URL of a new, empty database.
    pub async fn new_database(&self) -> String {
        self.new_database_with("").await
    }

    /// The same with these options of `CREATE DATABASE`.
    pub async fn new_database_with(&self, options: &str) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut connection = PgConnection::connect(&self.url).await.expect("the server runs");
        let create = AssertSqlSafe(format!("CREATE DATABASE {name} {options}"));
        connection.execute(create).await.expect("the name is new");
        self.url.replace("/postgres?", &format!("/{name}?"))
    }

    /// Cuts all connections to all databases.
    pub async fn cut_connections(&self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        self.execute(cut).await;
    }

    fn until_ready(&self) {
        let folder = &self.hanging.folder;
        until_ready("PostgreSQL", folder, || {
            let mut asked = command(binary("pg_isready"), folder);
            asked
                .arg("--host")
                .arg(folder)
                .arg("--port")
                .arg(self.port.to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            asked.status().is_ok_and(|status| status.success())
        });
    }
}

/// The process id of the first process of the server whose data are here.
pub(super) fn pid_of(data: &Path) -> u32 {
    let file = fs::read_to_string(data.join("postmaster.pid")).expect("the server runs");
    file.lines().next().and_then(|line| line.parse().ok()).expect("the first line is the process id")
}

/// A folder with a new cluster in it.
fn made() -> PathBuf {
    let folder = folder("postgres");
    let made = command(binary("initdb"), &folder)
        .args(["--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"])
        .arg("--pgdata")
        .arg(folder.join("data"))
        .stdout(Stdio::null())
        .output()
        .expect("initdb runs");
    assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
    folder
}

/// Whether a PostgreSQL is there to be started.
pub fn is_installed() -> bool {
    newest("initdb").is_some() && newest("postgres").is_some()
}

/// A program of the newest version that is installed; Debian keeps them out of the path.
fn newest(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.filter_map(Result::ok).map(|version| version.path().join("bin").join(name));
    programs.filter(|program| Path::new(program).is_file()).max()
}

/// The folder of the programs.
pub(super) fn programs() -> PathBuf {
    binary("postgres").parent().expect("it is in a folder").to_owned()
}

fn binary(name: &str) -> PathBuf {
    newest(name).unwrap_or_else(|| panic!("the tests need {name} of PostgreSQL: apt-get install postgresql"))
}
