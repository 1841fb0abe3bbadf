//! The audit of what is built in: licences, doubled crates, where crates come from, and known vulnerabilities.
//! `deny.toml` holds the rules, cargo-deny checks them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::packages;
use crate::run::{Failure, cargo, in_workspace, run};

/// The version that `deny.toml` is written for.
const VERSION: &str = "0.20.2";

/// Audits; builds cargo-deny first, into `target/tools`, where it is missing. Without the database of advisories the rest still counts.
pub(crate) fn audit() -> Result<(), Failure> {
    let program = program()?;
    let rules = ["check", "--hide-inclusion-graph", "-D", "unmatched-skip", "-D", "unnecessary-skip"];
    deny(&program, &[&rules[..], &["licenses", "bans", "sources"]].concat())?;
    let mut fetch = Command::new(&program);
    fetch.args(["fetch", "db"]).current_dir(in_workspace(".")).stderr(Stdio::null());
    if !fetch.status().is_ok_and(|status| status.success()) {
        eprintln!(
            "xtask: the database of advisories cannot be fetched from here, so advisories are not checked"
        );
        return Ok(());
    }
    deny(&program, &["check", "--hide-inclusion-graph", "advisories"])
}

fn deny(program: &PathBuf, words: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(program);
    command.args(words).current_dir(in_workspace("."));
    run(command, &format!("cargo deny {}", words.join(" ")))
}

fn program() -> Result<PathBuf, Failure> {
    if packages::found_in_path("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let tools = in_workspace("target/tools");
    let program = tools.join("bin/cargo-deny");
    if !program.is_file() {
        let root = tools.to_string_lossy();
        // It runs for seconds, and optimised it takes three times as long to build.
        let install = ["--config", "profile.dev.debug=false", "install", "--debug", "--quiet", "--locked"];
        cargo(&[&install[..], &["--version", VERSION, "--root", &root, "cargo-deny"]].concat())?;
    }
    Ok(program)
}
