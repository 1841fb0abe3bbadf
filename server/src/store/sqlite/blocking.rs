//! Connections over rusqlite that store something: each call works until it is done, on the thread of its caller.
//!
//! For what is stored often or in many rows: sqlx copies each value and hands each statement between threads (docs/adr/0006).

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use seqsvr_core::page_sums;
use tracing::warn;

use super::options::{BUSY, CHECKPOINT_PAGES, WRITER_CACHE_KIB};
use crate::store::StoreError;

/// Bytes that a write-ahead log keeps when it begins anew: what a long reader made it grow to is given back.
pub(super) const MOST_LOG: u32 = 64 << 20;

/// A call that takes so long is written to the log, so that an operator sees a slow disk.
const SLOW: Duration = Duration::from_secs(1);

/// A connection to the database at `path`, whose commits are durable. The file must be there: one that vanished while it was in use is
/// not made again, since what it held would be missing without a word.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    page_sums::begin();
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update_and_check(None, "journal_size_limit", MOST_LOG, |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", -i64::from(WRITER_CACHE_KIB))?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    Ok(connection)
}

/// Runs `work`, and writes a line to the log if it took long. `what`: a verb and its object.
pub(super) fn watched<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = work();
    let took = began.elapsed();
    if took >= SLOW {
        warn!(?took, "the disk was slow to {what}");
    }
    done
}
