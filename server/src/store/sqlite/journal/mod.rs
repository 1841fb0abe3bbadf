//! The journal: a database of its own to which batches are appended, one durable insert each.
//!
//! It lies beside the main database, so that appending never waits for a flush. Batches are numbered without gaps
//! from the first one ever; those up to the number that the main database calls flushed are dead and get trimmed.
//! The committer alone uses it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, Row as _, SqliteConnection};

use super::db::connect_options;
use super::{SqliteOptions, private};
use crate::store::StoreError;
use record::JournalRecord;

pub(super) mod record;

/// The batches, and up to which they were removed, which tells an empty journal of another moment. A trigger sees to it, so that it is
/// true whatever version removes them.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, batch BLOB NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS trimmed (one INTEGER PRIMARY KEY CHECK (one = 1), through INTEGER NOT NULL) STRICT;
    CREATE TRIGGER IF NOT EXISTS trim AFTER DELETE ON journal
        BEGIN UPDATE trimmed SET through = max(through, old.seq); END;";

/// The open journal.
pub(super) struct Journal {
    options: SqliteConnectOptions,
    /// Absent after a failure, until it is opened again.
    connection: Option<SqliteConnection>,
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
    pub(super) async fn open(
        path: &Path,
        options: &SqliteOptions,
        flushed: u64,
    ) -> Result<Journal, StoreError> {
        private::make_file(path).map_err(StoreError::unavailable)?;
        // One that vanishes while it is in use is not made again: what it held would be missing without a word.
        let options = connect_options(path, options)
            .create_if_missing(false)
            .page_size(options.journal_page_size)
            .pragma("cache_size", "-16384")
            .pragma("wal_autocheckpoint", options.journal_checkpoint_pages.to_string());
        let mut journal = Journal {
            options,
            connection: None,
            last: flushed,
            stored: VecDeque::new(),
            #[cfg(test)]
            loses_next_answer: false,
            #[cfg(test)]
            panics: None,
        };
        journal.reopen(flushed).await?;
        Ok(journal)
    }

    /// Opens it again, by a new connection, and looks what is there.
    pub(super) async fn reopen(&mut self, flushed: u64) -> Result<(), StoreError> {
        if let Some(broken) = self.connection.take() {
            // It is given up because it failed; that closing it fails too says nothing new.
            _ = broken.close().await;
        }
        let mut connection = SqliteConnection::connect_with(&self.options).await?;
        sqlx::raw_sql(SCHEMA).execute(&mut connection).await?;
        let rows = sqlx::query("SELECT seq, length(batch) FROM journal ORDER BY seq")
            .fetch_all(&mut connection)
            .await?;
        let mut stored = VecDeque::with_capacity(rows.len());
        for row in rows {
            stored.push_back((row.try_get::<i64, _>(0)?.cast_unsigned(), row.try_get::<i64, _>(1)? as usize));
        }
        let first = stored.front().map_or(flushed, |(seq, _)| seq - 1);
        sqlx::query("INSERT OR IGNORE INTO trimmed VALUES (1, ?)")
            .bind(first.cast_signed())
            .execute(&mut connection)
            .await?;
        let trimmed: i64 =
            sqlx::query_scalar("SELECT through FROM trimmed").fetch_one(&mut connection).await?;
        check_unbroken(&stored, trimmed.cast_unsigned(), flushed)?;
        self.last = stored.back().map_or(flushed, |(seq, _)| *seq);
        self.stored = stored;
        self.connection = Some(connection);
        Ok(())
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        self.connection.as_mut().ok_or_else(|| StoreError::unavailable("the journal is being reopened"))
    }

    /// The number of the last batch.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Appends a batch. After an error the journal must be reopened before anything else.
    pub(super) async fn append(&mut self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let seq = self.last + 1;
        let blob = record::encode(records);
        let size = blob.len();
        #[cfg(test)]
        assert!(self.panics.take_if(|after| !*after).is_none(), "as the test says");
        sqlx::query("INSERT INTO journal (seq, batch) VALUES (?, ?)")
            .bind(seq.cast_signed())
            .bind(blob)
            .execute(self.connection()?)
            .await?;
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
    pub(super) async fn read(&mut self, seq: u64) -> Result<Vec<JournalRecord>, StoreError> {
        let row = sqlx::query("SELECT batch FROM journal WHERE seq = ?")
            .bind(seq.cast_signed())
            .fetch_optional(self.connection()?)
            .await?;
        let row = row.ok_or_else(|| StoreError::corrupt(format!("batch {seq} is gone from the journal")))?;
        let blob: &[u8] = row.try_get(0)?;
        record::decode(blob)
            .map_err(|error| StoreError::corrupt(format!("batch {seq} of the journal: {error}")))
    }

    /// Whether batches up to `flushed` are still stored.
    pub(super) fn has_dead(&self, flushed: u64) -> bool {
        self.stored.front().is_some_and(|(seq, _)| *seq <= flushed)
    }

    /// Removes some of the batches up to `flushed`: few enough that a commit behind it does not wait long. After an
    /// error the journal must be reopened.
    pub(super) async fn trim(&mut self, flushed: u64) -> Result<(), StoreError> {
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
        sqlx::query("DELETE FROM journal WHERE seq <= ?")
            .bind(through.cast_signed())
            .execute(self.connection()?)
            .await?;
        self.stored.drain(..count);
        Ok(())
    }

    /// Writes everything anew into the database file and syncs it: what had been written before a failed sync, and
    /// is only believed to lie on the disk, lies there after it.
    pub(super) async fn make_sure(&mut self) -> Result<(), StoreError> {
        let row = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(self.connection()?).await?;
        match row.try_get::<i64, _>(0)? {
            0 => Ok(()),
            _ => Err(StoreError::unavailable("the journal could not be checkpointed")),
        }
    }

    /// Closes it, its write-ahead log moved into the file.
    pub(super) async fn close(&mut self) -> Result<(), StoreError> {
        self.make_sure().await?;
        if let Some(connection) = self.connection.take() {
            connection.close().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Journal {
    /// A disk with so much room, until the journal is reopened.
    pub(super) async fn limit_pages(&mut self, pages: u32) {
        let sql = format!("PRAGMA max_page_count = {pages}");
        let connection = self.connection().expect("open");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(connection).await.expect("limited");
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
