//! `cargo xtask …`: one way to do each thing.
//!
//! Only runs other programs: cargo, apt-get for what the tests need, and what packs a release. `fix` is the only command
//! that writes the tree.

mod audit;
mod packages;
mod release;
mod run;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use audit::Advisories;
use clap::{Parser, Subcommand};

use run::{Failure, become_cargo, cargo, command, run};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "One way to do each thing")]
struct TaskArguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every check: format, lints, all tests, documentation. All failures are listed at the end. Never writes the
    /// tree; as root on Debian it installs the programs that the tests need
    Test {
        /// Only the quick checks: format, the page's modules, lints, the tests inside the crates but the simulation, other databases
        /// and long random histories
        #[arg(long, conflicts_with = "names")]
        quick: bool,
        /// Only these: programs of tests (`browser`), or parts of the names of tests
        names: Vec<String>,
    },
    /// Check the crates that are built in: licences, duplicates, sources, known vulnerabilities
    Audit {
        /// A git repository with the advisories, instead of RustSec's
        #[arg(long, value_name = "DIR", conflicts_with = "offline")]
        db: Option<PathBuf>,
        /// Skip the advisories
        #[arg(long)]
        offline: bool,
    },
    /// Run the benchmarks on a release build: `bench --help` lists the options
    #[command(disable_help_flag = true)]
    Bench {
        /// Passed on.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run the fault runs on a release build: `chaos --help` lists the options
    #[command(disable_help_flag = true)]
    Chaos {
        /// Passed on.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a sequence service, or three chat servers, on this machine until Ctrl-C: `cluster --help` lists the options
    #[command(disable_help_flag = true)]
    Cluster {
        /// Passed on.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Take pictures of every page: wide and on a phone, light, dark and in forced colours, in each language
    Pictures {
        /// Where they are written, seen from the workspace
        #[arg(default_value = "target/pictures")]
        folder: PathBuf,
    },
    /// Build programs, a Debian package, man pages, completions and checksums in target/release-files
    Release,
    /// Format, and fix the lints that can be fixed automatically
    Fix,
}

fn main() -> ExitCode {
    if let Some(code) = test::instead_of_rustdoc() {
        return code;
    }
    let done = match TaskArguments::parse().task {
        Task::Test { quick: true, .. } => test::quickly(),
        Task::Test { names, .. } if !names.is_empty() => test::named(&names),
        Task::Test { .. } => test::all(),
        Task::Audit { offline: true, .. } => audit::audit(&Advisories::LeftOut),
        Task::Audit { db, .. } => audit::audit(&db.map_or(Advisories::Fetched, Advisories::In)),
        Task::Bench { arguments } => trials("bench", &[], &arguments),
        Task::Chaos { arguments } => trials("chaos", &["--features", "simulation"], &arguments),
        Task::Cluster { arguments } => cluster(&arguments),
        Task::Pictures { folder } => pictures(&folder),
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

/// The tests that visit every page take the pictures.
fn pictures(folder: &Path) -> Result<(), Failure> {
    packages::install(&[packages::BROWSER])?;
    let mut tests = command(&["test", "--locked", "--package", "tidemark-server", "--test", "browser"]);
    tests.args(["--", "gallery", "pictures"]).env("PICTURES", folder);
    run(tests, "cargo test --package tidemark-server --test browser -- gallery pictures")
}

fn fix() -> Result<(), Failure> {
    cargo(&["clippy", "--workspace", "--all-targets", "--fix", "--allow-dirty", "--allow-staged"])?;
    cargo(&["fmt", "--all"])
}
