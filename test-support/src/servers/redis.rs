//! A Redis of one test's own (Debian `redis-server`), on a free port of the loopback, since tests kill it.

use std::time::Duration;

use crate::ports::free_port;
use redis::aio::MultiplexedConnection;
use redis::{Client, Value};

use super::certificates::Certificates;
use super::{Hanging, folder, until_ready};

/// A server. Dropping it ends it.
pub struct RedisServer {
    hanging: Hanging,
    port: u16,
    tls_port: Option<u16>,
}

impl RedisServer {
    /// Starts an empty server that only writes when it is told to SAVE.
    pub fn start() -> Self {
        Self::start_with(None, "")
    }

    /// Starts one that shows these certificates on another port.
    pub fn start_with_tls(certificates: &Certificates) -> Self {
        let Certificates { authority, certificate, key } = certificates;
        let tls_port = free_port();
        let options = format!(
            "--tls-port {tls_port} --tls-cert-file {certificate:?} --tls-key-file {key:?} \
             --tls-ca-cert-file {authority:?} --tls-auth-clients no"
        );
        Self::start_with(Some(tls_port), &options)
    }

    fn start_with(tls_port: Option<u16>, options: &str) -> Self {
        let port = free_port();
        let line = format!(
            "redis-server --port {port} --bind 127.0.0.1 --save '' --appendonly no --repl-diskless-sync-delay 0 {options}"
        );
        let server = Self { hanging: Hanging::start(line, "KILL", folder("redis")), port, tls_port };
        server.until_ready();
        server
    }

    /// Where it is over TLS.
    pub fn tls_url(&self) -> String {
        format!("rediss://127.0.0.1:{}", self.tls_port.expect("started with certificates"))
    }

    /// Starts the server, on the same port as before, with what the last SAVE wrote.
    pub fn run(&mut self) {
        self.hanging.run();
        self.until_ready();
    }

    /// Ends the server at once.
    pub fn kill(&mut self) {
        self.hanging.kill();
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection to it.
    pub async fn connect(&self) -> MultiplexedConnection {
        let client = Client::open(self.url()).expect("a sound URL");
        client.get_multiplexed_async_connection().await.expect("the server runs")
    }

    /// Runs one command and returns its answer as text.
    pub async fn command(&self, words: &[&str]) -> String {
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| {
            command.arg(word);
        });
        match command.query_async(&mut self.connect().await).await.expect("the server answers") {
            Value::BulkString(bytes) => String::from_utf8(bytes).expect("an answer in text"),
            Value::VerbatimString { text, .. } => text,
            other => format!("{other:?}"),
        }
    }

    fn until_ready(&self) {
        let client = Client::open(self.url()).expect("a sound URL");
        until_ready("Redis", &self.hanging.folder, || {
            let asked = client.get_connection_with_timeout(Duration::from_secs(1));
            asked.is_ok_and(|mut connection| redis::cmd("PING").exec(&mut connection).is_ok())
        });
    }
}
