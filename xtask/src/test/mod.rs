//! `cargo xtask test`: everything that must hold, each thing built once, all failures told at the end.

mod compile;
mod documentation;
mod report;
mod tests;

use std::process::Command;

use crate::packages;
use crate::run::{Failure, Stages, cargo, in_workspace, run};

use compile::Selection;
pub(crate) use documentation::instead_of_rustdoc;
use report::Report;

/// Parts of the names of tests that take long: they start other programs, or go through thousands of random steps.
const NOT_QUICK: &[&str] =
    &["postgres", "redis", "etcd", "any_history", "a_history_moves", "names_that_come_and_go"];

/// Everything. A failed stage does not keep the next one from running, unless there is nothing to run.
pub(crate) fn all() -> Result<(), Failure> {
    let mut stages = Stages::begin();
    let mut report = Report::default();
    stages.must("packages", || packages::install(packages::ALL))?;
    before_the_build(&mut stages);
    let programs =
        stages.must("build, with lints (cargo xtask fix mends some)", || compile::build(Selection::All))?;
    stages.run("lints", || programs.lints());
    for group in tests::TestGroup::ALL {
        stages.run(group.title(), || tests::run(group.among(&programs), &[], &mut report));
    }
    stages.run("documentation, and the tests in it", documentation::tests);
    report.print();
    stages.end()
}

/// The checks that find most mistakes, in under a minute when everything is built.
pub(crate) fn quickly() -> Result<(), Failure> {
    let mut stages = Stages::begin();
    let mut report = Report::default();
    before_the_build(&mut stages);
    let programs =
        stages.must("build, with lints (cargo xtask fix mends some)", || compile::build(Selection::Quick))?;
    stages.run("lints", || programs.lints());
    let skip: Vec<String> =
        NOT_QUICK.iter().flat_map(|name| ["--skip".to_owned(), (*name).to_owned()]).collect();
    stages.run("tests inside the crates, but the simulation and those of other databases", || {
        tests::run(tests::TestGroup::Inside.among(&programs), &skip, &mut report)
    });
    report.print();
    stages.end()
}

/// Only what `names` match: a program of tests (`browser`), or a part of a test's name.
pub(crate) fn named(names: &[String]) -> Result<(), Failure> {
    let mut stages = Stages::begin();
    let mut report = Report::default();
    let programs = stages.must("build, with lints", || compile::build(Selection::All))?;
    stages.run("lints", || programs.lints());
    stages.run("tests", || tests::run_matching(&programs, names, &mut report));
    report.print();
    stages.end()
}

fn before_the_build(stages: &mut Stages) {
    stages.run("format (cargo xtask fix mends it)", || cargo(&["fmt", "--all", "--check"]));
    stages.run("tests of the page's modules", || {
        packages::install(&[packages::NODE])?;
        let mut node = Command::new("node");
        // Without a path: how folders are named to it differs between its versions.
        node.args(["--test", "--test-reporter=spec"]).current_dir(in_workspace("web"));
        run(node, "cd web && node --test")
    });
}
