//! The one build of all tests, which also lints.
//!
//! `cargo clippy` and `cargo test` would each go through every crate, since cargo keeps what was checked and what was
//! built apart. clippy's driver is a compiler that lints: with it in the compiler's place cargo builds what the tests run,
//! and the lints come with it.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{Failure, command};

/// Which tests are built.
#[derive(Clone, Copy)]
pub(super) enum Selection {
    /// Those of every crate, and what they start.
    All,
    /// Those inside the crates, but the simulation.
    Quick,
}

/// A program of tests.
pub(super) struct Program {
    /// Of its crate.
    pub(super) package: String,
    /// The crate's name, or that of a file or folder in its `tests`.
    pub(super) name: String,
    /// Whether its tests stand inside the crate.
    pub(super) inside: bool,
    pub(super) path: PathBuf,
    /// The crate's folder, in which it runs.
    pub(super) folder: PathBuf,
}

/// All that was built.
pub(super) struct Programs {
    programs: Vec<Program>,
    /// How many warnings there were.
    warnings: usize,
}

impl Programs {
    pub(super) fn all(&self) -> impl Iterator<Item = &Program> {
        self.programs.iter()
    }

    /// Fails when anything was warned of.
    pub(super) fn lints(&self) -> Result<(), Failure> {
        match self.warnings {
            0 => Ok(()),
            warnings => Err(Failure(format!("{warnings} warnings, shown with the build"))),
        }
    }
}

/// The arguments that choose all crates, the simulation among them.
pub(super) const EVERYTHING: &[&str] =
    &["--locked", "--workspace", "--features", "tidemark-trials/simulation"];

/// Builds, and shows what the compiler and clippy say.
pub(super) fn build(selection: Selection) -> Result<Programs, Failure> {
    let only: &[&str] = match selection {
        Selection::All => &[],
        Selection::Quick => &["--lib", "--bins"],
    };
    let mut cargo = linting(&[&["test", "--no-run", "--message-format=json"], EVERYTHING, only].concat())?;
    let shown = "cargo test --no-run";
    let mut running = cargo
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Failure(format!("`{shown}` could not be started: {error}")))?;
    let mut built = Programs { programs: Vec::new(), warnings: 0 };
    let lines = BufReader::new(running.stdout.take().expect("piped"));
    for line in lines.lines() {
        let line = line.map_err(|error| Failure(format!("`{shown}` cannot be read: {error}")))?;
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        match message["reason"].as_str() {
            Some("compiler-message") => {
                eprint!("{}", message["message"]["rendered"].as_str().unwrap_or_default());
                // The line that sums up has no place.
                let has_place = message["message"]["spans"].as_array().is_some_and(|spans| !spans.is_empty());
                built.warnings += usize::from(has_place);
            }
            Some("compiler-artifact") => built.programs.extend(program(&message)),
            _ => {}
        }
    }
    let status = running.wait().map_err(|error| Failure(format!("`{shown}` was lost: {error}")))?;
    if !status.success() {
        return Err(Failure(format!("`{shown}` ended with {status}")));
    }
    if matches!(selection, Selection::Quick) {
        built.programs.retain(|program| program.package != "simulation");
    }
    built.programs.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    Ok(built)
}

/// A cargo that compiles the crates of the workspace with clippy's driver.
pub(super) fn linting(arguments: &[&str]) -> Result<Command, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let printed = Command::new(rustc).args(["--print", "sysroot"]).output();
    let printed = printed.map_err(|error| Failure(format!("rustc could not be started: {error}")))?;
    let driver = PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim()).join("bin/clippy-driver");
    if !driver.is_file() {
        return Err(Failure("clippy is not installed; run: rustup component add clippy".to_owned()));
    }
    let mut cargo = command(arguments);
    cargo.env("RUSTC_WORKSPACE_WRAPPER", driver);
    Ok(cargo)
}

/// The program of tests that a message of cargo tells of, if it does.
fn program(message: &Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    message["profile"]["test"].as_bool().filter(|is_test| *is_test)?;
    let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
    let target = &message["target"];
    Some(Program {
        package: folder.file_name()?.to_string_lossy().into_owned(),
        name: target["name"].as_str()?.to_owned(),
        inside: target["kind"][0] != "test",
        path,
        folder,
    })
}
