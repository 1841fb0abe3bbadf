//! The journal: to what is stored before it is answered, batches are appended, one sync each.
//!
//! Batches lie in the [`log`], two files beside the main database, so that appending never waits for a flush. A note in the main database
//! says which log it is. Batches are numbered without gaps from the first one ever; those up to the number that the main database calls
//! flushed are not needed any more.
//!
//! The committer uses it, on its own thread, and before it starts whoever opens the store. Each call works until it is done, so that a
//! batch is stored without a change of threads (docs/adr/0006, docs/adr/0007).

use std::path::Path;

use sqlx::SqliteExecutor;
use tracing::warn;

use super::blocking;
use super::db::Db;
use crate::store::StoreError;
use log::{Log, Paths};
use record::JournalRecord;
use sector::LogId;

mod bad;
pub(super) mod log;
mod note;
pub(super) mod record;
mod sector;
mod segment;

pub use bad::{BadLog, LogError};
pub use note::{check_log, forget_log};

/// The open journal.
pub struct Journal {
    /// Where the log lies.
    paths: Paths,
    noted: LogId,
    /// Absent after a failure, until it is opened again.
    log: Option<Log>,
    /// The number of the last batch.
    last: u64,
    /// Batches up to this one are flushed.
    flushed: u64,
    #[cfg(test)]
    loses_next_answer: bool,
    /// Before (`false`) or after the next append is stored.
    #[cfg(test)]
    panics: Option<bool>,
}

impl Journal {
    /// Where the log of the main database at `main` lies. (A name that ends in `-journal` would be SQLite's own, and one in `.log` would
    /// invite those who tidy up.)
    pub fn paths_beside(main: &Path) -> Paths {
        ["journal.0.dat", "journal.1.dat"].map(|ending| main.with_extension(ending))
    }

    /// Opens or makes the journal of `db`. `flushed`: the batch up to which the main database has everything. Nobody may be in a write
    /// transaction on `db`.
    pub(super) async fn open(db: &Db, flushed: u64) -> Result<Journal, StoreError> {
        let paths = Journal::paths_beside(db.path());
        let opening = rand::random();
        let (noted, log) = match note::read(db.readers()).await? {
            Some(noted) => {
                let now = LogId { opening, ..noted };
                let mut log = Log::open(&paths, flushed, noted, opening)?;
                note::put(db, now).await?;
                log.settle()?;
                (now, log)
            }
            None => {
                // Nothing but what was lost with the note, or was given up with it, says that it is not needed.
                if let Some(aside) = log::set_aside(&paths)? {
                    warn!(aside = %aside.display(), "an unknown log was found; it was moved aside, and is not read");
                }
                let made = LogId { id: rand::random(), opening };
                let log = Log::make(&paths, made, flushed)?;
                note::put(db, made).await?;
                (made, log)
            }
        };
        Ok(Journal {
            paths,
            noted,
            last: log.last(),
            log: Some(log),
            flushed,
            #[cfg(test)]
            loses_next_answer: false,
            #[cfg(test)]
            panics: None,
        })
    }

    /// Opens the log again and looks what is there. All of that is durable when this returns. Nothing grows: the disk may be full.
    pub(super) fn reopen(&mut self, flushed: u64) -> Result<(), StoreError> {
        self.log = None;
        let log = Log::open(&self.paths, flushed, self.noted, self.noted.opening)?;
        self.last = log.last();
        self.flushed = flushed;
        self.log = Some(log);
        Ok(())
    }

    /// The number of the last batch.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Appends a batch. After an error the journal must be reopened before anything else.
    pub(super) fn append(&mut self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let seq = self.last + 1;
        let blob = record::encode(records);
        #[cfg(test)]
        assert!(self.panics.take_if(|after| !*after).is_none(), "as the test says");
        let log = self.log.as_mut().ok_or_else(reopening)?;
        let appended = blocking::watched("append to the journal", || log.append(seq, &blob));
        if let Err(error) = appended {
            self.log = None;
            return Err(error.into());
        }
        #[cfg(test)]
        assert!(self.panics.take().is_none(), "as the test says");
        #[cfg(test)]
        if std::mem::take(&mut self.loses_next_answer) {
            return Err(StoreError::unavailable("the answer was lost"));
        }
        self.last = seq;
        Ok(())
    }

    /// Makes sure that a batch of so many bytes finds room. After an error nothing is lost, and it may be called again.
    pub(super) fn make_room(&mut self, bytes: usize) -> Result<(), StoreError> {
        let log = self.log.as_mut().ok_or_else(reopening)?;
        Ok(log.make_room(bytes)?)
    }

