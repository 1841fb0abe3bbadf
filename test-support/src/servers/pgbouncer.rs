//! A PgBouncer of one test's own (Debian `pgbouncer`), on a socket in its folder, before a PostgreSQL.

use std::fs;
use std::os::unix::net::UnixStream;
use std::process::Command;

use super::postgres::Server;
use super::{Hanging, folder, until_ready};

/// Where the package puts it.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A running pooler. Dropping it ends it.
pub struct Pooler {
    hanging: Hanging,
    before: String,
}

impl Pooler {
    /// Starts one before `database` with these lines of the section `[pgbouncer]`; lines of a later version than this one are left out.
    pub fn before(database: &Server, settings: &str) -> Self {
        let folder = folder("pgbouncer");
        let kept = folder.display();
        let before = database.folder().display().to_string();
        let settings: Vec<&str> =
            settings.lines().filter(|line| has_prepared_statements() || !line.contains("prepared")).collect();
        let text = format!(
            "[databases]\n* = host={before} port={}\n[pgbouncer]\nlisten_addr =\nlisten_port = 5432\nunix_socket_dir = {kept}\n\
             auth_type = trust\nauth_file = {kept}/users\n{}\n",
            database.port(),
            settings.join("\n")
        );
        fs::write(folder.join("users"), "\"postgres\" \"\"\n").expect("the folder is there");
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, text).expect("the folder is there");
        let line = format!("/usr/sbin/pgbouncer {}", file.display());
        let pooler = Self { hanging: Hanging::ready(line, "KILL", folder), before };
        pooler.run();
        pooler
    }

    /// The URL that leads to the same database through the pooler.
    pub fn url(&self, direct: &str) -> String {
        direct.replace(&self.before, &self.hanging.folder.display().to_string())
    }

    /// Starts it, and waits until it answers.
    pub fn run(&self) {
        self.hanging.run();
        let socket = self.hanging.folder.join(".s.PGSQL.5432");
        until_ready("PgBouncer", &self.hanging.folder, || UnixStream::connect(&socket).is_ok());
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&self) {
        self.hanging.kill();
    }
}

/// Whether it is 1.21 or newer, and so knows prepared statements in transaction mode.
pub fn has_prepared_statements() -> bool {
    let said = Command::new(PROGRAM).arg("--version").output().expect("PgBouncer is installed").stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let version = said.split_whitespace().nth(1).and_then(|version| {
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    version.expect("it tells its version") >= (1, 21)
}
