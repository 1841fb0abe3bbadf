//! A real `seqsvr` process that speaks the Redis protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Dropping it kills it.
pub(crate) struct Process {
    child: Child,
    /// Where it serves clients of Redis: `127.0.0.1:PORT`.
    pub(crate) addr: String,
}

impl Process {
    /// `seqsvr embedded` over this directory, with these flags.
    pub(crate) fn embedded(directory: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seqsvr"));
        command.arg("embedded").arg(directory).args(["--listen", "127.0.0.1:0"]).args(flags);
        Self::start(command)
    }

    /// `seqsvr embedded` over a small disk of its own, mounted at `place`.
    pub(crate) fn on_a_small_disk(place: &Path) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        command.arg("mount -t tmpfs -o size=400k tmpfs \"$1\" && exec \"$0\" embedded \"$1/counters\" --listen 127.0.0.1:0");
        command.arg(env!("CARGO_BIN_EXE_seqsvr")).arg(place);
        Self::start(command)
    }

    /// Where others find the file that the process has at `path`.
    pub(crate) fn sees(&self, path: &Path) -> PathBuf {
        let inside = path.strip_prefix("/").unwrap();
        Path::new("/proc").join(self.child.id().to_string()).join("root").join(inside)
    }

    /// A role with this configuration, which has `[resp]`.
    pub(crate) fn role(role: &str, config: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seqsvr"));
        command.args([role, "--config"]).arg(config);
        Self::start(command)
    }

    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.map(Result::unwrap).find(|line| line.contains("redis"));
        let (_, addr) = line.as_deref().and_then(|line| line.split_once("://")).expect("it listens");
        Self { child, addr: addr.to_owned() }
    }

    /// Its port.
    pub(crate) fn port(&self) -> &str {
        self.addr.rsplit(':').next().unwrap()
    }

    /// The URL for libraries.
    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    /// Ends it at once: SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it in good order.
    pub(crate) fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    /// Sends these bytes, and tells what comes until the connection is closed.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(bytes).unwrap();
        let mut text = Vec::new();
        // The other end may close before it has read everything.
        let _ = stream.read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
