//! The journal: a database of its own to which batches are appended, one durable insert each.
//!
//! It lies beside the main database, so that appending never waits for a flush. Batches are numbered without gaps
//! from the first one ever; those up to the number that the main database calls flushed are dead and get trimmed.
//! The committer uses it, on its own thread, and before it starts whoever opens the store. Each call works until it is done, so that a
//! batch is stored without a change of threads (docs/adr/0006).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::blocking::{self, BlockingOptions};
use super::{SqliteOptions, private};
use crate::store::StoreError;
use record::JournalRecord;

pub(super) mod record;

/// Its page cache: it is written at its end, and read when it is replayed.
const CACHE_KIB: u32 = 16 << 10;

/// The batches, and up to which they were removed, which tells an empty journal of another moment. A trigger sees to it, so that it is
/// true whatever version removes them.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, batch BLOB NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS trimmed (one INTEGER PRIMARY KEY CHECK (one = 1), through INTEGER NOT NULL) STRICT;
    CREATE TRIGGER IF NOT EXISTS trim AFTER DELETE ON journal
        BEGIN UPDATE trimmed SET through = max(through, old.seq); END;";

/// The open journal.
pub(super) struct Journal {
    path: PathBuf,
    options: BlockingOptions,
    /// Absent after a failure, until it is opened again.
    connection: Option<Connection>,
    /// The number of the last batch.
    last: u64,
    /// Number and size of each batch that is still stored.
    stored: VecDeque<(u64, usize)>,
    #[cfg(test)]
    loses_next_answer: bool,
    /// Before (`false`) or after the next append is stored.
    #[cfg(test)]
    panics: Option<bool>,
}

impl Journal {
    /// Where the journal of the main database at `main` lies. (A name that ends in `-journal` would be SQLite's own.)
    pub(super) fn path_beside(main: &Path) -> PathBuf {
        main.with_extension("journal.db")
    }

    /// Opens or makes the journal at `path`. `flushed`: the batch up to which the main database has everything.
    pub(super) fn open(path: &Path, options: &SqliteOptions, flushed: u64) -> Result<Journal, StoreError> {
        private::make_file(path).map_err(StoreError::unavailable)?;
        let mut journal = Journal {
            path: path.to_owned(),
            options: BlockingOptions {
                page_size: Some(options.journal_page_size),
                busy_timeout: options.busy_timeout,
                cache_kib: CACHE_KIB,
                checkpoint_pages: options.journal_checkpoint_pages,
            },
            connection: None,
            last: flushed,
            stored: VecDeque::new(),
            #[cfg(test)]
            loses_next_answer: false,
            #[cfg(test)]
            panics: None,
        };
        journal.reopen(flushed)?;
        Ok(journal)
    }

