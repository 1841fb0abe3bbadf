//! Running programs, and telling what runs and for how long.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Why a task ended early; one line for people.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Stages in a row, each announced with the time since the first began.
pub(crate) struct Stages {
    began: Instant,
}

impl Stages {
    pub(crate) fn begin() -> Stages {
        Stages { began: Instant::now() }
    }

    /// Runs one; a failure says which it was.
    pub(crate) fn run(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        eprintln!("xtask: [{:5.1} s] {name}", self.began.elapsed().as_secs_f64());
        work().map_err(|Failure(reason)| {
            let seconds = self.began.elapsed().as_secs_f64();
            Failure(format!("failed after {seconds:.1} s in {name}: {reason}"))
        })
    }
}

/// Runs the cargo that runs this program, in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Result<(), Failure> {
    run(command(arguments), &format!("cargo {}", arguments.join(" ")))
}

/// The same in the place of this process; returns only when that fails.
pub(crate) fn become_cargo(arguments: &[&str]) -> Result<(), Failure> {
    let error = command(arguments).exec();
    Err(Failure(format!("`cargo {}` could not be started: {error}", arguments.join(" "))))
}

fn command(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.current_dir(in_workspace(".")).args(arguments);
    command
}

/// A folder of the workspace: this program may be called from any folder below it.
pub(crate) fn in_workspace(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)
}

/// Runs a program to its end; `shown` is what people could type.
pub(crate) fn run(mut command: Command, shown: &str) -> Result<(), Failure> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure(format!("`{shown}` ended with {status}"))),
        Err(error) => Err(Failure(format!("`{shown}` could not be started: {error}"))),
    }
}
