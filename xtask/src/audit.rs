//! The audit of what is built in: licences, doubled crates, where crates come from, and known vulnerabilities.
//! `deny.toml` holds the rules, cargo-deny checks them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::packages;
use crate::run::{Failure, cargo, in_workspace, run};

/// The version that `deny.toml` is written for.
const VERSION: &str = "0.20.2";

/// Where RustSec keeps its advisories.
const DATABASE: &str = "https://github.com/RustSec/advisory-db";

const CHECK: &str = "cargo deny check advisories";

/// Where cargo-deny gets its database of advisories from.
pub(crate) enum Advisories {
    /// RustSec's.
    Fetched,
    /// A clone of it, or another one of its form: a git repository with a branch `main`.
    In(PathBuf),
    /// Nowhere: advisories are not checked.
    LeftOut,
}

/// Audits; builds cargo-deny first, into `target/tools`, where it is missing.
pub(crate) fn audit(advisories: &Advisories) -> Result<(), Failure> {
    let program = program()?;
    let rules = ["check", "--hide-inclusion-graph", "-D", "unmatched-skip", "-D", "unnecessary-skip"];
    deny(&program, &[&rules[..], &["licenses", "bans", "sources"]].concat())?;
    match advisories {
        Advisories::LeftOut => {
            eprintln!("xtask: advisories are not checked (--offline)");
            Ok(())
        }
        Advisories::Fetched => {
            notices(&program)?;
            run(check(&program, None)?, CHECK)
        }
        Advisories::In(database) => {
            notices(&program)?;
            run(check(&program, Some(database))?, CHECK)
        }
    }
}

/// Whether a known advisory fails the check, and none does not: by a database of one advisory, against a crate that is built in and
/// against one that is not.
fn notices(program: &Path) -> Result<(), Failure> {
    let folder = in_workspace("target/tools/advisories-of-the-test");
    for (name, is_built_in) in [("serde", true), ("no-crate-of-this-name", false)] {
        let written = write_database(&folder, name);
        written.map_err(|error| Failure(format!("{}: {error}", folder.display())))?;
        let mut check = check(program, Some(&folder))?;
        let status = check.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if status.is_ok_and(|status| status.success()) == is_built_in {
            let found = if is_built_in { "not noticed" } else { "held against what is built in" };
            return Err(Failure(format!("an advisory against {name} was {found}: the audit proves nothing")));
        }
    }
    Ok(())
}

/// Writes a database with one advisory against all versions of a crate.
fn write_database(folder: &Path, name: &str) -> io::Result<()> {
    let _ = fs::remove_dir_all(folder);
    let advisory = folder.join("crates").join(name);
    fs::create_dir_all(&advisory)?;
    let text = format!(
        "```toml\n[advisory]\nid = \"RUSTSEC-2020-0001\"\npackage = \"{name}\"\ndate = \"2020-01-01\"\n\n[versions]\npatched = []\n```\n\n# Written by the audit\n\nTo see that it is noticed.\n"
    );
    fs::write(advisory.join("RUSTSEC-2020-0001.md"), text)?;
    let person = ["-c", "user.name=audit", "-c", "user.email=audit@localhost", "-c", "commit.gpgsign=false"];
    for words in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["add", "."],
        &["commit", "--quiet", "-m", "one"],
    ] {
        let mut git = Command::new("git");
        // Of a hook that runs this.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            git.env_remove(name);
        }
        let done = git.arg("-C").arg(folder).args(person).args(words).status()?;
        if !done.success() {
            return Err(io::Error::other(format!("git {} failed", words[0])));
        }
    }
    Ok(())
}

/// Fetches RustSec's advisories, or a folder's, and returns the command that checks the dependencies against them.
fn check(program: &Path, database: Option<&Path>) -> Result<Command, Failure> {
    let mut words: Vec<OsString> = Vec::new();
    let mut fetch = Command::new(program);
    fetch.current_dir(in_workspace(".")).stderr(Stdio::null());
    if let Some(database) = database {
        let database = database
            .canonicalize()
            .map_err(|error| Failure(format!("--db {}: {error}", database.display())))?;
        // A copy of its own, so that nothing fetched before is taken for it.
        let copies = in_workspace("target/tools/advisories");
        let _ = fs::remove_dir_all(&copies);
        let rules = in_workspace("target/tools/deny.toml");
        let written = fs::read_to_string(in_workspace("deny.toml")).and_then(|text| {
            fs::write(&rules, format!("{text}db-path = {:?}\n", copies.display().to_string()))
        });
        written.map_err(|error| Failure(format!("{}: {error}", rules.display())))?;
        words.extend(["--config".into(), rules.into()]);
        fetch
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", format!("url.{}.insteadOf", database.display()))
            .env("GIT_CONFIG_VALUE_0", DATABASE);
    }
    fetch.args(&words).args(["fetch", "db"]);
    if !fetch.status().is_ok_and(|status| status.success()) {
        let why = match database {
            Some(database) => format!(
                "{} is not a database of advisories: give a git repository with a branch main, such as a clone of {DATABASE}",
                database.display()
            ),
            None => format!(
                "{DATABASE} cannot be fetched; give a clone of it with --db DIR, or leave advisories out with --offline"
            ),
        };
        return Err(Failure(why));
    }
    let mut command = Command::new(program);
    // Fetched a moment ago.
    command.args(&words).args(["--offline", "check", "--hide-inclusion-graph", "advisories"]);
    command.current_dir(in_workspace("."));
    Ok(command)
}

fn deny(program: &Path, words: &[&str]) -> Result<(), Failure> {
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
