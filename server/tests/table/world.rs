//! The program with tables, over a database of its own, and an access key.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tidemark_test_support::ports::free_port;
use tidemark_trials::server::Server;
use tokio::process::Command;
use tokio::time::timeout;

/// Far longer than anything here takes; a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_tidemark");

/// A running server, whose tables belong to one instance.
pub(crate) struct World {
    pub(crate) server: Server,
    /// `127.0.0.1:PORT`, where tables are served.
    pub(crate) tables: String,
    pub(crate) key: Key,
    data: TempDir,
}

/// What a server leaves behind.
pub(crate) struct Stopped {
    key: Key,
    data: TempDir,
}

impl Stopped {
    /// A server over the same data.
    pub(crate) async fn start_again(self) -> World {
        let (server, tables) = serve(self.data.path(), &[]).await;
        World { server, tables, key: self.key, data: self.data }
    }
}

/// An access key.
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) instance: String,
}

impl World {
    pub(crate) async fn start() -> World {
        World::start_with(&[]).await
    }

    /// The same with these settings, named as in the environment.
    pub(crate) async fn start_with(settings: &[(&str, &str)]) -> World {
        let data = tempfile::tempdir().expect("a folder");
        let (server, tables) = serve(data.path(), settings).await;
        let key = make_key(data.path(), &["--instance", "testing"]).await;
        World { server, tables, key, data }
    }

    /// Asks the server to stop, and waits until it has.
    pub(crate) async fn stop(self) -> Stopped {
        let ended = self.server.stop().await.expect("it ended");
        assert!(ended.success(), "{ended}");
        Stopped { key: self.key, data: self.data }
    }

    /// Revokes a key.
    pub(crate) async fn revoke(&self, key: &Key) {
        let mut command = Command::new(PROGRAM);
        command.args(["table", "key", "revoke", &key.id, "--data-dir"]).arg(self.data.path());
        output(command).await;
    }

    /// Another key.
    pub(crate) async fn make_key(&self, arguments: &[&str]) -> Key {
        make_key(self.data.path(), arguments).await
    }

    /// What a program of another language finds in its environment.
    pub(crate) fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("endpoint", format!("http://{}", self.tables)),
            ("accessKeyId", self.key.id.clone()),
            ("secretAccessKey", self.key.secret.clone()),
            ("instancename", self.key.instance.clone()),
        ]
    }
}

/// A server and where it serves tables.
async fn serve(data: &Path, settings: &[(&str, &str)]) -> (Server, String) {
    let tables = format!("127.0.0.1:{}", free_port());
    let mut settings: Vec<_> = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    settings.push(("TIDEMARK_TABLE__LISTEN", tables.clone()));
    let server = Server::start_with(&settings, 0, Path::new(PROGRAM), data).await.expect("started");
    (server, tables)
}

async fn make_key(data: &Path, arguments: &[&str]) -> Key {
    let mut command = Command::new(PROGRAM);
    command.args(["table", "key", "create", "--json"]).args(arguments).arg("--data-dir").arg(data);
    let made: Value = serde_json::from_str(&output(command).await).expect("JSON");
    let text = |name: &str| made[name].as_str().expect(name).to_owned();
    Key { id: text("access_key_id"), secret: text("access_key_secret"), instance: text("instance") }
}

/// Runs a program that must succeed, and returns what it printed.
pub(crate) async fn output(mut command: Command) -> String {
    command.kill_on_drop(true);
    let done = timeout(PATIENCE, command.output()).await.expect("in time").expect("the program is there");
    let (printed, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}: {}\n{printed}\n{errors}", done.status);
    printed.into_owned()
}
