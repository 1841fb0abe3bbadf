//! Running programs, and telling what runs and for how long.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Why a task ended early; one line for people.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Stages in a row, each announced with the time since the first began. A stage that fails does not keep the next one from running.
pub(crate) struct Stages {
    began: Instant,
    /// Name and duration of each, and why it failed.
    done: Vec<(String, Duration, Option<Failure>)>,
}

impl Stages {
    pub(crate) fn begin() -> Stages {
        Stages { began: Instant::now(), done: Vec::new() }
    }

    /// Runs one.
    pub(crate) fn run(&mut self, name: &str, work: impl FnOnce() -> Result<(), Failure>) {
        // Taken down: `end` tells of it.
        let _ = self.work(name, work);
    }

    /// Runs one without which there is nothing more to run; its failure is that of all.
    pub(crate) fn must<T>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.work(name, work) {
            Some(made) => Ok(made),
            None => Err(self.failure()),
        }
    }

    fn work<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T, Failure>) -> Option<T> {
        eprintln!("xtask: [{:5.1} s] {name}", self.began.elapsed().as_secs_f64());
        let began = Instant::now();
        let (made, failure) = match work() {
            Ok(made) => (Some(made), None),
            Err(failure) => (None, Some(failure)),
        };
        self.done.push((name.to_owned(), began.elapsed(), failure));
        made
    }

    /// Tells the time of each stage, and fails when one failed.
    pub(crate) fn end(self) -> Result<(), Failure> {
        for (name, took, failure) in &self.done {
            let verdict = if failure.is_some() { "FAILED" } else { "" };
            eprintln!("xtask: {:7.1} s  {name} {verdict}", took.as_secs_f64());
        }
        eprintln!("xtask: {:7.1} s  in all", self.began.elapsed().as_secs_f64());
        if self.done.iter().all(|(_, _, failure)| failure.is_none()) { Ok(()) } else { Err(self.failure()) }
    }

    /// All that failed, in one.
    fn failure(&self) -> Failure {
        let failed = self.done.iter().filter_map(|(name, _, failure)| {
            failure.as_ref().map(|Failure(reason)| format!("failed in {name}: {reason}"))
        });
        Failure(failed.collect::<Vec<_>>().join("\nxtask: "))
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

/// The cargo that runs this program, to be run in the workspace.
pub(crate) fn command(arguments: &[&str]) -> Command {
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
