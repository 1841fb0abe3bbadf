//! What can be set about SQLite, with the values that were measured to be good.

use std::time::Duration;

/// Settings of the SQLite store.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Connections that read the main database, 1 or more. Each has a thread of its own.
    pub readers: u32,
    /// How long a read waits for a free connection, and a statement for a lock that another one holds.
    pub busy_timeout: Duration,
    /// Page cache of the connection that writes the main database, in KiB.
    pub writer_cache_kib: u32,
    /// Page cache of each connection that reads it, in KiB.
    pub reader_cache_kib: u32,
    /// After so many pages in its write-ahead log the main database is checkpointed.
    pub checkpoint_pages: u32,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions {
            readers: 4,
            busy_timeout: Duration::from_secs(5),
            writer_cache_kib: 64 * 1024,
            reader_cache_kib: 8 * 1024,
            checkpoint_pages: 16_000,
        }
    }
}
