//! `seqsvr store` as a process of its own, in a directory of its own; and other roles beside it.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seqsvr_cluster::store::StoresConfig;
use seqsvr_cluster::store::quorum::{Link, Quorum, Remote};
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::{Address, Layout, Moves, SetTerms};
use seqsvr_rpc::security::{Call, CallConfig};
use tempfile::TempDir;

/// A directory with a configuration.
pub(crate) struct StoreFolder {
    at: TempDir,
    config: PathBuf,
}

/// A running replica; killed when it is dropped.
pub(crate) struct RunningReplica {
    child: Child,
    pub(crate) addr: String,
}

impl StoreFolder {
    /// `more` is added to the configuration.
    pub(crate) fn new(name: &str, more: &str) -> Self {
        let at = tempfile::tempdir().unwrap();
        let config = at.path().join("store.toml");
        let directory = at.path().join("data");
        let text = format!("cluster = \"test\"\nname = \"{name}\"\ndirectory = {directory:?}\n{more}\n");
        std::fs::write(&config, text).unwrap();
        Self { at, config }
    }

    /// Another one with the same files, of which the configuration says something else.
    pub(crate) fn altered(&self, from: &str, to: &str) -> Self {
        let text = std::fs::read_to_string(&self.config).unwrap();
        assert!(text.contains(from), "{text}");
        let at = tempfile::tempdir().unwrap();
        let config = at.path().join("store.toml");
        std::fs::write(&config, text.replace(from, to)).unwrap();
        Self { at, config }
    }

    /// Where its files are.
    pub(crate) fn files(&self) -> PathBuf {
        self.at.path().join("data")
    }

    fn command(&self, how: &[&str]) -> Command {
        command("store", &self.config, how)
    }

    /// Starts it and waits until it listens.
    pub(crate) fn start(&self, how: &[&str]) -> RunningReplica {
        RunningReplica::of(self.command(how))
    }
}

fn command(role: &str, config: &Path, how: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seqsvr"));
    command.args(["--log", "warn", role, "--config"]).arg(config).args(how);
    command.current_dir(config.parent().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts another role with the configuration `text`, in `folder`.
pub(crate) fn start(role: &str, folder: &Path, text: &str) -> RunningReplica {
    let config = folder.join(format!("{role}.toml"));
    std::fs::write(&config, text).unwrap();
    RunningReplica::of(command(role, &config, &[]))
}

impl RunningReplica {
    /// Waits until it listens.
    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let addr = line.trim().strip_prefix("listening on ").unwrap_or_else(|| {
            let mut reported = String::new();
            let _ = std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut reported);
            panic!("it says {line:?} and {reported:?}")
        });
        Self { addr: addr.to_owned(), child }
    }

    /// The lines that it logs until one contains `awaited`, and after that until it has ended.
    pub(crate) fn logged_until(mut self, awaited: &str) -> Vec<String> {
        let mut lines = BufReader::new(self.child.stderr.take().unwrap()).lines();
        let mut logged = Vec::new();
        while !logged.last().is_some_and(|line: &String| line.contains(awaited)) {
            logged.push(lines.next().unwrap_or_else(|| panic!("it ended after {logged:?}")).unwrap());
        }
        self.stop();
        logged.extend(lines.map(Result::unwrap));
        logged
    }
}

/// The one line with which it refuses to start.
pub(crate) fn refusal(place: &StoreFolder, how: &[&str]) -> String {
    let output = place.command(how).output().unwrap();
    assert!(!output.status.success());
    let reported = String::from_utf8(output.stderr).unwrap();
    assert_eq!(reported.lines().count(), 1, "{reported}");
    reported
}

/// The Set of these stores, which are new.
pub(crate) async fn set_of(stores: &[&RunningReplica]) -> Arc<Quorum> {
    let addrs: Vec<&str> = stores.iter().map(|store| store.addr.as_str()).collect();
    let config: StoresConfig = toml::from_str(&format!("replicas = {addrs:?}\npatience_ms = 5000")).unwrap();
    let quorum = config.open("test", 0).unwrap().quorum.unwrap();
    let layout = Layout { section_size: 100_000, step: 10_000 };
    quorum
        .establish(&SetTerms {
            lease: Duration::from_secs(2),
            layout,
            uids: 0..=u32::MAX,
            moves: Moves::default(),
        })
        .await
        .unwrap();
    quorum
}

/// The way to a member of the first configuration.
pub(crate) struct MemberLink {
    remote: Remote,
    to: Address,
}

#[async_trait]
impl Link for MemberLink {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        self.remote.call(self.to, question).await
    }
}

impl RunningReplica {
    /// The way to it, which is a member of the first configuration.
    pub(crate) async fn member(&self) -> MemberLink {
        let remote = self.link();
        let Ok(Answer::Described(what)) = remote.ask(Question::Describe).await else {
            panic!("it says what it is")
        };
        MemberLink { remote, to: Address { number: 1, member: what.id } }
    }

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

impl Drop for RunningReplica {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
