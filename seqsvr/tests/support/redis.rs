//! A real Redis of the test's own, on a free port of the loopback. Dropping it ends it.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::aio::MultiplexedConnection;

use crate::waiting::until_now;

pub(crate) struct Redis {
    process: Option<Child>,
    folder: tempfile::TempDir,
    port: u16,
}

impl Redis {
    /// Starts an empty server without persistence.
    pub(crate) fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { process: None, folder: tempfile::tempdir().unwrap(), port };
        server.run();
        server
    }

    /// Starts the server, on the same port as before, with what the last SAVE wrote.
    pub(crate) fn run(&mut self) {
        let process = Command::new("redis-server")
            .args([
                "--port",
                &self.port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .args(["--repl-diskless-sync-delay", "0", "--dir"])
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the Debian package redis-server is installed");
        self.process = Some(process);
        until_now("Redis starts", || self.answers());
    }

    fn answers(&self) -> bool {
        let client = redis::Client::open(self.url()).unwrap();
        let asked = client.get_connection_with_timeout(Duration::from_secs(1));
        asked.is_ok_and(|mut connection| redis::cmd("PING").exec(&mut connection).is_ok())
    }

    /// Ends the server at once.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) async fn connect(&self) -> MultiplexedConnection {
        redis::Client::open(self.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
    }

    /// Runs one command and returns its answer as text.
    pub(crate) async fn command(&self, words: &[&str]) -> String {
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| {
            command.arg(word);
        });
        let answer: redis::Value = command.query_async(&mut self.connect().await).await.unwrap();
        match answer {
            redis::Value::BulkString(bytes) => String::from_utf8(bytes).unwrap(),
            redis::Value::VerbatimString { text, .. } => text,
            other => format!("{other:?}"),
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
