//! Numbers of SQLite that were measured to be good; options for those that tests change, and operators.

use std::time::Duration;

/// How long a read waits for a free connection, and a statement for a lock that another one holds.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// Page cache of each of the two connections that write the main database, in KiB. Where only messages are stored, or only tables, one
/// of them has little.
pub(super) const WRITER_CACHE_KIB: u32 = 64 << 10;

/// Page cache of each connection that reads it, in KiB.
pub(super) const READER_CACHE_KIB: u32 = 8 << 10;

/// A commit to the main database checkpoints it at so many pages in its write-ahead log. A net: flushes, which write most of them,
/// checkpoint beside the writer as they go, and nobody waits for that.
pub(super) const CHECKPOINT_PAGES: u32 = 40_000;

/// Options of the SQLite store.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Connections that read the main database, 1 or more. Each has a thread of its own.
    pub readers: u32,
    /// Reads that may wait for one of them; more are refused at once. The queues and the committer have connections of their own.
    pub waiting_reads: usize,
    /// A flush begins when so many rows are in memory. With as many again behind it, commits go on at its pace. The more,
    /// the fewer pages a row costs; a row takes some 300 bytes of memory at 200 bytes of text.
    pub flush_rows: usize,
    /// A flush begins when what is in memory weighs so many bytes. With as many again behind it, commits go on at its
    /// pace.
    pub flush_bytes: usize,
    /// A flush begins when the oldest row in memory has this age.
    pub flush_age: Duration,
    /// Rows that a flush writes in one transaction; other writers of the main database wait for no more.
    pub flush_chunk: usize,
    /// An inbox that gets fewer rows in a flush has them young; 0: none has.
    pub young_rows: usize,
    /// Parts of the young rows, of which one settles at the end of each flush; 1: all do. The more, the more rows of an inbox settle at once.
    pub young_parts: u32,
    /// Users whose latest id the committer remembers.
    pub known_latest_ids: usize,
    /// Counters of tables that the committer remembers.
    pub known_counters: usize,
    /// Groups that are kept in memory.
    pub known_groups: usize,
}

#[cfg(test)]
impl SqliteOptions {
    /// Options under which nothing is flushed unless a test does it, however slow the machine is.
    pub(super) fn unflushed() -> Self {
        let (never, most) = (Duration::from_secs(u32::MAX.into()), usize::MAX / 2);
        Self { flush_rows: most, flush_bytes: most, flush_age: never, ..Self::default() }
    }
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions {
            readers: 4,
            waiting_reads: 4_096,
            flush_rows: 200_000,
            flush_bytes: 64 << 20,
            flush_age: Duration::from_secs(15),
            flush_chunk: 4_000,
            young_rows: 8,
            young_parts: 16,
            known_latest_ids: 1_000_000,
            known_counters: 100_000,
            known_groups: 10_000,
        }
    }
}
