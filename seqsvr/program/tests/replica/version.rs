//! `seqsvr --version`, and the log and the metrics of every role, say the same.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use tidemark_test_support::ports::free_port;

const STORES: &str = "replicas = [\"http://127.0.0.1:1\", \"http://127.0.0.1:2\", \"http://127.0.0.1:3\"]";

#[test]
fn every_role_says_which_version_it_is() {
    let said = Command::new(env!("CARGO_BIN_EXE_seqsvr")).arg("--version").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let version = said.trim().strip_prefix("seqsvr ").unwrap();
    let words: Vec<&str> = version.split([' ', '(', ')']).filter(|word| !word.is_empty()).collect();
    let [number, commit, _] = words[..] else { panic!("{version}") };
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    let commit = if commit == "commit" { "unknown" } else { commit };
    let expected = format!("seqsvr_build_info{{version=\"{number}\",commit=\"{commit}\"}} 1");

    let folder = tempfile::tempdir().unwrap();
    for (role, how, text) in [
        ("store", &["--init"][..], "cluster = \"c\"\nname = \"s\"\ndirectory = \"s\"".to_owned()),
        (
            "alloc",
            &[],
            format!("cluster = \"c\"\nname = \"a\"\ndirectory = \"a\"\n[[sets]]\n[sets.stores]\n{STORES}"),
        ),
        (
            "arbiter",
            &[],
            format!(
                "cluster = \"c\"\nnumber = 0\n[set]\n[stores]\n{STORES}\n\
                 [[allocators]]\nname = \"a\"\naddr = \"http://127.0.0.1:4\""
            ),
        ),
        ("issuer", &[], "[issuer]\ndatabase = \"sqlite:issuer.db\"\n[issuer.tags.order]".to_owned()),
    ] {
        let (config, metrics) = (folder.path().join(format!("{role}.toml")), free_port());
        let text = format!("listen = \"127.0.0.1:0\"\nmetrics_listen = \"127.0.0.1:{metrics}\"\n{text}\n");
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_seqsvr"));
        command.args([role, "--config"]).arg(&config).args(how).current_dir(folder.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        // Open until the end: the role goes on writing to it.
        let mut log = BufReader::new(child.stderr.take().unwrap());
        log.read_line(&mut line).unwrap();
        assert!(line.contains("seqsvr starts") && line.contains(version), "{role}: {line}");
        line.clear();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{role}: {line}");
        let mut page = TcpStream::connect(("127.0.0.1", metrics)).unwrap();
        page.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        page.read_to_string(&mut text).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(text.lines().any(|line| line == expected), "{role}: {expected} is missing in:\n{text}");
    }
}
