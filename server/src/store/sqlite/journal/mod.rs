//! The journal: to what is stored before it is answered, batches are appended, one sync each.
//!
//! Batches lie in the [`log`], a file beside the main database, so that appending never waits for a flush. A small database beside it, the
//! note, says which log it is. Batches are numbered without gaps from the first one ever; those up to the number that the main database
//! calls flushed are not needed any more.
//!
//! The committer uses it, on its own thread, and before it starts whoever opens the store. Each call works until it is done, so that a
//! batch is stored without a change of threads (docs/adr/0006, docs/adr/0007).

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tracing::warn;

use super::blocking::{self, BlockingOptions};
use super::{SqliteOptions, private};
use crate::store::StoreError;
use frame::{Header, LogId};
use log::Log;
use note::Note;
use record::JournalRecord;

mod frame;
pub(super) mod log;
mod note;
pub(super) mod record;

pub use log::BadLog;
pub use note::{check_log, forget_log};

/// The page cache of the note, which has a few rows.
const CACHE_KIB: u32 = 256;

/// Pages in its write-ahead log after which the note is checkpointed.
const CHECKPOINT_PAGES: u32 = 1_000;

/// The open journal.
pub struct Journal {
    /// Where the log lies.
    path: PathBuf,
    noted: Note,
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
    /// Where the note of the main database at `main` lies. (A name that ends in `-journal` would be SQLite's own.)
    pub fn path_beside(main: &Path) -> PathBuf {
        main.with_extension("journal.db")
    }

    /// Where the log of the note at `path` lies. (A name that ends in `.log` would invite those who tidy up.)
    pub fn log_beside(path: &Path) -> PathBuf {
        path.with_extension("dat")
    }

    /// Opens or makes the journal at `path`. `flushed`: the batch up to which the main database has everything.
    pub(super) fn open(path: &Path, options: &SqliteOptions, flushed: u64) -> Result<Journal, StoreError> {
        private::make_file(path).map_err(StoreError::unavailable)?;
        let options = BlockingOptions {
            busy_timeout: options.busy_timeout,
            cache_kib: CACHE_KIB,
            checkpoint_pages: CHECKPOINT_PAGES,
        };
        let mut connection = blocking::open(path, &options)?;
        let path = Journal::log_beside(path);
        let opening = rand::random();
        let (noted, log) = match note::read(&connection)? {
            Some(noted) => {
                let now = Note { log: LogId { opening, ..noted.log }, ..noted };
                let mut log = open_log(&path, noted, opening, flushed)?;
                note::put_opening(&connection, opening)?;
                // From now on no note of an opening before fits.
                log.write_header(now.header())
                    .and_then(|()| log.sync())
                    .map_err(|error| in_log(&path, error))?;
                (now, log)
            }
            None => make_log(&path, &mut connection, LogId { id: rand::random(), opening }, flushed)?,
        };
        let mut journal = Journal {
            path,
            noted,
            log: None,
            last: 0,
            flushed,
            #[cfg(test)]
            loses_next_answer: false,
            #[cfg(test)]
            panics: None,
        };
        journal.go_on(log, flushed);
        Ok(journal)
    }

    /// Opens the log again and looks what is there. All of that is durable when this returns. Nothing grows: the disk may be full.
    pub(super) fn reopen(&mut self, flushed: u64) -> Result<(), StoreError> {
        self.log = None;
        let log = open_log(&self.path, self.noted, self.noted.log.opening, flushed)?;
        self.go_on(log, flushed);
        Ok(())
    }

