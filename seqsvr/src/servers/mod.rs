//! Real servers of other people for the tests: each test program starts what it needs once, in a temporary folder, and they
//! end with it, however it ends: each hangs on a pipe whose other end the program holds.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "etcd")]
pub(crate) mod papers;
pub(crate) mod postgres;
pub(crate) mod redis;

/// The user without rights: some servers refuse to run as root.
const NOBODY: u32 = 65_534;

/// How long a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder that the server's own user may write.
fn folder(name: &str) -> PathBuf {
    let folder = tempfile::Builder::new().prefix(name).tempdir().expect("a temporary folder").keep();
    if is_root() {
        chown(&folder, Some(NOBODY), Some(NOBODY)).expect("root may give it away");
    }
    folder
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A command in `folder`, run as nobody when this is run by root.
fn command(program: impl AsRef<Path>, folder: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    command.current_dir(folder).env("HOME", folder);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Starts `line`, a command line for `sh`, that ends and leaves no `folder` behind when the answer is dropped.
fn hang(line: &str, folder: &Path) -> Child {
    let kept = folder.display();
    let script =
        format!("{line} >{kept}/log 2>&1 </dev/null & cat; kill -KILL $! ; wait; cd /; rm -rf {kept}");
    let mut shell = command("/bin/sh", folder);
    shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // A process group of its own, so that Ctrl-C leaves the shell alive to clean up.
    shell.process_group(0).spawn().expect("there is a shell")
}

/// Asks again and again, across the process border, whether the server is there.
fn until_ready(what: &str, folder: &Path, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(begun.elapsed() < PATIENCE, "{what} does not start: {}", log());
        std::thread::sleep(Duration::from_millis(20));
    }
}
