//! Runs programs of tests one after the other, and reads what they say.

use std::io::{BufRead as _, BufReader};
use std::num::NonZero;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::compile::{Program, Programs};
use super::report::{Report, Test, TestOutcome};
use crate::run::Failure;

/// Which programs of tests make one stage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TestGroup {
    /// Inside the crates.
    Inside,
    /// Of the server, and what they start.
    Server,
    /// Of all others: the cluster, the issuer, the fault runs.
    Others,
    /// In browsers.
    Browser,
}

impl TestGroup {
    /// In the order in which they run.
    pub(super) const ALL: [TestGroup; 4] =
        [TestGroup::Inside, TestGroup::Server, TestGroup::Others, TestGroup::Browser];

    fn of(program: &Program) -> TestGroup {
        match (program.inside, program.name.as_str(), program.package.as_str()) {
            (true, _, _) => TestGroup::Inside,
            (false, "browser", _) => TestGroup::Browser,
            (false, _, "server") => TestGroup::Server,
            (false, _, _) => TestGroup::Others,
        }
    }

    /// Those of it, by name.
    pub(super) fn among(self, programs: &Programs) -> Vec<&Program> {
        programs.all().filter(|program| TestGroup::of(program) == self).collect()
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            TestGroup::Inside => "tests inside the crates",
            TestGroup::Server => "tests of the server",
            TestGroup::Others => "tests of the cluster, the issuer and the fault runs",
            TestGroup::Browser => "tests in browsers",
        }
    }
}

/// The program that also runs over other databases than SQLite.
const OF_DATABASES: &str = "it";

/// The variable that tells it which.
const DATABASE: &str = "TEST_DATABASE";

/// The variable that tells any how many tests run at the same time.
const AT_ONCE: &str = "RUST_TEST_THREADS";

/// Each database that is not the default, and the tests of that program that run over it too: `api` holds what must be so
/// on every database, and over distributed tables its parts that write.
const OTHER_DATABASES: &[(&str, &[&str])] = &[
    ("postgres", &["api::"]),
    (
        "distributed",
        &[
            "api::accounts::",
            "api::conversations::",
            "api::deletion::",
            "api::groups::",
            "api::invites::",
            "api::joiners::",
            "api::messages::",
            "api::people::",
            "api::ws::",
        ],
    ),
];

/// Runs programs, each with these arguments.
pub(super) fn run(programs: Vec<&Program>, arguments: &[String], report: &mut Report) -> Result<(), Failure> {
    let failed = programs.into_iter().flat_map(|program| run_everywhere(program, arguments, report));
    verdict(failed.collect())
}

fn verdict(failed: Vec<String>) -> Result<(), Failure> {
    if failed.is_empty() { Ok(()) } else { Err(Failure(failed.join("; "))) }
}

/// Runs one, over each database if it is the one that does so. Returns what failed.
fn run_everywhere(program: &Program, arguments: &[String], report: &mut Report) -> Vec<String> {
    let mut failed = Vec::new();
    failed.extend(run_one(program, None, arguments, report).err());
    if program.name == OF_DATABASES {
        for (database, parts) in OTHER_DATABASES {
            let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            failed.extend(run_one(program, Some(database), &parts, report).err());
        }
    }
    failed
}

/// Runs the programs that have one of the names, and of the others the tests whose names contain one: those over the database
/// that the environment names.
pub(super) fn run_matching(
    programs: &Programs,
    names: &[String],
    report: &mut Report,
) -> Result<(), Failure> {
    let is_program = |name: &String| programs.all().any(|program| program.name == *name);
    let (whole, parts): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| is_program(name));
    let parts: Vec<String> = parts.into_iter().cloned().collect();
    let mut failed = Vec::new();
    for program in programs.all() {
        if whole.contains(&&program.name) {
            failed.extend(run_everywhere(program, &[], report));
        } else if !parts.is_empty() && lists_any(program, &parts)? {
            failed.extend(run_one(program, None, &parts, report).err());
        }
    }
    if report.is_empty() {
        return Err(Failure(format!("no test and no program of tests matches {}", names.join(" "))));
    }
    verdict(failed)
}

/// Whether it has tests whose names contain one of `parts`.
fn lists_any(program: &Program, parts: &[String]) -> Result<bool, Failure> {
    let listed = Command::new(&program.path).args(parts).arg("--list").current_dir(&program.folder).output();
    let listed = listed
        .map_err(|error| Failure(format!("{} could not be started: {error}", program.path.display())))?;
    Ok(String::from_utf8_lossy(&listed.stdout).lines().any(|line| line.ends_with(": test")))
}

/// Runs one, shows what it says, and takes down each test.
fn run_one(
    program: &Program,
    database: Option<&str>,
    arguments: &[String],
    report: &mut Report,
) -> Result<(), String> {
    let over = database.map(|name| format!(" on {name}")).unwrap_or_default();
    let title = format!("{}/{}{over}", program.package, program.name);
    eprintln!("xtask: {title}");
    let mut command = Command::new(&program.path);
    command
        .args(arguments)
        // The time of each test is for a compiler that calls itself unstable; that is all that this word does here.
        .args(["-Z", "unstable-options", "--report-time"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .current_dir(&program.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    if std::env::var_os(AT_ONCE).is_none() {
        command.env(AT_ONCE, tests_at_once(program).to_string());
    }
    if let Some(database) = database {
        command.env(DATABASE, database);
    }
    let mut running = command.spawn().map_err(|error| format!("{title} could not be started: {error}"))?;
    let before = report.failed();
    for line in BufReader::new(running.stdout.take().expect("piped")).split(b'\n') {
        let line = line.map_err(|error| format!("{title} cannot be read: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        report.tests.extend(test(&title, &line));
    }
    let status = running.wait().map_err(|error| format!("{title} was lost: {error}"))?;
    match (status.success(), report.failed() - before) {
        (true, 0) => Ok(()),
        (_, 0) => Err(format!("{title} ended with {status}")),
        (_, failed) => Err(format!("{title}: {failed} failed")),
    }
}

/// How many tests of a program run at the same time. Most wait for a disk or for another program half of their time; those
/// in browsers do not.
fn tests_at_once(program: &Program) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    match TestGroup::of(program) {
        TestGroup::Browser => cores,
        _ => 2 * cores,
    }
}

/// Parses a line about a test: `test NAME ... ok <1.234s>`.
fn test(program: &str, line: &str) -> Option<Test> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (word, time) = rest.split_once(' ').unwrap_or((rest, ""));
    let outcome = match word {
        "ok" => TestOutcome::Passed,
        "FAILED" => TestOutcome::Failed,
        "ignored" | "ignored," => TestOutcome::Skipped,
        _ => return None,
    };
    let seconds = time.trim_matches(['<', '>', 's']).parse().unwrap_or(0.0);
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    Some(Test { name: format!("{program} {name}"), outcome, took: Duration::from_secs_f64(seconds) })
}
