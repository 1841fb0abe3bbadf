//! The programs that the tests need beside Rust: named with their Debian packages, and installed where that is allowed.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::run::{Failure, run};

/// A program in the path, or a file with one `*` for a folder's name, and the Debian package that brings it.
pub(crate) type Needed = (&'static str, &'static str);

/// All programs that the tests need, put together from lists, none of which is written twice.
pub(crate) const ALL: &[&[Needed]] =
    &[COMPILER, ETCD, POSTGRESQL, SERVERS, BROWSER, NODE, SDKS, PASTING, SIGNALS, MOUNTS];

/// Needed beside Rust by every build, and to compile the test rigs.
const COMPILER: &[Needed] = &[("cc", "gcc"), ("/usr/lib/*/crt1.o", "libc6-dev")];

/// Needed by runs over etcd.
pub(crate) const ETCD: &[Needed] = &[("etcd", "etcd-server")];

/// The database that several chat servers share.
pub(crate) const POSTGRESQL: &[Needed] = &[
    ("/usr/lib/postgresql/*/bin/initdb", "postgresql"),
    ("/usr/lib/postgresql/*/bin/pg_isready", "postgresql"),
    ("/usr/lib/postgresql/*/bin/postgres", "postgresql"),
    ("/usr/lib/postgresql/*/bin/pg_basebackup", "postgresql"),
];

/// Other real servers for the tests.
const SERVERS: &[Needed] = &[
    ("redis-server", "redis-server"),
    ("redis-cli", "redis-tools"),
    ("redis-benchmark", "redis-tools"),
    ("prometheus", "prometheus"),
    ("promtool", "prometheus"),
    ("/usr/sbin/haproxy", "haproxy"),
    ("/usr/sbin/pgbouncer", "pgbouncer"),
    ("patroni", "patroni"),
    ("patronictl", "patroni"),
    // With it Patroni speaks the second version of etcd's protocol.
    ("/usr/lib/python3/*/etcd/__init__.py", "python3-etcd"),
];

/// The browser tests. Debian has no geckodriver: they build it with cargo.
pub(crate) const BROWSER: &[Needed] =
    &[("chromium", "chromium"), ("chromedriver", "chromium-driver"), ("firefox-esr", "firefox-esr")];

/// The tests of the page's modules that need no browser.
pub(crate) const NODE: &[Needed] = &[("node", "nodejs")];

/// Programs that install and run the official SDKs of Tablestore for the tests of tables.
const SDKS: &[Needed] = &[("npm", "npm"), ("python3", "python3"), ("pip3", "python3-pip")];

/// The commands of the pages, which a test pastes.
const PASTING: &[Needed] = &[("bash", "bash"), ("curl", "curl")];

/// A disk of its own for a test, to be filled; a copy of a disk.
const MOUNTS: &[Needed] = &[("unshare", "util-linux"), ("mount", "mount"), ("cp", "coreutils")];

/// How the tests end what they started.
const SIGNALS: &[Needed] = &[("kill", "procps")];

/// Installs what is missing, as root on Debian; else says what to install.
pub(crate) fn install(needed: &[&[Needed]]) -> Result<(), Failure> {
    let packages = missing(needed);
    if packages.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if !found_in_path("apt-get") {
        return Err(Failure(format!(
            "this needs the programs of these Debian packages: {}",
            packages.join(" ")
        )));
    }
    if !is_root() {
        return Err(Failure(format!("this needs more programs; as root run: {by_hand}")));
    }
    eprintln!("xtask: installing as root: {by_hand}");
    apt_get(&["update", "--quiet"])?;
    let mut words = vec!["install", "--quiet", "--yes", "--no-install-recommends"];
    words.extend(&packages);
    apt_get(&words)?;
    match missing(needed).as_slice() {
        [] => Ok(()),
        still => Err(Failure(format!("these packages do not bring what is needed: {}", still.join(" ")))),
    }
}

/// The packages that bring what is not there, each once.
fn missing(needed: &[&[Needed]]) -> Vec<&'static str> {
    let all = needed.iter().copied().flatten();
    let mut packages: Vec<_> =
        all.filter(|(program, _)| !found(program)).map(|(_, package)| *package).collect();
    packages.dedup();
    packages
}

fn found(program_or_file: &str) -> bool {
    match program_or_file.split_once("/*/") {
        Some((folder, rest)) => fs::read_dir(folder)
            .is_ok_and(|inside| inside.flatten().any(|one| one.path().join(rest).is_file())),
        None if program_or_file.starts_with('/') => Path::new(program_or_file).is_file(),
        None => found_in_path(program_or_file),
    }
}

pub(crate) fn found_in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The owner of one's own folder in /proc is who one is.
fn is_root() -> bool {
    fs::metadata(Path::new("/proc/self")).is_ok_and(|own| own.uid() == 0)
}

fn apt_get(words: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("apt-get");
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    run(command, &format!("apt-get {}", words.join(" ")))
}

#[cfg(test)]
mod tests;
