//! Reads files whole and says what in them is not as it was written. Blocking; others may have the files open.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use seqsvr_core::page_sums;

use super::stamp::{self, FileKind};
use super::{identity, journal, meta};

/// The log is read so often before it is called damaged, beside a process that may be writing it, and between two times there is a pause.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// The damaged places of the database at `path`, each with the table or index of which it is a page, if that can still be told. `each` is
/// called with how many bytes were read.
///
/// # Errors
/// When it cannot be read.
pub fn verify_database(path: &Path, each: impl FnMut(u64)) -> io::Result<Vec<String>> {
    let name = path.file_name().unwrap_or_default().display();
    let mut found = Vec::new();
    match stamp::look(path) {
        Some(FileKind::Damaged(why)) => found.push(format!("{name}: {why}")),
        Some(FileKind::Empty) => found.push(format!("{name}: it is empty")),
        _ => {}
    }
    match page_sums::verify(path, each) {
        Ok(damaged) => found.extend(damaged.into_iter().map(|damaged| match table_of(path, damaged.page) {
            Some(table) => format!("{damaged}: it is of `{table}`"),
            None => damaged.to_string(),
        })),
        Err(why) if why.kind() == ErrorKind::NotFound => found.push(format!("{name}: it is missing")),
        Err(why) if [ErrorKind::InvalidData, ErrorKind::UnexpectedEof].contains(&why.kind()) => {
            found.push(format!("{name}: {why}"));
        }
        Err(why) => return Err(why),
    }
    Ok(found)
}

/// Damage may be in the way, and then nobody knows.
fn table_of(path: &Path, page: u32) -> Option<String> {
    let connection = open(path).ok()?;
    let named = "SELECT name FROM dbstat WHERE pageno = ?";
    connection.query_row(named, [page], |row| row.get(0)).optional().ok()?
}

/// The faults of the log beside the database at `main`: damaged or missing files, and files that do not belong to it.
pub fn verify_log(main: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            thread::sleep(PAUSE);
        }
        let checked = match note(main) {
            // Nobody has served it yet.
            Ok(None) => Ok(()),
            Ok(Some((note, flushed))) => journal::verify(main, Some((&note, flushed))),
            Err(why) => {
                let name = main.file_name().unwrap_or_default().display();
                let mut wrong = journal::verify(main, None).err().unwrap_or_default();
                wrong.insert(0, format!("{name}: its log cannot be determined ({why})"));
                Err(wrong)
            }
        };
        match checked {
            Ok(()) => return Vec::new(),
            Err(found) => wrong = found,
        }
    }
    wrong
}

/// The roles of the files that belong to the database at `main`; none if that cannot be read.
pub fn required_files(main: &Path) -> Vec<String> {
    let files = open(main).and_then(|connection| text(&connection, identity::FILES)).ok().flatten();
    files.unwrap_or_default().split(',').map(str::to_owned).collect()
}

/// The database's note of its log, and the last flushed batch. An error: damage is in the way.
fn note(main: &Path) -> rusqlite::Result<Option<(String, u64)>> {
    let connection = open(main)?;
    let flushed = text(&connection, meta::FLUSHED)?.and_then(|flushed| flushed.parse().ok()).unwrap_or(0);
    Ok(text(&connection, meta::LOG)?.map(|note| (note, flushed)))
}

/// The text under `key` in `meta`.
pub(super) fn text(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    let is_there = "SELECT count(*) FROM sqlite_master WHERE name = 'meta'";
    if connection.query_row(is_there, (), |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let value = "SELECT value FROM meta WHERE key = ?";
    connection.query_row(value, [key], |row| row.get(0)).optional()
}

/// A connection that cannot write. Where no log lies beside the database nobody has it open, and it may lie where nothing can be made.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    page_sums::begin();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if path.with_extension("db-wal").exists() {
        return Connection::open_with_flags(path, flags);
    }
    let text = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Connection::open_with_flags(format!("file:{text}?immutable=1"), flags | OpenFlags::SQLITE_OPEN_URI)
}
