//! Holds what rustc cannot see: the direction of imports (`directions`), the length of files, the words that say
//! "unfinished", that the tests exist that the pages name, and that what serves is no client of HTTP.

mod checker;
mod circles;
mod clients;
mod directions;
mod source;
mod words;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

const LONGEST: usize = 450;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the server lies in the workspace").to_owned()
}

fn files(under: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(under).expect("a folder of the workspace") {
        let path = entry.expect("readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "data" {
                found.extend(files(&path, endings));
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn files_stay_short_and_say_what_they_are() {
    for path in files(&root(), &[".rs", ".js", ".css"]) {
        let text = read(&path);
        // Data of another project, in the form that the page reads.
        if text.lines().take(3).any(|line| line.contains("made by web/vendor/")) {
            continue;
        }
        let lines = text.lines().count();
        assert!(lines <= LONGEST, "{}: {lines} lines; one idea a file, at most {LONGEST}", path.display());
        if path.extension().is_some_and(|ending| ending == "rs") {
            assert!(text.starts_with("//!"), "{}: begins without saying what it is", path.display());
        }
    }
}

#[test]
fn nothing_is_left_unfinished_or_unrun() {
    // Put together here, so that this file does not find itself.
    let marks = [("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("#[igno", "re")].map(|(a, b)| format!("{a}{b}"));
    for path in files(&root(), &[".rs", ".js", ".css", ".html"]) {
        let text = read(&path);
        for mark in &marks {
            assert!(!text.contains(mark.as_str()), "{}: holds {mark}", path.display());
        }
    }
}

/// The texts between backticks in `text`, outside fenced blocks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2))
}

/// Whether `span` is a file or folder of a crate: `server/src/http`, `seqsvr/core/tests/faults.rs`.
fn is_path(span: &str) -> bool {
    let crates = ["server", "seqsvr", "client", "process", "web", "trials", "test-support", "xtask"];
    span.split_once('/')
        .is_some_and(|(first, rest)| crates.contains(&first) && !rest.contains([' ', '*', '{']))
}

/// The names of all functions in `text`.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("fn ").skip(1);
    after.filter_map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next())
}

#[test]
fn tests_that_the_pages_name_exist() {
    let mut known: HashSet<String> = HashSet::new();
    for path in files(&root(), &[".rs"]) {
        known.extend(functions(&read(&path)).map(str::to_owned));
        // The modules that a path in a page leads through.
        let inside = path.strip_prefix(root()).expect("of the workspace");
        known.extend(inside.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()));
    }
    let mut looked_at = 0;
    for page in ["docs/FACTS.md", "docs/ARCHITECTURE.md"] {
        let text = read(&root().join(page));
        for span in code_spans(&text).filter(|span| is_path(span)) {
            let (path, name) = span.split_once("::").map_or((span, None), |(path, name)| (path, Some(name)));
            let file = root().join(path);
            assert!(file.exists(), "{page}: `{span}`: there is no {path}");
            if let Some(name) = name {
                let found = functions(&read(&file)).any(|function| function == name);
                assert!(found, "{page}: `{span}`: {path} has no function of this name");
                looked_at += 1;
            }
        }
        // Shorter: `ordering::a_name`, or a_name alone, in the paragraphs that say what holds an invariant.
        let held = text.split("\n\n").filter_map(|paragraph| paragraph.split_once("*Held by*"));
        for span in held.flat_map(|(_, held)| code_spans(held)).filter(|span| !is_path(span)) {
            let parts = span.split("::").filter(|part| *part != "*");
            for part in parts.filter(|_| span.contains("::") || span.matches('_').count() > 2) {
                assert!(known.contains(part), "{page}: `{span}`: nothing is called {part}");
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 100, "the test no longer finds what the pages name: {looked_at}");
}
