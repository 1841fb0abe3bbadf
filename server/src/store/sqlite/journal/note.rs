//! The note: the small database beside the log that says which log it is. It has the stamp of the installation, too.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::Journal;
use super::frame::{Header, LogId};
use super::log::{self, BadLog};

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

/// What is noted; `None`: there is no log yet.
pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Note>> {
    let table = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'log'";
    if connection.query_row(table, (), |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let noted = connection.query_row("SELECT id, opening, after FROM log", [], |row| {
        let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        Ok(Note { log: LogId { id: number(0)?, opening: number(1)? }, after: number(2)? })
    });
    noted.optional()
}

/// What is noted in the database at `path`; nothing is changed.
pub(super) fn read_beside(path: &Path) -> rusqlite::Result<Option<Note>> {
    read(&Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
}

/// Notes the log.
pub(super) fn put(connection: &mut Connection, note: Note) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    let Note { log: LogId { id, opening }, after } = note;
    let numbers = params![id.cast_signed(), opening.cast_signed(), after.cast_signed()];
    transaction.execute("INSERT OR REPLACE INTO log VALUES (1, ?, ?, ?)", numbers)?;
    transaction.commit()
}

/// Notes that the log was opened.
pub(super) fn put_opening(connection: &Connection, opening: u64) -> rusqlite::Result<()> {
    connection.execute("UPDATE log SET opening = ?", [opening.cast_signed()]).map(|_| ())
}

/// Looks whether the log of the main database at `main` is the one that is noted.
///
/// # Errors
/// What is wrong with it. Nothing is wrong if there is no note.
pub fn check_log(main: &Path) -> Result<(), BadLog> {
    let path = Journal::path_beside(main);
    let noted = read_beside(&path).map_err(|error| BadLog::Io(error.to_string()))?;
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
