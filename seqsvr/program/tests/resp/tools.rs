//! `redis-cli` and `redis-benchmark`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tidemark_test_support::servers::certificates;

use crate::process::Process;

/// The output of `redis-cli`.
fn cli(process: &Process, words: &[&str]) -> String {
    let done = Command::new("redis-cli").args(["-p", process.port()]).args(words).output().unwrap();
    eprint!("{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
}

/// Runs `redis-benchmark`, and tells what it prints.
fn benchmark(process: &Process, words: &[&str]) -> String {
    let mut command = Command::new("redis-benchmark");
    let done = command.args(["-p", process.port(), "--csv"]).args(words).output().unwrap();
    let (printed, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{printed}{errors}");
    assert!(!errors.contains("WARNING") && !errors.contains("rror"), "{errors}");
    printed.into_owned()
}

#[test]
fn redis_cli_counts() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::embedded(folder.path(), &[]);
    for version in ["-2", "-3"] {
        let cli = |words: &[&str]| cli(&process, &[&[version], words].concat());
        assert_eq!(cli(&["PING"]), "PONG");
        assert_eq!(cli(&["INCR", version]), "1");
        assert_eq!(cli(&["INCRBY", version, "99"]), "100");
        assert_eq!(cli(&["GET", version]), "100");
        assert_eq!(cli(&["SET", version, "1000"]), "OK");
        assert_eq!(cli(&["MGET", version, "none"]), "1000");
        assert!(cli(&["INFO"]).contains("server_name:seqsvr"));
        assert!(cli(&["DECR", version]).starts_with("ERR DECR is not possible: counters only grow"));
        assert!(cli(&["COMMAND", "DOCS"]).contains("Takes the next number of a counter."));
    }
}

#[test]
fn redis_cli_sends_a_million_commands_in_one_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::embedded(folder.path(), &[]);
    let mut child = Command::new("redis-cli")
        .args(["-p", process.port(), "--pipe"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let many = b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n".repeat(1_000);
    for _ in 0..1_000 {
        stdin.write_all(&many).unwrap();
    }
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    assert!(printed.contains("errors: 0, replies: 1000000"), "{printed}");
    assert_eq!(cli(&process, &["GET", "a"]), "1000000");
}

#[test]
fn redis_benchmark_runs_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::embedded(folder.path(), &[]);
    for pipeline in ["1", "16", "64"] {
        let printed = benchmark(&process, &["-t", "incr", "-c", "50", "-n", "20000", "-P", pipeline]);
        assert!(printed.contains("\"INCR\""), "{printed}");
    }
    // It sends whole pipelines, so a few more than it was told.
    let taken: u64 = cli(&process, &["GET", "counter:__rand_int__"]).parse().unwrap();
    assert!((60_000..61_000).contains(&taken), "{taken}");
    // Each key is a counter of its own, which its first INCR makes.
    benchmark(&process, &["-t", "incr", "-n", "20000", "-P", "64", "-r", "5000", "-3"]);
    assert!(cli(&process, &["INFO"]).contains("counters:49"), "nearly all of 5,000 keys were drawn");
}

fn token(folder: &Path) -> String {
    let path = folder.join("token");
    std::fs::write(&path, "correct-horse-battery").unwrap();
    path.display().to_string()
}

#[test]
fn over_tls_counters_are_for_clients_with_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let own = certificates::issue(folder.path());
    let file = |path: &Path| path.display().to_string();
    let (certificate, key, token) = (file(&own.certificate), file(&own.key), token(folder.path()));
    let flags = ["--certificate", &certificate, "--key", &key, "--token-file", &token];
    let process = Process::embedded(&folder.path().join("counters"), &flags);
    let authority = file(&own.authority);
    let tls = ["--tls", "--cacert", &authority, "--no-auth-warning"];
    let cli = |words: &[&str]| cli(&process, &[&tls, words].concat());
    assert_eq!(cli(&["-a", "correct-horse-battery", "INCR", "a"]), "1");
    assert_eq!(cli(&["-3", "-a", "correct-horse-battery", "INCR", "a"]), "2");
    assert!(cli(&["INCR", "a"]).starts_with("NOAUTH "));
    assert!(cli(&["-a", "wrong", "INCR", "a"]).contains("NOAUTH "), "redis-cli goes on after AUTH failed");
    assert_eq!(
        process.raw(b"INCR a\r\n"),
        String::from_utf8_lossy(&alert()),
        "nothing is said in plain text"
    );
    assert_eq!(cli(&["-a", "correct-horse-battery", "GET", "a"]), "2");
}

/// The words of TLS to one that does not speak it, or nothing: either way no answer.
fn alert() -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, 50]
}
