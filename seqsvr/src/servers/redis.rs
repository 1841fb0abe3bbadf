//! A Redis of one test's own (Debian `redis-server`), on a socket in a folder, since tests stop it. Dropping it ends it.

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use super::until_ready;

pub(crate) struct Server {
    process: Child,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts an empty server without persistence.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket", "redis.socket", "--dir"])
            .arg(folder.path())
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the Debian package redis-server is installed");
        let server = Self { process, folder };
        until_ready("Redis", server.folder.path(), || {
            UnixStream::connect(server.folder.path().join("redis.socket")).is_ok()
        });
        server
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("unix://{}/redis.socket", self.folder.path().display())
    }

    /// Ends the server at once.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
