//! Tags of an issuer over the Redis protocol.

use std::collections::BTreeSet;
use std::path::Path;

use crate::process::Process;

const TRACE: &str = "[issuer.machine]\nid = 7\n[issuer.tags.trace]\nstrategy = \"snowflake\"\n";

fn start(folder: &Path, security: &str, more: &str) -> Process {
    let (config, database) = (folder.join("issuer.toml"), folder.join("issuer.db"));
    let listen = "listen = \"127.0.0.1:0\"\n[resp]\nlisten = \"127.0.0.1:0\"\n";
    let issuer =
        format!("[issuer]\ndatabase = \"sqlite:{}\"\n[issuer.tags.order]\nstart = 100\n", database.display());
    std::fs::write(&config, format!("{listen}{security}{issuer}{more}")).unwrap();
    Process::role("issuer", &config)
}

#[test]
fn keys_are_tags() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(folder.path(), "", TRACE);
    let answers = process.raw(b"INCR order\r\nINCRBY order 10\r\nINCR order\r\nQUIT\r\n");
    assert_eq!(answers, ":100\r\n:110\r\n:111\r\n+OK\r\n");
    let traces = process.raw(format!("{}QUIT\r\n", "INCR trace\r\n".repeat(1_000)).as_bytes());
    let numbers: Vec<u64> = traces.lines().filter_map(|line| line.strip_prefix(':')?.parse().ok()).collect();
    assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), 1_000, "{traces}");
    assert!(numbers.is_sorted());
    for (line, why) in [
        ("INCR none", "unknown tag \"none\"; configured are: order, trace"),
        ("INCR Order", "bad tag name"),
        ("INCRBY order 1000000000", "ask for 1 to"),
        ("GET order", "INCR takes the next"),
        ("SET order 7", "the configuration says where order starts"),
        ("DEL order", "never removed"),
    ] {
        let answer = process.raw(format!("{line}\r\nQUIT\r\n").as_bytes());
        assert!(answer.starts_with("-ERR ") && answer.contains(why), "{line}: {answer}");
    }
}

#[test]
fn a_kill_repeats_no_number_of_a_tag() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let mut process = start(folder.path(), "", "");
        let answers = process.raw(b"INCR order\r\nINCR order\r\nQUIT\r\n");
        let numbers: Vec<u64> =
            answers.lines().filter_map(|line| line.strip_prefix(':')?.parse().ok()).collect();
        assert!(numbers.len() == 2 && numbers[0] > last && numbers[1] > numbers[0], "{answers} after {last}");
        last = numbers[1];
        process.kill();
    }
}

#[test]
fn the_token_of_the_issuer_counts_here_too() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "correct-horse-battery").unwrap();
    let process = start(folder.path(), &format!("[security]\ntoken_file = {token:?}\n"), "");
    let answers = process.raw(b"INCR order\r\nAUTH another-token-altogether\r\nINCR order\r\nQUIT\r\n");
    let words: Vec<&str> = answers.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(words, ["-NOAUTH", "-WRONGPASS", "-NOAUTH", "+OK"]);
    let answers = process.raw(b"AUTH correct-horse-battery\r\nINCR order\r\nQUIT\r\n");
    assert_eq!(answers, "+OK\r\n:100\r\n+OK\r\n");
}
