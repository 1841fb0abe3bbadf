//! The stamp of a file: of which installation it is, as what, and since which start. It lies in a table of its own inside the file.
//!
//! Each start gives all files of an installation a new stamp, and the main database remembers it (`identity`). So a file that was put
//! back from another moment, or comes from another installation, is told from the one that belongs there. Blocking; nobody else has
//! the files open meanwhile.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, params};
use uuid::Uuid;

use super::private;

/// Of this version of the table; a larger one was written by a newer program.
const FORMAT: i64 = 1;

/// How long to wait for a predecessor that is just closing the file.
const BUSY: Duration = Duration::from_secs(2);

const TABLE: &str = "CREATE TABLE IF NOT EXISTS tidemark_file (one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER NOT NULL,
    role TEXT NOT NULL, installation TEXT NOT NULL, start INTEGER NOT NULL, token TEXT NOT NULL)";

/// One start of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Counted from 1 in one life of the files; after files were put back the same number comes again, with another token.
    pub start: u64,
    /// Drawn at random.
    pub token: Uuid,
}

/// What a file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// As what it is used.
    pub role: String,
    /// Of which installation it is.
    pub installation: Uuid,
    /// The start that used it last.
    pub mark: Mark,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Missing,
    /// A file without a byte.
    Empty,
    /// A database that an earlier version used, or nobody.
    Unstamped,
    /// A file with a stamp.
    Stamped(Stamp),
    /// A file with a stamp of a newer version.
    Newer,
    /// A database that another process uses.
    Busy,
    /// A file that is no whole database; why.
    Damaged(String),
    /// A file that cannot be read now, which says nothing about what is in it; why.
    Unreadable(String),
}

/// Looks at the beginning of a database: `None` when it may be a good one. Without opening it.
pub fn look(path: &Path) -> Option<Found> {
    let damaged = |why: &str| Some(Found::Damaged(why.to_owned()));
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(Found::Missing),
        Err(error) => return Some(Found::Unreadable(error.to_string())),
    };
    let length = match file.metadata() {
        Ok(found) if found.is_file() => found.len(),
        Ok(_) => return damaged("it is no file"),
        Err(error) => return Some(Found::Unreadable(error.to_string())),
    };
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        std::fs::metadata(Path::new(&name)).is_ok_and(|log| log.len() > 0)
    };
    if length == 0 {
        return Some(Found::Empty);
    }
    // The log may hold what is missing here: then SQLite alone can tell.
    if beside("-wal") || beside("-journal") {
        return None;
    }
    let mut head = [0; 100];
    if file.read_exact(&mut head).is_err() || &head[..16] != b"SQLite format 3\0" {
        return damaged("it is not a database");
    }
    let page = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let pages = u64::from(u32::from_be_bytes([head[28], head[29], head[30], head[31]]));
    // The number of pages holds for the change that is named at its side.
    if head[24..28] == head[92..96] && length < page * pages {
        return damaged("it is cut off");
    }
    None
}

/// What is at `path`.
pub fn read(path: &Path) -> Found {
    look(path).unwrap_or_else(|| {
        stamped(path).unwrap_or_else(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Found::Busy,
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Found::Damaged(error.to_string()),
            _ => Found::Unreadable(error.to_string()),
        })
    })
}

fn stamped(path: &Path) -> rusqlite::Result<Found> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY)?;
    let table = "SELECT count(*) FROM sqlite_master WHERE name = 'tidemark_file'";
    if connection.query_row(table, (), |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Found::Unstamped);
    }
    let format: Option<i64> =
        connection.query_row("SELECT format FROM tidemark_file", (), |row| row.get(0)).optional()?;
    match format {
        None => return Ok(Found::Unstamped),
        Some(FORMAT) => {}
        Some(_) => return Ok(Found::Newer),
    }
    let columns = "SELECT role, installation, start, token FROM tidemark_file";
    let (role, installation, start, token): (String, String, i64, String) =
        connection.query_row(columns, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let uuid = |text: String| {
        let bad = |error| {
            rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
        };
        Uuid::parse_str(&text).map_err(bad)
    };
    let mark = Mark { start: start.cast_unsigned(), token: uuid(token)? };
    Ok(Found::Stamped(Stamp { role, installation: uuid(installation)?, mark }))
}

/// Stamps the database at `path`, durably, which is made if it is not there; then its pages have `page_size` bytes.
///
/// # Errors
/// What SQLite or the system says, in one line.
pub fn write(path: &Path, stamp: &Stamp, page_size: Option<u32>) -> Result<(), String> {
    private::make_file(path).map_err(|error| error.to_string())?;
    stamp_with(path, stamp, page_size).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => "another process uses it; stop that one".to_owned(),
        _ => error.to_string(),
    })
}

fn stamp_with(path: &Path, stamp: &Stamp, page_size: Option<u32>) -> rusqlite::Result<()> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY)?;
    // Who opens the file next reads the log, too. To move it into the file here would take two more syncs a file.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if let Some(size) = page_size {
        connection.pragma_update(None, "page_size", size)?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.unchecked_transaction()?;
    transaction.execute(TABLE, ())?;
    transaction.execute(
        "INSERT OR REPLACE INTO tidemark_file VALUES (1, ?, ?, ?, ?, ?)",
        params![
            FORMAT,
            stamp.role,
            stamp.installation.to_string(),
            stamp.mark.start.cast_signed(),
            stamp.mark.token.to_string()
        ],
    )?;
    transaction.commit()
}
