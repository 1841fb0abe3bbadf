//! The pages' shell blocks, pasted as they stand: every command succeeds, and what the comments show comes out.
//!
//! A comment shows an answer when it begins with a bracket, a brace, an ellipsis, or is a number; an HTTP status may
//! stand before it. So does one that has a line to itself, where it has columns or an ellipsis, or only numbers: the
//! columns come out in their order. Each `…` in it stands for anything. Other comments are for people.
//!
//! And the page of settings has the keys that the programs read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tidemark_test_support::ports::free_port;
use tidemark_trials::program;
use tidemark_trials::server::Server;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a page may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ends what a script started, also where it fails.
const END_JOBS: &str = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT";

/// The folder of the programs that the pages call.
fn programs() -> PathBuf {
    let built = ["seqsvr", "cluster", "tidemark"].map(|name| program(name).expect("built"));
    built[0].parent().expect("a file lies in a folder").to_owned()
}

/// The shell blocks of a page that have `word` in them, one after the other.
fn blocks(page: &str, word: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let text = std::fs::read_to_string(path).expect("the page is there");
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().expect("a first part"));
    blocks.filter(|block| block.contains(word)).collect()
}

/// The answers that the comments of a script show, in order.
fn shown(script: &str) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in script.lines() {
        // At the start of a line, or behind a command and two spaces.
        let comment = line.strip_prefix('#').or_else(|| line.split_once("  # ").map(|(_, comment)| comment));
        let Some(comment) = comment else {
            goes_on = false;
            continue;
        };
        if goes_on && comment.starts_with("  ") {
            shown.last_mut().expect("it goes on").push_str(comment.trim());
            continue;
        }
        let comment = comment.trim();
        let (first, rest) = comment.split_once(' ').unwrap_or((comment, ""));
        let status = first.len() == 3 && first.bytes().all(|byte| byte.is_ascii_digit()) && !rest.is_empty();
        let answer = if status { rest } else { comment };
        let of_digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        goes_on = answer.starts_with(['{', '[', '…']) && answer != "…";
        if goes_on || of_digits(answer) {
            // Behind a wide gap stands what it means.
            shown.push(answer.split("   ").next().expect("a first part").to_owned());
        } else if line.starts_with('#') {
            let columns: Vec<&str> =
                comment.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
            if columns.len() > 1 || comment.contains('…') || comment.split(' ').all(of_digits) {
                shown.push(columns.join("…"));
            }
        }
    }
    shown
}

/// How far into the line the answer reaches, if it stands there.
fn reach(line: &str, answer: &str) -> Option<usize> {
    answer.split('…').try_fold(0, |from, part| Some(from + line[from..].find(part)? + part.len()))
}

/// Runs the script and finds what it shows in what it writes. Says how many answers were found.
async fn paste(script: &str, before: &str, folder: &Path) -> usize {
    let path = programs();
    let pasted = format!("PATH='{}':$PATH\n{before}\n{script}", path.display());
    // `timeout` ends what the script started along with it.
    let mut shell = Command::new("timeout");
    shell.args(["--kill-after=5", &PATIENCE.as_secs().to_string()]);
    shell.args(["bash", "-euo", "pipefail", "-c", &pasted]).current_dir(folder);
    shell.stdin(Stdio::null()).kill_on_drop(true);
    let ended = timeout(PATIENCE + Duration::from_secs(10), shell.output()).await;
    let ended = ended.expect("it ends").expect("bash starts");
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{}\n{out}\n{err}", ended.status);
    let shown = shown(script);
    let mut rest = &*out;
    for answer in &shown {
        let at = rest.lines().find_map(|line| {
            // Where the line starts, and how far into it the answer reaches.
            let start = line.as_ptr() as usize - rest.as_ptr() as usize;
            Some(start + reach(line, answer)?)
        });
        rest = &rest[at.unwrap_or_else(|| panic!("`{answer}` is not a line of:\n{rest}\n{err}"))..];
    }
    shown.len()
}

async fn over_a_server(script: &str) -> usize {
    let data = tempfile::tempdir().expect("a folder");
    let server =
        Server::start_as_shipped(&programs().join("tidemark"), data.path()).await.expect("it starts");
    let port = server.port().expect("it has one");
    let before = format!("api=http://127.0.0.1:{port}/api/v1");
    let found = paste(script, &before, data.path()).await;
    server.stop().await.expect("it stops");
    found
}

#[tokio::test]
async fn the_walk_of_the_readme_works_when_pasted() {
    assert!(over_a_server(&blocks("README.md", "$api")).await >= 2);
}

#[tokio::test]
async fn the_api_page_works_when_pasted() {
    assert!(over_a_server(&blocks("docs/API.md", "")).await >= 12);
}

