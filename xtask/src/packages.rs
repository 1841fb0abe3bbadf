//! The programs that the tests need beside Rust: named with their Debian packages, and installed where that is allowed.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::run::{Failure, run};

/// A program in the path, or a file with one `*` for a folder's name, and the Debian package that brings it.
const NEEDED: &[(&str, &str)] = &[
    ("cc", "gcc"),
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ("etcd", "etcd-server"),
    ("/usr/lib/postgresql/*/bin/initdb", "postgresql"),
    ("redis-server", "redis-server"),
    ("protoc", "protobuf-compiler"),
    ("/usr/include/google/protobuf/descriptor.proto", "libprotobuf-dev"),
];

/// Installs what is missing, as root on Debian; else says what to install.
pub(crate) fn install() -> Result<(), Failure> {
    let packages = missing(found);
    if packages.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if !found_in_path("apt-get") {
        return Err(Failure(format!(
            "the tests need the programs of these Debian packages: {}",
            packages.join(" ")
        )));
    }
    if !is_root() {
        return Err(Failure(format!("the tests need more programs; as root run: {by_hand}")));
    }
    apt_get(&["update", "--quiet"])?;
    let mut words = vec!["install", "--quiet", "--yes", "--no-install-recommends"];
    words.extend(&packages);
    apt_get(&words)
}

fn missing(is_there: impl Fn(&str) -> bool) -> Vec<&'static str> {
    NEEDED.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect()
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
        assert_eq!(missing(|_| true), [""; 0]);
        assert_eq!(missing(|program| program != "chromedriver"), ["chromium-driver"]);
        assert_eq!(missing(|_| false).len(), NEEDED.len());
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
