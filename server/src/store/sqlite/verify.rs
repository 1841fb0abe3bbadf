//! Reads files whole and says what in them is not as it was written. Blocking; others may have the files open.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::OptionalExtension as _;
use seqsvr_core::page_sums;

use super::scan::open;
use super::stamp::{self, Found};
use super::{LogError, SqliteOptions, journal, meta};

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
    if let Some(Found::Damaged(why)) = stamp::look(path) {
        found.push(format!("{name}: {why}"));
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
    let connection = open(path, &SqliteOptions::default()).ok()?;
    let named = "SELECT name FROM dbstat WHERE pageno = ?";
    connection.query_row(named, [page], |row| row.get(0)).optional().ok()?
}

/// What is damaged or missing of the log beside the database at `main`, or does not belong to it.
pub fn verify_log(main: &Path) -> Vec<LogError> {
    let mut wrong = Vec::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            thread::sleep(PAUSE);
        }
        let noted = noted(main);
        if matches!(noted, Ok(None)) {
            // Nobody has served it yet.
            return Vec::new();
        }
        match journal::verify(main, noted.ok().flatten()) {
            Ok(()) => return Vec::new(),
            Err(found) => wrong = found,
        }
    }
    wrong
}

/// What the database says of its log, and up to which batch that is flushed. An error: damage may be in the way.
fn noted(main: &Path) -> rusqlite::Result<Option<(String, u64)>> {
    let connection = open(main, &SqliteOptions::default())?;
    let text = |key: &str| {
        let value = "SELECT value FROM meta WHERE key = ?";
        connection.query_row(value, [key], |row| row.get::<_, String>(0)).optional()
    };
    let flushed = text(meta::FLUSHED)?.and_then(|flushed| flushed.parse().ok()).unwrap_or(0);
    Ok(text(meta::LOG)?.map(|log| (log, flushed)))
}
