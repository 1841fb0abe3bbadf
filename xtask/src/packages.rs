//! The programs that the tests need beside Rust: named with their Debian packages, and installed where that is allowed.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::run::{Failure, run};

/// A program in the path, or a file with one `*` for a folder's name, and the Debian package that brings it.
pub(crate) type Needed = (&'static str, &'static str);

/// What the tests need.
pub(crate) const ALL: &[Needed] = &[
    ("cc", "gcc"),
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ETCD[0],
    ETCD[1],
    ETCD[2],
    ("/usr/lib/postgresql/*/bin/initdb", "postgresql"),
    ("redis-server", "redis-server"),
];

/// What the stores in etcd need, to be built and to run.
pub(crate) const ETCD: &[Needed] = &[
    ("etcd", "etcd-server"),
    ("protoc", "protobuf-compiler"),
    ("redis-server", "redis-server"),
    ("/usr/include/google/protobuf/descriptor.proto", "libprotobuf-dev"),
];

/// Installs what is missing, as root on Debian; else says what to install.
pub(crate) fn install(needed: &[Needed]) -> Result<(), Failure> {
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
    apt_get(&["update", "--quiet"])?;
    let mut words = vec!["install", "--quiet", "--yes", "--no-install-recommends"];
    words.extend(&packages);
    apt_get(&words)
}

/// The packages that bring what is not there.
pub(crate) fn missing(needed: &[Needed]) -> Vec<&'static str> {
    needed.iter().filter(|(program, _)| !found(program)).map(|(_, package)| *package).collect()
}

fn found(program_or_file: &str) -> bool {
    match program_or_file.split_once("/*/") {
        Some((folder, rest)) => fs::read_dir(folder)
            .is_ok_and(|inside| inside.flatten().any(|one| one.path().join(rest).is_file())),
        None if program_or_file.starts_with('/') => Path::new(program_or_file).is_file(),
        None => found_in_path(program_or_file),
    }
}

fn found_in_path(program: &str) -> bool {
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
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_named() {
        let needed = [("sh", "dash"), ("no-such-program-anywhere", "nowhere")];
        assert_eq!(missing(&needed), ["nowhere"]);
    }

    #[test]
    fn a_program_is_found_in_the_path_and_a_file_where_it_is() {
        assert!(found("sh"));
        assert!(!found("no-such-program-anywhere"));
        assert!(found("/proc/*/status"));
        assert!(!found("/proc/*/no-such-file"));
        assert!(found("/proc/self/status"));
    }
}
