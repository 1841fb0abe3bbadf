//! Real servers of other people for the tests, in temporary folders. The tests of the library use them, and those
//! beside it, which bring this folder in by its path. A server that nobody stops is shared by all tests of a program.

#![allow(dead_code, reason = "the tests of the library and those beside it need different parts")]

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub mod certificates;
pub mod etcd;
pub mod haproxy;
pub mod patroni;
pub mod pgbouncer;
pub mod postgres;
pub mod prometheus;
pub mod redis;

/// The user without rights: some servers refuse to run as root.
const NOBODY: u32 = 65_534;

/// While there is a file of this name the folder outlives the server.
const STAYS: &str = "stays";

/// How long a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder that the server's own user may write.
fn folder(name: &str) -> PathBuf {
    let folder = tempfile::Builder::new().prefix(name).tempdir().expect("a temporary folder").keep();
    give_away(&folder);
    folder
}

/// Gives a file to the server's own user.
fn give_away(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give it away");
    }
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

/// A server in a folder of its own, that can be killed and started again. When the program ends, however it ends, so does the
/// server, and its folder goes: it hangs on a pipe whose other end the program holds.
pub struct Hanging {
    line: String,
    end: String,
    folder: PathBuf,
    shell: Mutex<Option<Child>>,
}

impl Hanging {
    /// Starts `line`, a command line for `sh`, which is ended by `signal`: one that the server does not outlive.
    fn start(line: String, signal: &'static str, folder: PathBuf) -> Self {
        let hanging = Self::ready(line, signal, folder);
        hanging.run();
        hanging
    }

    /// The same, not started yet.
    fn ready(line: String, signal: &'static str, folder: PathBuf) -> Self {
        Self::ending(line, format!("kill -{signal} $!"), folder)
    }

    /// The same, ended by `end`, which is for `sh` as well.
    fn ending(line: String, end: String, folder: PathBuf) -> Self {
        Self { line, end, folder, shell: Mutex::default() }
    }

    /// Starts the line again, after a kill.
    fn run(&self) {
        let Self { line, end, folder, .. } = self;
        let kept = folder.display();
        let script = format!(
            "{line} >>{kept}/log 2>&1 </dev/null & cat; {end}; wait; cd /; [ -e {kept}/{STAYS} ] || rm -rf {kept}"
        );
        let mut shell = command("/bin/sh", folder);
        shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A process group of its own, so that Ctrl-C leaves the shell alive to clean up.
        *self.shell() = Some(shell.process_group(0).spawn().expect("there is a shell"));
    }

    /// Ends the server at once, without a word to whoever is connected; what it has written stays.
    fn kill(&self) {
        let Some(mut shell) = self.shell().take() else { return };
        let stays = self.folder.join(STAYS);
        fs::write(&stays, "").expect("the folder is there");
        shell.wait().expect("the shell ends with its input");
        fs::remove_file(&stays).expect("it was just written");
    }

    fn is_running(&self) -> bool {
        self.shell().is_some()
    }

    fn shell(&self) -> MutexGuard<'_, Option<Child>> {
        self.shell.lock().expect("nobody panics with it")
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        // A server that was killed last left its folder for the next.
        if self.shell().is_none() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
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
