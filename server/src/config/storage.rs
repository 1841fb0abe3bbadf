//! `[storage]`: where the data lies, and what SQLite and PostgreSQL may use. The defaults are those of the stores themselves.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ConfigError, DatabaseKind, DatabaseUrl, within};
use crate::store::postgres::{PgOptions, Replication, check_url};
use crate::store::sqlite::SqliteOptions;

/// Where the data lies.
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
    /// PostgreSQL: how long a statement waits for a lock that another server holds, in milliseconds.
    pub lock_ms: u32,
    /// PostgreSQL: how long a statement may run.
    pub statement_seconds: u32,
    /// PostgreSQL: how long a transaction may wait for its next statement.
    pub idle_transaction_seconds: u32,
    /// PostgreSQL: what a standby is sure to have that takes over.
    pub replication: Replication,
    /// SQLite: connections that read at the same time.
    pub readers: u32,
    /// Reads that may wait for one of them; more are refused.
    pub waiting_reads: usize,
    /// How long a read waits for a free connection, and a statement for a lock.
    pub busy_seconds: u32,
    /// Page cache of the connection that writes, in KiB.
    pub writer_cache_kib: u32,
    /// Page cache of each connection that reads, in KiB.
    pub reader_cache_kib: u32,
    /// Pages in its log after which the main database is checkpointed.
    pub checkpoint_pages: u32,
    /// Commits that wait in line; more callers wait until there is room.
    pub waiting_commits: usize,
    /// Rows after which a batch takes no further commit.
    pub batch_rows: usize,
    /// Bytes after which a batch takes no further commit.
    pub batch_bytes: usize,
    /// Rows in memory that start a flush; at twice as many, commits wait.
    pub flush_rows: usize,
    /// Bytes in memory that start a flush; at twice as many, commits wait.
    pub flush_bytes: usize,
    /// Age of a row in memory that starts a flush.
    pub flush_seconds: u32,
    /// Rows that a flush writes in one transaction.
    pub flush_chunk: usize,
    /// Users whose latest id is kept in memory.
    pub known_latest_ids: usize,
    /// SQLite: counters of tables that the committer remembers.
    pub known_counters: usize,
    /// Groups that are kept in memory.
    pub known_groups: usize,
    /// Names of people that are kept in memory.
    pub cached_names: usize,
}

impl Default for StorageSection {
    fn default() -> Self {
        let (sqlite, postgres) = (SqliteOptions::default(), PgOptions::default());
        StorageSection {
            data_dir: PathBuf::from("data"),
            database_url: DatabaseUrl::default(),
            listen_url: DatabaseUrl::default(),
            start_seconds: 30,
            queue_connections: postgres.queue_connections,
            connections: postgres.connections,
            lock_ms: postgres.lock_timeout.as_millis() as u32,
            statement_seconds: postgres.statement_timeout.as_secs() as u32,
            idle_transaction_seconds: postgres.idle_in_transaction_timeout.as_secs() as u32,
            replication: postgres.replication,
            readers: sqlite.readers,
            waiting_reads: sqlite.waiting_reads,
            busy_seconds: sqlite.busy_timeout.as_secs() as u32,
            writer_cache_kib: sqlite.writer_cache_kib,
            reader_cache_kib: sqlite.reader_cache_kib,
            checkpoint_pages: sqlite.checkpoint_pages,
            waiting_commits: sqlite.waiting_commits,
            batch_rows: sqlite.batch_rows,
            batch_bytes: sqlite.batch_bytes,
            flush_rows: sqlite.flush_rows,
            flush_bytes: sqlite.flush_bytes,
            flush_seconds: sqlite.flush_age.as_secs() as u32,
            flush_chunk: sqlite.flush_chunk,
            known_latest_ids: sqlite.known_latest_ids,
            known_counters: sqlite.known_counters,
            known_groups: sqlite.known_groups,
            cached_names: 100_000,
        }
    }
}

impl StorageSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let check = |key, value: u32, range| within("storage", key, value, range);
        check("start_seconds", self.start_seconds, 0..=3_600)?;
        check("queue_connections", self.queue_connections, 1..=1_000)?;
        check("connections", self.connections, 1..=1_000)?;
        check("lock_ms", self.lock_ms, 10..=60_000)?;
        check("statement_seconds", self.statement_seconds, 1..=3_600)?;
        check("idle_transaction_seconds", self.idle_transaction_seconds, 1..=3_600)?;
        check("readers", self.readers, 1..=64)?;
        check("busy_seconds", self.busy_seconds, 1..=600)?;
        check("writer_cache_kib", self.writer_cache_kib, 64..=1 << 26)?;
        check("reader_cache_kib", self.reader_cache_kib, 64..=1 << 26)?;
        check("checkpoint_pages", self.checkpoint_pages, 1..=1 << 24)?;
        check("flush_seconds", self.flush_seconds, 1..=86_400)?;
        let check = |key, value: usize| within("storage", key, value, 1..=1 << 34);
        within("storage", "waiting_reads", self.waiting_reads, 1..=1_000_000)?;
        check("waiting_commits", self.waiting_commits)?;
        check("batch_rows", self.batch_rows)?;
        check("batch_bytes", self.batch_bytes)?;
        check("flush_rows", self.flush_rows)?;
        check("flush_bytes", self.flush_bytes)?;
        check("flush_chunk", self.flush_chunk)?;
        check("known_latest_ids", self.known_latest_ids)?;
        check("known_counters", self.known_counters)?;
        check("known_groups", self.known_groups)?;
        check("cached_names", self.cached_names)?;
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
            waiting_reads: self.waiting_reads,
            connect_timeout: Duration::from_secs(self.busy_seconds.into()),
            lock_timeout: Duration::from_millis(self.lock_ms.into()),
            statement_timeout: Duration::from_secs(self.statement_seconds.into()),
            idle_in_transaction_timeout: Duration::from_secs(self.idle_transaction_seconds.into()),
            replication: self.replication,
            known_groups: self.known_groups,
        }
    }

    /// The options of the SQLite store.
    pub fn sqlite(&self) -> SqliteOptions {
        SqliteOptions {
            readers: self.readers,
            waiting_reads: self.waiting_reads,
            busy_timeout: Duration::from_secs(self.busy_seconds.into()),
            writer_cache_kib: self.writer_cache_kib,
            reader_cache_kib: self.reader_cache_kib,
            checkpoint_pages: self.checkpoint_pages,
            waiting_commits: self.waiting_commits,
            batch_rows: self.batch_rows,
            batch_bytes: self.batch_bytes,
            flush_rows: self.flush_rows,
            flush_bytes: self.flush_bytes,
            flush_age: Duration::from_secs(self.flush_seconds.into()),
            flush_chunk: self.flush_chunk,
            known_latest_ids: self.known_latest_ids,
            known_counters: self.known_counters,
            known_groups: self.known_groups,
        }
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
