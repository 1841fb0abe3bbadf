//! `cargo xtask …`: one way to do each thing.
//!
//! Only runs other programs: cargo, apt-get for what the tests need, and what packs a release. `fix` is the only command
//! that writes the tree.

mod audit;
mod packages;
mod release;
mod run;

use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

use run::{Failure, Stages, become_cargo, cargo, in_workspace, run};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "One way to do each thing")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything that must hold: format, lints, build, documentation, all tests. Never writes the tree; as root on Debian it
    /// installs the programs that the tests need
    Test {
        /// Only what is quick: format, the page's modules, lints, the tests inside the crates but the simulation, other databases
        /// and long random histories
        #[arg(long)]
        quick: bool,
    },
    /// What is built in: licences, doubled crates, where crates come from, known vulnerabilities (a part of `test`)
    Audit,
    /// The measurements, of a release build: `bench --help` for its options
    #[command(disable_help_flag = true)]
    Bench {
        /// Passed on.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The fault runs, of a release build: `chaos --help` for its options
    #[command(disable_help_flag = true)]
    Chaos {
        /// Passed on.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// A whole sequence service, or three chat servers, on this machine until Ctrl-C: `cluster --help` for its options
    #[command(disable_help_flag = true)]
    Cluster {
        /// Passed on.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Programs, a Debian package, man pages, completions and sums, in target/release-files
    Release,
    /// Formats and mends what can be mended by itself
    Fix,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Test { quick: true } => test_quickly(),
        Task::Test { quick: false } => test(),
        Task::Audit => audit::audit(),
        Task::Bench { arguments } => trials("bench", &[], &arguments),
        Task::Chaos { arguments } => trials("chaos", &["--features", "simulation"], &arguments),
        Task::Cluster { arguments } => cluster(&arguments),
        Task::Release => release::release(),
        Task::Fix => fix(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The stages from the quickest to the slowest, so that most mistakes are told early.
///
/// The last one is the tests: whoever reads only the closing line reads cargo's own verdict.
fn test() -> Result<(), Failure> {
    let mut stages = Stages::begin();
    stages.run("packages", || packages::install(packages::ALL))?;
    before_the_build(&mut stages)?;
    stages.run("audit of the crates", audit::audit)?;
    stages.run("build", || everything(&["build", "--all-targets"], &[]))?;
    stages.run("documentation", || {
        everything(&["doc", "--no-deps", "--document-private-items", "--quiet"], &[])
    })?;
    stages.run("tests: unit, integration, browser", || everything(&["test"], &[]))
}

/// What finds most mistakes, in under a minute when everything is built.
fn test_quickly() -> Result<(), Failure> {
    let mut stages = Stages::begin();
    before_the_build(&mut stages)?;
    let skip: Vec<&str> = NOT_QUICK.iter().flat_map(|name| ["--skip", name]).collect();
    stages.run("tests inside the crates, but the simulation and those of other databases", || {
        let rest = [&["--", "--quiet"], skip.as_slice()].concat();
        everything(&["test", "--lib", "--bins", "--exclude", "seqsvr-simulation"], &rest)
    })
}

/// Parts of the names of tests that take long: they start other programs, or go through thousands of random steps.
const NOT_QUICK: &[&str] =
    &["postgres", "redis", "etcd", "any_history", "a_history_moves", "names_that_come_and_go"];

fn before_the_build(stages: &mut Stages) -> Result<(), Failure> {
    stages.run("format (cargo xtask fix mends it)", || cargo(&["fmt", "--all", "--check"]))?;
    stages.run("tests of the page's modules", || {
        packages::install(&[packages::NODE])?;
        let mut node = Command::new("node");
        // Without a path: how folders are named to it differs between its versions.
        node.args(["--test", "--test-reporter=spec"]).current_dir(in_workspace("web"));
        run(node, "cd web && node --test")
    })?;
    stages.run("lints (cargo xtask fix mends some)", || {
        everything(
            &["clippy", "--all-targets", "--features", "tidemark-trials/simulation"],
            &["--", "--deny", "warnings"],
        )
    })
}

/// What cargo does with all of the workspace.
fn everything(task: &[&str], rest: &[&str]) -> Result<(), Failure> {
    cargo(&[task, &["--locked", "--workspace"], rest].concat())
}

/// Builds the server and a program of `trials/` as users run them, and runs that program, which starts the server by itself.
fn trials(name: &str, only: &[&str], arguments: &[String]) -> Result<(), Failure> {
    let server = ["--package", "tidemark-server"];
    cargo(&[BUILD, PROGRAMS, &server].concat())?;
    // `only` is for that program: cargo builds the programs above without it.
    cargo(&program(name, only, arguments))
}

/// Builds a cluster's programs, and becomes the one that runs it: so Ctrl-C and exit codes are its own.
fn cluster(arguments: &[String]) -> Result<(), Failure> {
    let etcd = arguments.iter().any(|word| word == "etcd" || word == "--store=etcd");
    if etcd {
        packages::install(&[packages::ETCD])?;
    }
    let chat = arguments.iter().any(|word| word == "--chat");
    if chat {
        packages::install(&[packages::POSTGRESQL])?;
    }
    let server: &[&str] = if chat { &["--package", "tidemark-server"] } else { &[] };
    cargo(&[BUILD, PROGRAMS, server].concat())?;
    become_cargo(&program("cluster", &[], arguments))
}

const BUILD: &[&str] = &["build", "--locked", "--release"];
const PROGRAMS: &[&str] = &["--package", "seqsvr", "--package", "tidemark-trials"];

/// Runs a program of `trials/`; with other features than it was built with it would be built anew.
fn program<'a>(name: &'a str, features: &[&'a str], arguments: &'a [String]) -> Vec<&'a str> {
    let mut words = vec!["run", "--locked", "--release", "--quiet", "--package", "tidemark-trials"];
    words.extend(features);
    words.extend(["--bin", name, "--"]);
    words.extend(arguments.iter().map(String::as_str));
    words
}

fn fix() -> Result<(), Failure> {
    cargo(&["clippy", "--workspace", "--all-targets", "--fix", "--allow-dirty", "--allow-staged"])?;
    cargo(&["fmt", "--all"])
}
