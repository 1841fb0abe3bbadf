//! The note: the small database beside the log that says which log it is. It has the stamp of the installation, too.
//!
//! Earlier versions kept the batches themselves in it; they go into the log when it is made.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use tracing::warn;

use super::Journal;
use super::frame::{Header, LogId};
use super::log::{self, BadLog};
use crate::store::StoreError;

const SCHEMA: &str =
    "CREATE TABLE IF NOT EXISTS log (one INTEGER PRIMARY KEY CHECK (one = 1), id INTEGER NOT NULL,
    opening INTEGER NOT NULL, after INTEGER NOT NULL) STRICT";

/// Which log belongs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) log: LogId,
    /// The batch behind which it begins.
    pub(super) after: u64,
}

impl Note {
    /// The header of its log, between two openings.
    pub(super) fn header(&self) -> Header {
        Header { log: self.log, before: self.log.opening }
    }

    /// Whether a log is this one, and of the same moment. Who opens it writes its header first and then notes it.
    pub(super) fn fits(&self, header: &Header) -> bool {
        header.log.id == self.log.id && [header.log.opening, header.before].contains(&self.log.opening)
    }
}

/// A batch that an earlier version kept in the note: its number and its blob.
pub(super) type EarlierBatch = (u64, Vec<u8>);

/// What is noted; `None`: there is no log yet.
pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Note>> {
    if !has_table(connection, "log")? {
        return Ok(None);
    }
    let noted = connection.query_row("SELECT id, opening, after FROM log", [], |row| {
        let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        Ok(Note { log: LogId { id: number(0)?, opening: number(1)? }, after: number(2)? })
    });
    noted.optional()
}

/// The same of the note at `path`, or the batches that an earlier version keeps there; nothing is changed.
pub(super) fn read_beside(path: &Path) -> Result<(Option<Note>, Vec<EarlierBatch>), StoreError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // One moment: a start may just be making the log.
    let transaction = connection.unchecked_transaction()?;
    match read(&transaction)? {
        Some(noted) => Ok((Some(noted), Vec::new())),
        None => Ok((None, earlier_batches(&transaction)?.0)),
    }
}

/// Notes the log, and removes what it holds now.
pub(super) fn put(connection: &mut Connection, note: Note) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    let Note { log: LogId { id, opening }, after } = note;
    let numbers = params![id.cast_signed(), opening.cast_signed(), after.cast_signed()];
    transaction.execute("INSERT OR REPLACE INTO log VALUES (1, ?, ?, ?)", numbers)?;
    let had_batches = has_table(&transaction, "journal")?;
    transaction.execute_batch("DROP TABLE IF EXISTS journal; DROP TABLE IF EXISTS trimmed")?;
    transaction.commit()?;
    if had_batches && let Err(error) = connection.execute_batch("VACUUM") {
        warn!(%error, "the room of batches of an earlier version is not given back");
    }
    Ok(())
}

/// Notes that the log was opened.
pub(super) fn put_opening(connection: &Connection, opening: u64) -> rusqlite::Result<()> {
    connection.execute("UPDATE log SET opening = ?", [opening.cast_signed()]).map(|_| ())
}

/// The batches that an earlier version kept here, in order, and up to which it had removed them.
pub(super) fn earlier_batches(connection: &Connection) -> rusqlite::Result<(Vec<EarlierBatch>, Option<u64>)> {
    if !has_table(connection, "journal")? {
        return Ok((Vec::new(), None));
    }
    let mut statement = connection.prepare("SELECT seq, batch FROM journal ORDER BY seq")?;
    let batches = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?)))?;
    let batches = batches.collect::<rusqlite::Result<Vec<_>>>()?;
    let trimmed = match has_table(connection, "trimmed")? {
        true => {
            connection.query_row("SELECT through FROM trimmed", [], |row| row.get::<_, i64>(0)).optional()?
        }
        false => None,
    };
    Ok((batches, trimmed.map(i64::cast_unsigned)))
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let of_name = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?";
    connection.query_row(of_name, [name], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

/// Looks whether the log of the main database at `main` is the one that is noted.
///
/// # Errors
/// What is wrong with it. Nothing is wrong if there is no note.
pub fn check_log(main: &Path) -> Result<(), BadLog> {
    let path = Journal::path_beside(main);
    let noted = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .and_then(|connection| read(&connection))
        .map_err(|error| BadLog::Io(error.to_string()))?;
    match noted {
        Some(noted) if !noted.fits(&log::read_header(&Journal::log_beside(&path))?) => Err(BadLog::Other),
        _ => Ok(()),
    }
}

/// Goes on without the log of the main database at `main`, which is lost: another one is made.
///
/// # Errors
/// What SQLite says.
pub fn forget_log(main: &Path) -> Result<(), String> {
    let connection =
        Connection::open_with_flags(Journal::path_beside(main), OpenFlags::SQLITE_OPEN_READ_WRITE);
    let forgotten = connection.and_then(|connection| connection.execute_batch("DROP TABLE IF EXISTS log"));
    forgotten.map_err(|error| error.to_string())
}
