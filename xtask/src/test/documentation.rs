//! The tests in documentation, and the documentation of the crates that others use.
//!
//! `cargo doc` would check every dependency anew, since it uses nothing of what was built. `cargo test --doc` hands rustdoc
//! what was built: so this program stands in rustdoc's place and lets it write the documentation first.

use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitCode};

use super::compile;
use crate::run::{Failure, in_workspace, run};

/// The crates that programs of other people use, by the names that rustdoc knows.
const FOR_OTHERS: &[&str] = &["tidemark_client", "seqsvr_client", "seqsvr_issuer"];

/// Says to this program that it is called as rustdoc.
const STANDS_IN: &str = "XTASK_IS_RUSTDOC";

/// Compiles and runs the examples in comments. A broken link in the documentation for others is a failure, too.
pub(super) fn tests() -> Result<(), Failure> {
    let this = std::env::current_exe().map_err(|error| Failure(format!("this program is lost: {error}")))?;
    let mut cargo =
        compile::linting(&[&["test", "--doc", "--quiet", "--no-fail-fast"], compile::EVERYTHING].concat())?;
    cargo.env("RUSTDOC", this).env(STANDS_IN, "yes");
    run(cargo, "cargo test --doc --workspace")
}

/// Does the work of rustdoc if cargo calls this program as rustdoc; otherwise `None`.
pub(crate) fn instead_of_rustdoc() -> Option<ExitCode> {
    std::env::var_os(STANDS_IN)?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let of = |name: &str| arguments.iter().skip_while(|it| *it != name).nth(1).and_then(|it| it.to_str());
    let is_for_others = of("--crate-name").is_some_and(|name| FOR_OTHERS.contains(&name));
    let written = !is_for_others || rustdoc(&written(&arguments));
    let tested = rustdoc(&arguments);
    Some(if written && tested { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The arguments that write what these would test.
fn written(arguments: &[OsString]) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            Some("--test") => {}
            Some("--test-run-directory" | "--test-args") => drop(rest.next()),
            _ => all.push(argument.clone()),
        }
    }
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| in_workspace("target"), Into::into).join("doc");
    all.extend(
        [OsStr::new("--deny"), OsStr::new("warnings"), OsStr::new("--out-dir"), folder.as_os_str()]
            .map(Into::into),
    );
    all
}

fn rustdoc(arguments: &[OsString]) -> bool {
    Command::new("rustdoc").args(arguments).status().is_ok_and(|status| status.success())
}
