//! A real `seqsvr issuer` process, and calls of its HTTP side.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Dropping it kills it.
pub(crate) struct Process {
    child: Child,
    /// Where it listens.
    pub(crate) addr: String,
}

impl Process {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(config: &Path) -> Self {
        Self::start_in(config, &[])
    }

    /// The same with these in its environment.
    pub(crate) fn start_in(config: &Path, environment: &[(&str, &Path)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_seqsvr"))
            .env_remove("SSL_CERT_DIR")
            .envs(environment.iter().copied())
            .args(["issuer", "--config"])
            .arg(config)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, addr) = line.trim().split_once("listening on http").expect(&line);
        let addr = addr.trim_start_matches('s').trim_start_matches("://").to_owned();
        Self { child, addr }
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Takes numbers of the tag `order`; `None`: the process was killed meanwhile, and numbers that it may have issued are lost.
pub(crate) fn take(addr: &str, count: u32) -> Option<Vec<u64>> {
    let body = format!("{{\"count\":{count}}}");
    let (status, text) = post(addr, "/v1/ids/order", &body)?;
    assert_eq!(status, 200, "{text}");
    let ids = text.split_once("\"ids\":[")?.1.split_once(']')?.0;
    Some(ids.split(',').map(|id| id.trim_matches('"').parse().unwrap()).collect())
}

/// Posts a body and tells the answer: status and body.
pub(crate) fn post(addr: &str, path: &str, body: &str) -> Option<(u16, String)> {
    call(addr, "POST", path, body)
}

/// Gets a page: status and body.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn get(addr: &str, path: &str) -> Option<(u16, String)> {
    call(addr, "GET", path, "")
}

fn call(addr: &str, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(addr).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, text) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, text.to_owned()))
}
