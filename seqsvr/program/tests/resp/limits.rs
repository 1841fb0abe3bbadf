//! Input that no client of good will sends, and more clients than there is place for.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::process::Process;

#[test]
fn each_wrong_input_gets_one_clear_error_and_nobody_else_notices() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::embedded(folder.path(), &[]);
    for (bytes, error) in [
        ("*1\r\n$536870912\r\n", "invalid bulk length: send words of at most 65536 bytes"),
        ("*1000000000\r\n", "invalid multibulk length: send 1 to 10000 words in a command"),
        ("*1\r\n$x\r\n", "invalid bulk length"),
        ("*1\r\nPING\r\n", "expected '$'"),
        ("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nINCR a\r\n", "this is HTTP"),
        ("INCR \"a\"\r\n", "quotes in an inline command"),
    ] {
        let answer = process.raw(bytes.as_bytes());
        assert!(answer.starts_with("-ERR Protocol error: ") && answer.contains(error), "{bytes}: {answer}");
        assert_eq!(answer.matches('\n').count(), 1, "{answer}");
    }
    assert!(process.raw(&[b'x'; 100_000]).contains("too big a command"));
    assert_eq!(process.raw(b"INCR a\r\nQUIT\r\n"), ":1\r\n+OK\r\n", "nothing above was carried out");
}

#[test]
fn clients_beyond_the_limit_are_told_and_closed() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::embedded(folder.path(), &["--connections", "2"]);
    let mut held: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(&process.addr).unwrap()).collect();
    let mut third = TcpStream::connect(&process.addr).unwrap();
    let mut text = String::new();
    third.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("-ERR max number of clients reached"), "{text}");
    drop(held.pop());
    // The place is free a moment later.
    while process.raw(b"PING\r\nQUIT\r\n") != "+PONG\r\n+OK\r\n" {}
}

#[test]
fn a_directory_in_use_and_an_open_port_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let _process = Process::embedded(folder.path(), &[]);
    let other = folder.path().join("other");
    for (directory, listen, code, why) in [
        (folder.path(), "127.0.0.1:0", 1, "another process uses it"),
        (other.as_path(), "0.0.0.0:0", 2, "is not a loopback address"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seqsvr"));
        let done =
            command.args(["--log", "off", "embedded"]).arg(directory).args(["--listen", listen]).output();
        let done = done.unwrap();
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(code), "{error}");
        assert!(error.contains(why) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn a_full_disk_is_told_and_nothing_is_given_that_is_not_durable() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::on_a_small_disk(folder.path());
    let says = |line: &str| process.raw(format!("{line}\r\nQUIT\r\n").as_bytes());
    assert_eq!(says("INCR a"), ":1\r\n+OK\r\n");
    let fill = process.sees(&folder.path().join("fill"));
    let mut file = File::create(&fill).unwrap();
    while file.write_all(&[0; 4_096]).is_ok() {}
    let (mut refused, mut keys) = (String::new(), 0);
    while !refused.contains("TRYAGAIN") {
        keys += 1;
        refused = says(&format!("INCR {keys}-{}", "x".repeat(200)));
        assert!(refused.starts_with(":1\r\n") || refused.contains("database or disk is full"), "{refused}");
    }
    assert_eq!(says("INCR a"), ":2\r\n+OK\r\n", "below its ceiling it is durable already");
    assert!(says("INFO").contains("trouble:/"));
    std::fs::remove_file(&fill).unwrap();
    drop(file);
    let late = format!("INCR {keys}-{}", "x".repeat(200));
    assert_eq!(says(&late), ":1\r\n+OK\r\n", "nobody got a number of it before");
    assert!(says("INFO").contains("trouble:\r\n"));
}
