//! A PostgreSQL of the measurement's own (Debian `postgresql`), as it comes: every commit waits for the disk.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Failure, Result};

/// The user without rights: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65_534;

/// A running server. Dropping it ends it.
pub(crate) struct Postgres {
    process: Child,
    folder: PathBuf,
}

impl Postgres {
    /// Makes a database cluster in `folder`, which must be empty, and starts a server for it, reached over a socket there. It
    /// answers some moments later.
    pub(crate) fn start(folder: &Path) -> Result<Postgres> {
        let root = fs::metadata("/proc/self")?.uid() == 0;
        if root {
            chown(folder, Some(NOBODY), Some(NOBODY))?;
        }
        let command = |program: &str| -> Result<Command> {
            let mut command = Command::new(newest(program)?);
            command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if root {
                command.uid(NOBODY).gid(NOBODY);
            }
            Ok(command)
        };
        let data = folder.join("data");
        let mut initdb = command("initdb")?;
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--pgdata"]);
        let made = initdb.arg(&data).stderr(Stdio::piped()).output()?;
        if !made.status.success() {
            return Err(Failure::new(format!("initdb: {}", String::from_utf8_lossy(&made.stderr).trim())));
        }
        let mut postgres = command("postgres")?;
        postgres.arg("-D").arg(&data).arg("-k").arg(folder).args(["-c", "listen_addresses="]);
        Ok(Postgres { process: postgres.spawn()?, folder: folder.to_owned() })
    }

    /// `postgres://…`
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@localhost/postgres?host={}", self.folder.display())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // At once, with all its processes.
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::QUIT);
        }
        let _ = self.process.wait();
    }
}

/// A program of the newest version that is installed; Debian keeps them out of the path.
fn newest(program: &str) -> Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let programs = versions.map(|version| version.path().join("bin").join(program));
    programs
        .filter(|program| program.is_file())
        .max()
        .ok_or_else(|| Failure::new(format!("{program} (Debian package postgresql) is not installed")))
}
