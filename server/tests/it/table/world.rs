//! The program with tables, over a database of its own, and an access key.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark_test_support::ports::free_port;
use tidemark_test_support::servers::postgres::durable_database;
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
    place: Place,
}

/// A database, and the settings of its server.
pub(crate) struct Place {
    data: TempDir,
    settings: Vec<(&'static str, String)>,
}

/// The remains of a stopped server.
pub(crate) struct Stopped {
    key: Key,
    place: Place,
}

impl Stopped {
    /// The files of the server.
    pub(crate) fn data(&self) -> &Path {
        self.place.data.path()
    }

    /// A server over the same data.
    pub(crate) async fn start_again(self) -> World {
        let (server, tables) = self.place.serve().await;
        World { server, tables, key: self.key, place: self.place }
    }
}

/// An access key.
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) instance: String,
}

impl World {
    /// Over SQLite.
    pub(crate) async fn start() -> World {
        World::start_with(&[]).await
    }

    /// Over PostgreSQL.
    pub(crate) async fn start_on_postgres() -> World {
        World::start_with(&[("TIDEMARK_DATABASE_URL", &durable_database().await)]).await
    }

    /// With these settings, named as in the environment.
    pub(crate) async fn start_with(settings: &[(&'static str, &str)]) -> World {
        World::over(tempfile::tempdir().expect("a folder"), settings).await
    }

    /// Over the data that is there.
    pub(crate) async fn over(data: TempDir, settings: &[(&'static str, &str)]) -> World {
        let settings = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let place = Place { data, settings };
        let (server, tables) = place.serve().await;
        let key = place.make_key(&["--instance", "testing"]).await;
        World { server, tables, key, place }
    }

    /// A server over what a file of an export has, in files of its own.
    pub(crate) async fn of_export(file: &Path) -> World {
        World::of_export_with(file, &[]).await
    }

    /// The same with these settings, which may name another database.
    pub(crate) async fn of_export_with(file: &Path, settings: &[(&'static str, &str)]) -> World {
        let named = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let place = Place { data: tempfile::tempdir().expect("a folder"), settings: named };
        output(place.command(&["import", file.to_str().expect("UTF-8")])).await;
        World::over(place.data, settings).await
    }

    /// The program with these arguments, over this database.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.place.command(arguments)
    }

    /// Asks the server to stop, and waits until it has.
    pub(crate) async fn stop(self) -> Stopped {
        let ended = self.server.stop().await.expect("it ended");
        assert!(ended.success(), "{ended}");
        Stopped { key: self.key, place: self.place }
    }

    /// Ends the server as a power cut would end the process.
    pub(crate) async fn kill(self) -> Stopped {
        self.server.kill().await.expect("killed");
        Stopped { key: self.key, place: self.place }
    }

    /// Revokes a key.
    pub(crate) async fn revoke(&self, key: &Key) {
        output(self.place.command(&["table", "key", "revoke", &key.id])).await;
    }

    /// Another key.
    pub(crate) async fn make_key(&self, arguments: &[&str]) -> Key {
        self.place.make_key(arguments).await
    }

    /// Somebody new in the chat: the uid and a token.
    pub(crate) async fn sign_up(&self, name: &str) -> (u64, String) {
        let body = json!({"name": name, "password": "correct horse"});
        let request =
            reqwest::Client::new().post(format!("{}/api/v1/accounts", self.server.address())).json(&body);
        let made: Value = request.send().await.expect("an answer").json().await.expect("JSON");
        (made["uid"].as_u64().expect("a uid"), made["token"].as_str().expect("a token").to_owned())
    }

    /// The environment of a program of another language.
    pub(crate) fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("endpoint", format!("http://{}", self.tables)),
            ("accessKeyId", self.key.id.clone()),
            ("secretAccessKey", self.key.secret.clone()),
            ("instancename", self.key.instance.clone()),
        ]
    }
}

impl Place {
    /// A server and where it serves tables.
    async fn serve(&self) -> (Server, String) {
        let tables = format!("127.0.0.1:{}", free_port());
        let mut settings = self.settings.clone();
        settings.push(("TIDEMARK_TABLE__LISTEN", tables.clone()));
        let server = Server::start_with(&settings, 0, Path::new(PROGRAM), self.data.path()).await;
        (server.expect("started"), tables)
    }

    /// The program with these arguments, over this database.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).arg("--data-dir").arg(self.data.path());
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    async fn make_key(&self, arguments: &[&str]) -> Key {
        let command = self.command(&[&["table", "key", "create", "--json"], arguments].concat());
        let made: Value = serde_json::from_str(&output(command).await).expect("JSON");
        let text = |name: &str| made[name].as_str().expect(name).to_owned();
        Key { id: text("access_key_id"), secret: text("access_key_secret"), instance: text("instance") }
    }
}

/// Runs a program that must succeed, and returns what it printed.
pub(crate) async fn output(mut command: Command) -> String {
    command.kill_on_drop(true);
    let done = timeout(PATIENCE, command.output()).await.expect("in time").expect("the program is there");
    let (printed, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}: {}\n{printed}\n{errors}", done.status);
    printed.into_owned()
}