    /// Opens it again, by a new connection, and looks what is there.
    pub(super) fn reopen(&mut self, flushed: u64) -> Result<(), StoreError> {
        // It is given up because it failed; that closing it fails too says nothing new.
        drop(self.connection.take());
        let connection = blocking::open(&self.path, &self.options)?;
        connection.execute_batch(SCHEMA)?;
        let mut stored = VecDeque::new();
        {
            let mut statement = connection.prepare("SELECT seq, length(batch) FROM journal ORDER BY seq")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                stored.push_back((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, i64>(1)? as usize));
            }
        }
        let first = stored.front().map_or(flushed, |(seq, _)| seq - 1);
        connection.execute("INSERT OR IGNORE INTO trimmed VALUES (1, ?)", [first.cast_signed()])?;
        let trimmed: i64 = connection.query_row("SELECT through FROM trimmed", [], |row| row.get(0))?;
        check_unbroken(&stored, trimmed.cast_unsigned(), flushed)?;
        self.last = stored.back().map_or(flushed, |(seq, _)| *seq);
        self.stored = stored;
        self.connection = Some(connection);
        Ok(())
    }

    fn connection(&self) -> Result<&Connection, StoreError> {
        self.connection.as_ref().ok_or_else(|| StoreError::unavailable("the journal is being reopened"))
    }

    /// The number of the last batch.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Appends a batch. After an error the journal must be reopened before anything else.
    pub(super) fn append(&mut self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let seq = self.last + 1;
        let blob = record::encode(records);
        let size = blob.len();
        #[cfg(test)]
        assert!(self.panics.take_if(|after| !*after).is_none(), "as the test says");
        let connection = self.connection()?;
        blocking::watched("append to the journal", || {
            let mut insert = connection.prepare_cached("INSERT INTO journal (seq, batch) VALUES (?, ?)")?;
            insert.execute(params![seq.cast_signed(), blob])
        })?;
        #[cfg(test)]
        assert!(self.panics.take().is_none(), "as the test says");
        #[cfg(test)]
        if std::mem::take(&mut self.loses_next_answer) {
            return Err(StoreError::unavailable("the answer was lost"));
        }
        self.last = seq;
        self.stored.push_back((seq, size));
        Ok(())
    }

    /// The batch `seq`.
    pub(super) fn read(&self, seq: u64) -> Result<Vec<JournalRecord>, StoreError> {
        let mut statement = self.connection()?.prepare_cached("SELECT batch FROM journal WHERE seq = ?")?;
        let blob: Option<Vec<u8>> = statement.query_row([seq.cast_signed()], |row| row.get(0)).optional()?;
        let blob =
            blob.ok_or_else(|| StoreError::corrupt(format!("batch {seq} is gone from the journal")))?;
        record::decode(&blob)
            .map_err(|error| StoreError::corrupt(format!("batch {seq} of the journal: {error}")))
    }

    /// Whether batches up to `flushed` are still stored.
    pub(super) fn has_dead(&self, flushed: u64) -> bool {
        self.stored.front().is_some_and(|(seq, _)| *seq <= flushed)
    }

    /// Removes some of the batches up to `flushed`: few enough that a commit behind it does not wait long. After an
    /// error the journal must be reopened.
    pub(super) fn trim(&mut self, flushed: u64) -> Result<(), StoreError> {
        const MOST_BYTES: usize = 4 << 20;
        const MOST_BATCHES: usize = 2_000;
        let mut bytes = 0;
        let mut count = 0_usize;
        for (_, size) in self.stored.iter().take_while(|(seq, _)| *seq <= flushed).take(MOST_BATCHES) {
            bytes += size;
            count += 1;
            if bytes > MOST_BYTES {
                break;
            }
        }
        let Some(&(through, _)) = count.checked_sub(1).and_then(|at| self.stored.get(at)) else {
            return Ok(());
        };
        let connection = self.connection()?;
        blocking::watched("trim the journal", || {
            connection.prepare_cached("DELETE FROM journal WHERE seq <= ?")?.execute([through.cast_signed()])
        })?;
        self.stored.drain(..count);
        Ok(())
    }

    /// Writes everything anew into the database file and syncs it: what had been written before a failed sync, and
    /// is only believed to lie on the disk, lies there after it.
    pub(super) fn make_sure(&self) -> Result<(), StoreError> {
        let is_busy: i64 =
            self.connection()?.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        match is_busy {
            0 => Ok(()),
            _ => Err(StoreError::unavailable("the journal could not be checkpointed")),
        }
    }

    /// Closes it, its write-ahead log moved into the file.
    pub(super) fn close(&mut self) -> Result<(), StoreError> {
        self.make_sure()?;
        match self.connection.take().map(Connection::close) {
            Some(Err((_, error))) => Err(error.into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
impl Journal {
    /// A disk with so much room, until the journal is reopened.
    pub(super) fn limit_pages(&mut self, pages: u32) {
        let connection = self.connection().expect("open");
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).expect("limited");
    }

    /// The next append panics, before it is stored or after it.
    pub(super) fn panic_next(&mut self, after: bool) {
        self.panics = Some(after);
    }

    /// The next append is stored and reported as failed.
    pub(super) fn lose_next_answer(&mut self) {
        self.loses_next_answer = true;
    }
}

/// Batches are numbered without gaps, and the first one that is not flushed follows the last one that is.
/// `trimmed`: the last batch that was removed.
fn check_unbroken(stored: &VecDeque<(u64, usize)>, trimmed: u64, flushed: u64) -> Result<(), StoreError> {
    let gap = |seq: u64| {
        StoreError::corrupt(format!(
            "batch {seq} is missing in the journal; the two database files do not belong together: restore files of one moment, or \
             move the journal away and run `tidemark restored` to go on without what only it holds"
        ))
    };
    match stored.front() {
        Some((first, _)) if *first > flushed + 1 => return Err(gap(flushed + 1)),
        _ => {}
    }
    let broken = stored.iter().zip(stored.iter().skip(1)).find(|((seq, _), (next, _))| seq + 1 != *next);
    if let Some(((seq, _), _)) = broken {
        return Err(gap(seq + 1));
    }
    match stored.back() {
        // Trimming goes up to what is flushed, so an older journal would be found cut off below it.
        Some((last, _)) if *last < flushed => Err(gap(last + 1)),
        None if trimmed != flushed => Err(gap(trimmed.min(flushed) + 1)),
        _ => Ok(()),
    }
}
