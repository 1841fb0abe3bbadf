//! `seqsvr store` as a process of its own, in a directory of its own.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use seqsvr::rpc::security::{Call, CallConfig};
use seqsvr::store::quorum::Remote;
use tempfile::TempDir;

/// A directory with a configuration.
pub(crate) struct Place {
    at: TempDir,
    config: PathBuf,
}

/// A running replica; killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) addr: String,
}

impl Place {
    /// `more` is added to the configuration.
    pub(crate) fn new(name: &str, more: &str) -> Self {
        let at = tempfile::tempdir().unwrap();
        let config = at.path().join("store.toml");
        let directory = at.path().join("data");
        let text = format!("cluster = \"test\"\nname = \"{name}\"\ndirectory = {directory:?}\n{more}\n");
        std::fs::write(&config, text).unwrap();
        Self { at, config }
    }

    fn command(&self, how: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seqsvr"));
        command.args(["--log", "warn", "store", "--config"]).arg(&self.config).args(how);
        command.current_dir(self.at.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts it and waits until it listens.
    pub(crate) fn start(&self, how: &[&str]) -> Running {
        let mut child = self.command(how).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let addr = line.trim().strip_prefix("listening on ").unwrap_or_else(|| {
            let mut said = String::new();
            let _ = std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said);
            panic!("it says {line:?} and {said:?}")
        });
        Running { addr: addr.to_owned(), child }
    }
}

/// The one line with which it refuses to start.
pub(crate) fn refusal(place: &Place, how: &[&str]) -> String {
    let output = place.command(how).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

impl Running {
    /// The way to it.
    pub(crate) fn link(&self) -> Remote {
        self.link_as("test", 0)
    }

    /// The way to it for a caller that means this cluster and Set.
    pub(crate) fn link_as(&self, cluster: &str, set: u32) -> Remote {
        let call = Call::load(&CallConfig::default()).unwrap();
        Remote::new(&self.addr, &call, cluster, set, Duration::from_secs(5)).unwrap()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn stop(mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