#[tokio::test]
async fn the_issuers_page_works_when_pasted() {
    let folder = tempfile::tempdir().expect("a folder");
    let [calls, metrics] = [free_port(), free_port()];
    // All blocks but the one that builds: the built programs are in the path.
    let built = blocks("docs/ISSUER.md", "cargo build");
    let script = blocks("docs/ISSUER.md", "").replace(&built, "");
    let script = script.replace(":7430", &format!(":{calls}")).replace(":7431", &format!(":{metrics}"));
    // The port is another one here, so the commands have to be told.
    let before = format!(
        "seqsvr() {{ case $1 in
           issue|tags) command seqsvr \"$@\" --server http://127.0.0.1:{calls};;
           *) exec \"$(type -P seqsvr)\" \"$@\";;
         esac; }}
         {END_JOBS}"
    );
    assert!(paste(&script, &before, folder.path()).await >= 6);
}

#[tokio::test]
async fn the_page_of_counters_works_when_pasted() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = blocks("docs/RESP.md", "").replace("6379", &free_port().to_string());
    assert!(paste(&script, END_JOBS, folder.path()).await >= 4);
}

#[tokio::test]
async fn the_clusters_example_works_when_pasted() {
    let folder = tempfile::tempdir().expect("a folder");
    let built = blocks("docs/CLUSTER.md", "cargo build");
    let mut script = blocks("docs/CLUSTER.md", "").replace(&built, "");
    // The page counts ports up from 7000, 7100 and 7200; here each is looked up in `port`.
    let mut ports = String::new();
    for port in [7001, 7002, 7003, 7101, 7102, 7201] {
        let own = free_port();
        ports += &format!("[{port}]={own} ");
        script = script.replace(&format!(":{port}"), &format!(":{own}"));
    }
    for (of_page, here) in [(":700$n", ":${port[700$n]}"), (":710$n", ":${port[710$n]}")] {
        assert!(script.contains(of_page), "{of_page}");
        script = script.replace(of_page, here);
    }
    let before = format!("port=({ports})\n{END_JOBS}");
    assert!(paste(&script, &before, folder.path()).await >= 10);
}

#[tokio::test]
async fn the_failover_example_works_when_pasted() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = format!("{}/seq", folder.path().display());
    let script = blocks("docs/FAILOVER.md", "").replace("/tmp/seq", &own);
    // `cargo xtask cluster` builds this program and becomes it.
    let before = format!("cargo() {{ shift 2; exec cluster \"$@\"; }}\n{END_JOBS}");
    assert!(paste(&script, &before, folder.path()).await >= 9);
}

/// The tables of docs/SETTINGS-CLUSTER.md in their order: the command that reads such a file, and how the section begins.
const SETTINGS: [(&str, &[&str]); 23] = [
    ("store", &[""]),
    ("alloc", &[""]),
    ("alloc", &["[[sets]]"]),
    ("alloc", &["[resp]"]),
    ("arbiter", &[""]),
    ("arbiter", &["[set]"]),
    ("arbiter", &["[[allocators]]"]),
    ("arbiter", &["[balance]"]),
    ("arbiter", &["[timing]"]),
    ("arbiter", &["[stores]"]),
    ("arbiter", &["[stores.etcd]"]),
    ("arbiter", &["[security]"]),
    ("arbiter", &["[call]"]),
    ("arbiter", &["[connections]"]),
    ("status", &[""]),
    ("status", &["[[sets]]"]),
    ("issuer", &[""]),
    ("issuer", &["[resp]"]),
    ("issuer", &["[issuer]"]),
    ("issuer", &["[issuer.machine]"]),
    ("issuer", &["[issuer.tags.order]"]),
    ("issuer", &["[issuer.tags.order.bits]"]),
    ("issuer", &["[issuer.tags.order.code]"]),
];

/// The texts between backticks.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_page_of_settings_names_the_keys_that_the_programs_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/SETTINGS-CLUSTER.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let tables: Vec<&str> = page.split("\n| key |").skip(1).collect();
    assert_eq!(tables.len(), SETTINGS.len());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("role.toml");
    for ((role, sections), table) in SETTINGS.iter().zip(tables) {
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let named: BTreeSet<String> =
            rows.flat_map(|row| quoted(row.split('|').nth(1).expect("a first column"))).collect();
        let mut read = BTreeSet::new();
        for section in *sections {
            // A program that meets an unknown key names all that it reads there.
            std::fs::write(&file, format!("{section}\nno_such_key = 1\n")).expect("it can be written");
            let mut command = Command::new(programs().join("seqsvr"));
            command.arg(role).arg("--config").arg(&file).kill_on_drop(true);
            let ended = timeout(PATIENCE, command.output()).await.expect("it ends").expect("it starts");
            let reported = String::from_utf8_lossy(&ended.stderr).into_owned();
            let (_, keys) = reported.split_once("unknown field `no_such_key`, expected").expect(&reported);
            read.append(&mut quoted(keys));
        }
        assert_eq!(named, read, "{role} {sections:?}: the page, and what the program reads");
    }
}