    /// The batch `seq`.
    pub(super) fn read(&self, seq: u64) -> Result<Vec<JournalRecord>, StoreError> {
        let log = self.log.as_ref().ok_or_else(reopening)?;
        let gone = || StoreError::corrupt(format!("batch {seq} is gone from the journal"));
        let blob = log.read(seq)?.ok_or_else(gone)?;
        decode(seq, &blob)
    }

    /// Batches up to `flushed` are not needed any more: the main database has them durably.
    pub(super) fn free(&mut self, flushed: u64) {
        if flushed > self.flushed {
            self.flushed = flushed;
            self.log.iter_mut().for_each(|log| log.free(flushed));
        }
    }
}

#[cfg(test)]
impl Journal {
    /// A disk with so much room for the log, until the journal is reopened.
    pub(super) fn limit_bytes(&mut self, bytes: &std::sync::Arc<std::sync::atomic::AtomicU64>) {
        self.log.as_mut().expect("open").most_bytes = Some(bytes.clone());
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

/// Which log is noted in the database that `executor` reads, if there is one yet.
pub(super) async fn noted(executor: impl SqliteExecutor<'_>) -> Result<Option<u64>, StoreError> {
    Ok(note::read(executor).await?.map(|noted| noted.id))
}

/// The batches behind `flushed` of the log `id` of the main database at `main`, beside the process that writes it. `None`: some are
/// missing, which the next look may find; a flush that ends meanwhile takes them away.
pub(super) fn batches_after(
    main: &Path,
    id: u64,
    flushed: u64,
) -> Result<Option<Vec<Vec<JournalRecord>>>, StoreError> {
    let Some(blobs) = blobs_after(main, id, flushed)? else { return Ok(None) };
    let batches = blobs.iter().zip(flushed + 1..).map(|(blob, seq)| decode(seq, blob));
    batches.collect::<Result<_, _>>().map(Some)
}

/// All records of the batches behind `flushed`.
pub(super) fn decoded(flushed: u64, blobs: &[Vec<u8>]) -> Result<Vec<JournalRecord>, StoreError> {
    let batches = blobs.iter().zip(flushed + 1..).map(|(blob, seq)| decode(seq, blob));
    Ok(batches.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The same, as they are stored.
fn blobs_after(main: &Path, id: u64, flushed: u64) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
    Ok(log::read_beside(&Journal::paths_beside(main), id, flushed)?)
}

/// The same, of the log that is noted as `note`.
pub(super) fn noted_blobs_after(
    main: &Path,
    note: &str,
    flushed: u64,
) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
    blobs_after(main, note::parsed(note)?.id, flushed)
}

/// Makes a log beside the main database at `main` that holds these batches behind `flushed`, as they are stored. Returns the note that the
/// main database has to get under [`meta::LOG`](super::meta::LOG).
pub(super) fn make_with(main: &Path, flushed: u64, blobs: &[Vec<u8>]) -> Result<String, LogError> {
    let made = LogId { id: rand::random(), opening: rand::random() };
    let mut log = Log::make(&Journal::paths_beside(main), made, flushed)?;
    for (blob, seq) in blobs.iter().zip(flushed + 1..) {
        log.append(seq, blob)?;
    }
    Ok(note::written(made))
}

/// Reads the log of the main database at `main` whole, also beside the process that writes it. `noted`: the note in the main database, and
/// up to which batch that is flushed, if they can be read.
///
/// # Errors
/// What is wrong, a line for each.
pub(super) fn verify(main: &Path, noted: Option<(&str, u64)>) -> Result<(), Vec<String>> {
    let noted = noted.map(|(text, flushed)| note::parsed(text).map(|log| (log, flushed))).transpose();
    let noted = noted.map_err(|why| vec![why.to_string()])?;
    log::verify(&Journal::paths_beside(main), noted).map_err(|wrong| {
        let line =
            |LogError { path, bad }| format!("{}: {bad}", path.file_name().unwrap_or_default().display());
        wrong.into_iter().map(line).collect()
    })
}

fn decode(seq: u64, blob: &[u8]) -> Result<Vec<JournalRecord>, StoreError> {
    record::decode(blob).map_err(|error| StoreError::corrupt(format!("batch {seq} of the journal: {error}")))
}

fn reopening() -> StoreError {
    StoreError::unavailable("the journal is being reopened")
}
