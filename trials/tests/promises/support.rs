//! Helpers that the tests share: the program, its commands and their output, and waiting with a deadline.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use seqsvr_core::routing::Table;
use tidemark_test_support::until::PATIENCE;
use tidemark_trials::chaos::Load;
use tidemark_trials::cluster::{Shape, Timing};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::{Instant, sleep, timeout};

/// Replacements in a text: the old part and the new one.
pub(crate) type Changes<'a> = &'a [(&'a str, &'a str)];

/// A cluster that soon notices a process that is gone, and bears with a slow one: several clusters share the machine.
pub(crate) fn shape(allocators: usize, arbiters: usize) -> Shape {
    let timing = Timing {
        lease: Duration::from_millis(1_500),
        probe_every: Duration::from_millis(50),
        probe_patience: Duration::from_secs(1),
        dead_after: 4,
    };
    Shape { timing, ..Shape::new(allocators, arbiters) }
}

/// A program that the workspace's build leaves.
pub(crate) fn program(name: &str) -> PathBuf {
    tidemark_trials::program(name).unwrap_or_else(|missing| panic!("{missing}"))
}

/// The output of a command, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `seqsvr` to its end, with words as people type them.
pub(crate) async fn seqsvr(words: &[&str], config: &Path) -> Said {
    let config = config.display().to_string();
    said(&[words, &["--config", &config]].concat()).await
}

/// The same for a command that takes no configuration, or several.
pub(crate) async fn said(words: &[&str]) -> Said {
    let mut command = Command::new(program("seqsvr"));
    command.args(words).stdin(Stdio::null()).kill_on_drop(true);
    let ended = timeout(PATIENCE, command.output()).await;
    let Output { status, stdout, stderr } =
        ended.unwrap_or_else(|_| panic!("{words:?} does not end")).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// The one line by which `seqsvr` refuses, with the exit code `code` and nothing on standard output.
pub(crate) async fn refusal(code: i32, words: &[&str], config: &Path) -> String {
    // A role that starts first logs which version it is.
    let reported = seqsvr(&[&["--log", "warn"], words].concat(), config).await;
    assert_eq!((reported.code, reported.out.as_str()), (Some(code), ""), "{words:?}: {reported:?}");
    assert_eq!(reported.err.lines().count(), 1, "{words:?}: {reported:?}");
    reported.err.trim_end().to_owned()
}

/// A role beside those of the cluster. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct RunningRole {
    _process: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl RunningRole {
    /// Starts it.
    pub(crate) fn start(role: &str, config: &Path) -> RunningRole {
        let mut command = Command::new(program("seqsvr"));
        command.arg(role).arg("--config").arg(config).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let log = BufReader::new(process.stderr.take().unwrap()).lines();
        RunningRole { _process: process, log }
    }

    /// Waits for a line of its log.
    pub(crate) async fn says(&mut self, what: &str) {
        let mut reported = Vec::new();
        let heard = async {
            while let Some(line) = self.log.next_line().await.unwrap() {
                if line.contains(what) {
                    return true;
                }
                reported.push(line);
            }
            false
        };
        let heard = timeout(PATIENCE, heard).await.unwrap_or(false);
        assert!(heard, "not said: {what:?}, but:\n{}", reported.join("\n"));
    }
}

/// A copy of the configuration `original` with some of its text replaced, all of which must be there.
pub(crate) fn altered(original: &Path, name: &str, changes: Changes<'_>) -> PathBuf {
    let mut text = std::fs::read_to_string(original).unwrap();
    for (old, new) in changes {
        assert!(text.contains(old), "{old} is not in {}:\n{text}", original.display());
        text = text.replace(old, new);
    }
    let path = original.with_file_name(format!("{name}.toml"));
    std::fs::write(&path, text).unwrap();
    path
}

/// Looks again and again until something is there.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Ends the callers, and compares everything that they were told.
pub(crate) async fn every_number_held(load: Load) {
    let history = load.end().await.unwrap_or_else(|failure| panic!("a caller gave up: {failure}"));
    assert!(history.answers() > 100, "only {} answers", history.answers());
    let broken = history.broken_promises();
    assert!(broken.is_empty(), "{} promises broke: {broken:#?}", broken.len());
}

/// How many sections the node called `name` holds.
pub(crate) fn held(table: &Table, name: &str) -> u32 {
    table.of(name).map(|one| one.sections.end().get() - one.sections.start().get() + 1).sum()
}

/// Asserts that a line tells its reader `what`.
pub(crate) fn assert_says(line: &str, what: &str) {
    assert!(line.contains(what), "{line:?} does not say {what:?}");
}
