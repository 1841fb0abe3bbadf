//! A PostgreSQL server for the tests (Debian `postgresql`), on a socket in its folder. All tests of a program share it; each
//! takes a schema of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{command, folder, hang, until_ready};

static SERVER: LazyLock<Server> = LazyLock::new(Server::start);
static SCHEMAS: AtomicU32 = AtomicU32::new(0);

struct Server {
    url: String,
    _shell: Child,
}

/// Where the server is, for sqlx.
pub(crate) fn url() -> &'static str {
    &SERVER.url
}

/// The name of a schema that nobody else uses.
pub(crate) fn fresh_schema() -> String {
    format!("test_{}", SCHEMAS.fetch_add(1, Ordering::Relaxed))
}

impl Server {
    fn start() -> Self {
        let folder = folder("postgres");
        let data = folder.join("data");
        let made = command(binary("initdb"), &folder)
            .args(["--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"])
            .arg("--pgdata")
            .arg(&data)
            .stdout(Stdio::null())
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let kept = folder.display();
        let line = format!(
            "{} -D {kept}/data -k {kept} -c listen_addresses= -c fsync=off -c max_connections=200",
            binary("postgres").display()
        );
        let shell = hang(&line, &folder);
        until_ready("PostgreSQL", &folder, || {
            let mut asked = command(binary("pg_isready"), &folder);
            asked.arg("--host").arg(&folder).stdout(Stdio::null()).stderr(Stdio::null());
            asked.status().is_ok_and(|status| status.success())
        });
        Self { url: format!("postgres://postgres@localhost/postgres?host={kept}"), _shell: shell }
    }
}

/// A program of the newest version that is installed; Debian keeps them out of the path.
fn binary(name: &str) -> PathBuf {
    let versions =
        fs::read_dir("/usr/lib/postgresql").expect("the tests need PostgreSQL: apt-get install postgresql");
    let programs = versions.filter_map(Result::ok).map(|version| version.path().join("bin").join(name));
    let newest = programs.filter(|program| Path::new(program).is_file()).max();
    newest.unwrap_or_else(|| panic!("the tests need {name} of PostgreSQL: apt-get install postgresql"))
}
