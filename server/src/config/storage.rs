//! `[storage]`: where the data lies, and what SQLite and PostgreSQL may use. The defaults are those of the stores themselves.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ConfigError, DatabaseKind, DatabaseUrl, within};
use crate::store::postgres::{PgOptions, Replication, check_url};
use crate::store::sqlite::SqliteOptions;

/// Where the data lies. What is skipped is no setting, as in `[limits]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StorageSection {
    /// The directory of the database, unless `database_url` says otherwise.
    pub data_dir: PathBuf,
    /// `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`; empty: `tidemark.db` in `data_dir`.
    pub database_url: DatabaseUrl,
    /// PostgreSQL: where servers tell each other of new rows, if `database_url` leads through a pooler: the same database without it.
    /// Empty: `database_url`.
    pub listen_url: DatabaseUrl,
    /// PostgreSQL: how long a start waits for a database that does not answer yet.
    pub start_seconds: u32,
    /// PostgreSQL: connections that the queues share with nobody.
    pub queue_connections: u32,
    /// PostgreSQL: connections for everybody else.
    pub connections: u32,
    /// PostgreSQL: how long a statement may run.
    pub statement_seconds: u32,
    /// PostgreSQL: what a standby is sure to have that takes over.
    pub replication: Replication,
    /// SQLite: rows in memory that start a flush; at twice as many, commits wait.
    pub flush_rows: usize,

    /// PostgreSQL: how long a call waits for a free or a new connection.
    #[serde(skip)]
    pub connect_seconds: u32,
}

impl Default for StorageSection {
    fn default() -> Self {
        let postgres = PgOptions::default();
        StorageSection {
            data_dir: PathBuf::from("data"),
            database_url: DatabaseUrl::default(),
            listen_url: DatabaseUrl::default(),
            start_seconds: 30,
            queue_connections: postgres.queue_connections,
            connections: postgres.connections,
            statement_seconds: postgres.statement_timeout.as_secs() as u32,
            replication: postgres.replication,
            flush_rows: SqliteOptions::default().flush_rows,
            connect_seconds: postgres.connect_timeout.as_secs() as u32,
        }
    }
}

impl StorageSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("storage", "start_seconds", self.start_seconds, 0..=3_600)?;
        within("storage", "queue_connections", self.queue_connections, 1..=1_000)?;
        within("storage", "connections", self.connections, 1..=1_000)?;
        within("storage", "statement_seconds", self.statement_seconds, 1..=3_600)?;
        within("storage", "flush_rows", self.flush_rows, 1..=1 << 34)?;
        if !self.listen_url.is_empty() {
            let refuse = |why: String| ConfigError::Value { section: "storage", key: "listen_url", why };
            let both = [&self.database_url, &self.listen_url];
            if both.iter().any(|url| url.kind() != DatabaseKind::Postgres) {
                let why =
                    "is only for PostgreSQL, and leads to the same database as database_url; leave it empty";
                return Err(refuse(why.to_owned()));
            }
            check_url(self.listen_url.with_password()).map_err(refuse)?;
        }
        match self.database_url.kind() {
            DatabaseKind::Sqlite => self.file().map(drop),
            DatabaseKind::Postgres => {
                let refuse =
                    |why: String| ConfigError::Value { section: "storage", key: "database_url", why };
                check_url(self.database_url.with_password()).map_err(refuse)
            }
        }
    }

    /// The way to PostgreSQL itself, past a pooler if there is one.
    pub fn direct_url(&self) -> &DatabaseUrl {
        if self.listen_url.is_empty() { &self.database_url } else { &self.listen_url }
    }

    /// The options of the PostgreSQL store.
    pub fn postgres(&self) -> PgOptions {
        PgOptions {
            queue_connections: self.queue_connections,
            connections: self.connections,
            connect_timeout: Duration::from_secs(self.connect_seconds.into()),
            statement_timeout: Duration::from_secs(self.statement_seconds.into()),
            replication: self.replication,
            ..PgOptions::default()
        }
    }

    /// The options of the SQLite store.
    pub fn sqlite(&self) -> SqliteOptions {
        SqliteOptions { flush_rows: self.flush_rows, ..SqliteOptions::default() }
    }

    /// Where what belongs to the installation lies: beside the database of SQLite, else in `data_dir`.
    pub fn place(&self) -> PathBuf {
        let file = self.database_url.file().ok().flatten();
        let beside = file.and_then(|file| Some(file.parent()?.to_owned()));
        beside.unwrap_or_else(|| self.data_dir.clone())
    }

    /// The database file of SQLite.
    ///
    /// # Errors
    /// When the URL is not understood, or names PostgreSQL.
    pub fn file(&self) -> Result<PathBuf, ConfigError> {
        let file = self.database_url.file().map_err(|why| ConfigError::Value {
            section: "storage",
            key: "database_url",
            why: why.to_owned(),
        })?;
        Ok(file.unwrap_or_else(|| self.data_dir.join("tidemark.db")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_lies_in_the_data_directory_unless_configured_otherwise() {
        let file =
            |url: &str| StorageSection { database_url: url.into(), ..StorageSection::default() }.file();
        assert_eq!(file("").expect("default"), PathBuf::from("data/tidemark.db"));
        assert_eq!(file("sqlite:/var/t.db").expect("a path"), PathBuf::from("/var/t.db"));
        assert_eq!(file("sqlite:///var/t.db").expect("a URL"), PathBuf::from("/var/t.db"));
        for bad in ["mysql://x", "sqlite:", "sqlite::memory:", "postgresql://x", "data/t.db"] {
            assert!(file(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_url_of_postgres_is_checked_before_anything_starts() {
        let check =
            |url: &str| StorageSection { database_url: url.into(), ..StorageSection::default() }.check();
        check("postgres://ann:secret@db/chat?sslmode=verify-full").expect("good");
        let said = check("postgres://ann:s3cret@db/chat?sslmod=require").expect_err("refused").to_string();
        assert!(said.starts_with("[storage] database_url: has a parameter \"sslmod\""), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}