    fn go_on(&mut self, log: Log, flushed: u64) {
        self.last = log.frames().last().map_or(self.noted.after, |frame| frame.seq);
        self.flushed = flushed;
        self.log = Some(log);
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
            return Err(in_log(&self.path, error));
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

    /// Makes sure that a batch of so many bytes finds room. After an error all is as it was.
    pub(super) fn make_room(&mut self, bytes: usize) -> Result<(), StoreError> {
        let log = self.log.as_mut().ok_or_else(reopening)?;
        log.make_room(bytes).map_err(|error| in_log(&self.path, error))
    }

    /// The batch `seq`.
    pub(super) fn read(&self, seq: u64) -> Result<Vec<JournalRecord>, StoreError> {
        let log = self.log.as_ref().ok_or_else(reopening)?;
        let blob = log.read(seq).map_err(|error| in_log(&self.path, error))?;
        let blob =
            blob.ok_or_else(|| StoreError::corrupt(format!("batch {seq} is gone from the journal")))?;
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

/// The batches behind `flushed` of the journal at `path`, beside the process that writes it. `None`: some are missing, which the next
/// look may find; a flush that ends meanwhile takes them away.
pub(super) fn batches_after(
    path: &Path,
    flushed: u64,
) -> Result<Option<Vec<Vec<JournalRecord>>>, StoreError> {
    let Some(noted) = note::read_beside(path)? else { return Ok(Some(Vec::new())) };
    let at = Journal::log_beside(path);
    let (header, bytes) = log::read(&at).map_err(|error| in_log(&at, error))?;
    if header.log.id != noted.log.id {
        return Err(in_log(&at, BadLog::Other));
    }
    // What was written may not be synced yet, and a power cut would take it away again.
    File::open(&at).and_then(|file| file.sync_data()).map_err(|error| in_log(&at, error))?;
    let frames = frame::find(&bytes, header.log.id).whole;
    let mut batches = Vec::new();
    for (frame, due) in frames.iter().filter(|frame| frame.seq > flushed).zip(flushed + 1..) {
        if frame.seq != due {
            return Ok(None);
        }
        batches.push(decode(frame.seq, frame.blob(&bytes))?);
    }
    Ok(Some(batches))
}

fn decode(seq: u64, blob: &[u8]) -> Result<Vec<JournalRecord>, StoreError> {
    record::decode(blob).map_err(|error| StoreError::corrupt(format!("batch {seq} of the journal: {error}")))
}

/// Opens the log that was `noted`, of which batches behind `flushed` are needed, and makes sure of it (I3): whether a sync had failed
/// before cannot be known. `opening`: what its header says from now on, beside what is noted.
fn open_log(path: &Path, noted: Note, opening: u64, flushed: u64) -> Result<Log, StoreError> {
    let (mut log, bytes) =
        Log::open(path, noted.after, |header| noted.fits(header)).map_err(|error| in_log(path, error))?;
    log.free(flushed);
    check_unbroken(log.frames().map(|frame| frame.seq), noted.after, flushed)?;
    let header = Header { log: LogId { opening, ..noted.log }, before: noted.log.opening };
    log.make_sure(&bytes, header).map_err(|error| in_log(path, error))?;
    Ok(log)
}

/// Makes a log that begins behind what is flushed.
fn make_log(
    path: &Path,
    connection: &mut Connection,
    log: LogId,
    flushed: u64,
) -> Result<(Note, Log), StoreError> {
    // Nothing but what was lost with the note, or was given up with it, says that it is not needed.
    if let Some(aside) = Log::set_aside(path).map_err(|error| in_log(path, error))? {
        warn!(aside = %aside.display(), "there was a log that is not noted; it is kept aside, and nobody reads it");
    }
    let made = Log::make(path, log).map_err(|error| in_log(path, error))?;
    let noted = Note { log, after: flushed };
    note::put(connection, noted)?;
    Ok((noted, made))
}

/// Names the file and not where it lies: callers over the network are told.
fn in_log(path: &Path, error: impl Into<BadLog>) -> StoreError {
    let (name, error) = (path.file_name().unwrap_or(path.as_os_str()).display(), error.into());
    match error {
        BadLog::Io(_) | BadLog::Busy | BadLog::Removed => StoreError::unavailable(format!("{name}: {error}")),
        BadLog::Newer => StoreError::corrupt(format!("{name}: {error}; run that version")),
        BadLog::Missing | BadLog::Empty | BadLog::Damaged(_) | BadLog::Other => StoreError::corrupt(format!(
            "{name}: {error}; restore the right one, or move it away and run `tidemark restored` to go on without what only it holds"
        )),
    }
}

fn reopening() -> StoreError {
    StoreError::unavailable("the journal is being reopened")
}

/// Batches are numbered without gaps, and the first one that is not flushed follows the last one that is. `stored`: those that are there,
/// in order. `after`: if there are none, the one that the first would follow.
fn check_unbroken(stored: impl Iterator<Item = u64>, after: u64, flushed: u64) -> Result<(), StoreError> {
    let gap = |seq: u64| {
        Err(StoreError::corrupt(format!(
            "batch {seq} is missing in the journal; the files do not belong together: restore files of one moment, or move it away and run \
             `tidemark restored` to go on without what only it holds"
        )))
    };
    let mut last = None;
    for seq in stored {
        match last {
            None if seq > flushed + 1 => return gap(flushed + 1),
            Some(last) if seq != last + 1 => return gap(last + 1),
            _ => last = Some(seq),
        }
    }
    match last {
        // It comes up to what is flushed at least, so an older journal is found cut off below it.
        Some(last) if last < flushed => gap(last + 1),
        None if after != flushed => gap(after.min(flushed) + 1),
        _ => Ok(()),
    }
}
