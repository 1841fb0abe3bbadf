//! Settings for PostgreSQL, and the connection options made from its URL.

use std::fs::File;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::postgres::PgConnectOptions;

use super::PgOpenError;

/// How much a standby that takes over is sure to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Replication {
    /// Not everything: the newest messages may be lost, though they were acknowledged.
    #[default]
    Asynchronous,
    /// All that was acknowledged.
    Synchronous,
}

/// Options of the connections to PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgOptions {
    /// Connections that the queues share with nobody, 1 or more.
    pub queue_connections: u32,
    /// Connections for everybody else, 1 or more.
    pub connections: u32,
    /// Calls that may wait for one of the latter; more are refused at once.
    pub waiting_reads: usize,
    /// How long a call waits for a free or a new connection.
    pub connect_timeout: Duration,
    /// How long a statement waits for a lock that another transaction holds.
    pub lock_timeout: Duration,
    /// How long a statement may run.
    pub statement_timeout: Duration,
    /// After so long without a statement the database ends a transaction: that of a server that was stopped in the middle.
    pub idle_in_transaction_timeout: Duration,
    /// How much a standby that takes over has.
    pub replication: Replication,
}

impl Default for PgOptions {
    fn default() -> PgOptions {
        PgOptions {
            queue_connections: 4,
            connections: 8,
            waiting_reads: 4_096,
            connect_timeout: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(2),
            statement_timeout: Duration::from_secs(10),
            idle_in_transaction_timeout: Duration::from_secs(5),
            replication: Replication::Asynchronous,
        }
    }
}

impl PgOptions {
    /// The settings of every session, for the packet that opens it.
    pub(super) fn session(&self) -> [(&'static str, String); 4] {
        let milliseconds = |duration: Duration| duration.as_millis().to_string();
        [
            ("synchronous_commit", "on".to_owned()),
            ("lock_timeout", milliseconds(self.lock_timeout)),
            ("statement_timeout", milliseconds(self.statement_timeout)),
            ("idle_in_transaction_session_timeout", milliseconds(self.idle_in_transaction_timeout)),
        ]
    }
}

/// Whether `url` can be used, as far as that is known without a connection.
///
/// # Errors
/// What is wrong with it, and what to do.
pub fn check_url(url: &str) -> Result<(), String> {
    match connection(url) {
        Err(PgOpenError::Url { why }) => Err(why),
        _ => Ok(()),
    }
}

/// The connection that `url` names. Statements are prepared under names, once a connection: without names each would take another
/// round trip.
pub(super) fn connection(url: &str) -> Result<PgConnectOptions, PgOpenError> {
    let refuse = |why: String| Err(PgOpenError::Url { why });
    let parameters = url.split_once('?').map_or("", |(_, parameters)| parameters);
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let key = parameter.split_once('=').map_or(parameter, |(key, _)| key);
        if !is_known(key) {
            return refuse(format!("has a parameter {key:?}, which is unknown; remove it"));
        }
        // Later it would look like a server that does not answer.
        if let Some(why) = certificate(parameter).and_then(|file| File::open(file).err()) {
            return refuse(format!("has {parameter}, which cannot be read ({why}); name a readable file"));
        }
    }
    let options: PgConnectOptions = match url.parse() {
        Ok(options) => options,
        Err(sqlx::Error::Configuration(why)) => {
            return refuse(format!(
                "is not understood ({why}); write postgres://USER:PASSWORD@HOST/DATABASE, with %40 for @, %2F for / and %23 for # in the password"
            ));
        }
        Err(_) => {
            return refuse("is not understood; write postgres://USER:PASSWORD@HOST/DATABASE".to_owned());
        }
    };
    let named = options.get_application_name().is_some();
    let options = if named { options } else { options.application_name("tidemark") };
    // Floating-point numbers are not stored, and poolers refuse to be asked for their digits.
    Ok(options.extra_float_digits(None))
}

/// The file with a certificate that a parameter names.
fn certificate(parameter: &str) -> Option<&str> {
    let (key, file) = parameter.split_once('=')?;
    let is_file = ["sslrootcert", "ssl-root-cert", "ssl-ca", "sslcert", "ssl-cert"].contains(&key);
    // The certificate itself, and what is written in another form, is left to the connection.
    (is_file && !file.contains(['%', '+'])).then_some(file)
}

/// Whether a URL may have this parameter. Others would be ignored, and shown in the log with their values.
fn is_known(parameter: &str) -> bool {
    let known = [
        "application_name",
        "dbname",
        "host",
        "hostaddr",
        "options",
        "password",
        "port",
        "ssl-ca",
        "ssl-cert",
        "ssl-key",
        "ssl-mode",
        "ssl-root-cert",
        "sslcert",
        "sslkey",
        "sslmode",
        "sslrootcert",
        "statement-cache-capacity",
        "user",
    ];
    known.contains(&parameter) || parameter.starts_with("options[") || parameter.starts_with("options%5B")
}

/// The way to the database at `url` for one who listens to its notifications, apart from the pools of [`PgDb`](super::PgDb).
///
/// # Errors
/// What is wrong with the URL.
pub fn listening(url: &str) -> Result<PgConnectOptions, PgOpenError> {
    connection(url)
}

/// Where that is, without anything that is secret.
pub(super) fn place(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    let database = options.get_database().unwrap_or(options.get_username());
    format!("PostgreSQL at {host}, port {}, database {database}", options.get_port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_told_without_its_password() {
        let place_of = |url| place(&connection(url).expect("understood"));
        assert_eq!(
            place_of("postgres://ann:s3cr%40t@db:6432/chat?sslmode=require"),
            "PostgreSQL at db, port 6432, database chat"
        );
        assert_eq!(
            place_of("postgresql://ann@localhost/chat?host=/run/postgresql&options[search_path]=a"),
            "PostgreSQL at /run/postgresql, port 5432, database chat"
        );
    }

    #[test]
    fn a_wrong_url_is_refused_without_its_password() {
        for url in [
            "postgres://ann:s3cret@db/chat?sslmod=s3cret",
            "postgres://ann:s3cret#x@db/chat",
            "postgres://ann:s3cret@db:x/c",
            "postgres://ann:s3cret@db/chat?sslmode=verify-full&sslrootcert=/nowhere/ca.pem",
        ] {
            let refused = connection(url).expect_err("refused").to_string();
            assert!(!refused.contains("s3cret") && refused.contains("; "), "{refused}");
        }
    }
}
