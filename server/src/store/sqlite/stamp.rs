//! The stamp of a file: of which installation it is, as what, and since which start. It lies in a table of its own
//! inside the file.
//!
//! Each start gives all files of an installation a new stamp, and the main database remembers it (`identity`). So a
//! file that was put back from another moment, or comes from another installation, is told from the one that belongs
//! there. Blocking; nobody else has the files open meanwhile. Each is opened once, and its log is in it before it is
//! stamped.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, params};
use seqsvr_core::page_sums;
use uuid::Uuid;

use super::meta::MESSAGE_IDS;
use super::private;
use crate::store::StoreError;
use crate::store::sql::NO_ROOM;

/// Of the files of this version; a larger one was written by a newer program, which keeps things where this one would not look.
const FORMAT: i64 = 1;

/// How long to wait for a predecessor that is just closing the file.
const BUSY: Duration = Duration::from_secs(2);

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS stamp (one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER NOT NULL,
    role TEXT NOT NULL, installation TEXT NOT NULL, start INTEGER NOT NULL, token TEXT NOT NULL)";

/// One start of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Counted from 1 in one life of the files; after files were restored from a backup the same number comes again, with another token.
    pub number: u64,
    /// Drawn at random.
    pub token: Uuid,
}

/// The identity of a file, as the file itself states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// As what it is used.
    pub role: String,
    /// Of which installation it is.
    pub installation: Uuid,
    /// The start that used it last.
    pub start: Start,
}

/// The kind of file at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Nothing.
    Missing,
    /// A file without a byte, or a database in which there is nothing.
    Empty,
    /// A database with something in it and without a stamp.
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
pub fn look(path: &Path) -> Option<FileKind> {
    let damaged = |why: &str| Some(FileKind::Damaged(why.to_owned()));
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(FileKind::Missing),
        Err(error) => return Some(FileKind::Unreadable(error.to_string())),
    };
    let length = match file.metadata() {
        Ok(found) if found.is_file() => found.len(),
        Ok(_) => return damaged("it is not a file"),
        Err(error) => return Some(FileKind::Unreadable(error.to_string())),
    };
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        std::fs::metadata(Path::new(&name)).is_ok_and(|log| log.len() > 0)
    };
    if length == 0 {
        return Some(FileKind::Empty);
    }
    let mut head = [0; 100];
    let is_database = file.read_exact(&mut head).is_ok() && head.starts_with(b"SQLite format 3\0");
    if is_database && !page_sums::has_sums(&head) {
        return damaged("its pages have no sums: another build before 0.1.0 made it");
    }
    // The log may hold what is missing here: then SQLite alone can tell.
    if beside("-wal") || beside("-journal") {
        return None;
    }
    if !is_database {
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

/// The source of message ids in the database at `path`; `None` if it does not say, or cannot be read. Changes nothing.
pub fn message_ids(path: &Path) -> Option<String> {
    if look(path).is_some() {
        return None;
    }
    let connection = connect_to(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    connection.query_row("SELECT value FROM meta WHERE key = ?", [MESSAGE_IDS], |row| row.get(0)).ok()
}

/// A file that was looked at. A database is held open until it is stamped or given up.
pub struct Opened {
    path: PathBuf,
    connection: Option<Connection>,
    found: FileKind,
}

impl Opened {
    /// Opens the file at `path`, if it is a database. The log that a killed process left is moved into it: whether a sync of
    /// that process had failed cannot be known (I3).
    pub fn open(path: PathBuf) -> Opened {
        if let Some(found) = look(&path) {
            return Opened { path, connection: None, found };
        }
        match connect(&path).and_then(|connection| {
            let found = stamped(&connection)?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?;
            Ok((connection, found))
        }) {
            Ok((connection, found)) => Opened { path, connection: Some(connection), found },
            Err(error) => {
                let found = match error.sqlite_error_code() {
                    Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FileKind::Busy,
                    Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                        FileKind::Damaged(error.to_string())
                    }
                    Some(_) if is_without_its_sum(&error) => {
                        FileKind::Damaged("the checksum of a page is wrong".to_owned())
                    }
                    _ => FileKind::Unreadable(why(error)),
                };
                Opened { path, connection: None, found }
            }
        }
    }

    /// A file that nothing is known of.
    pub fn unread(path: PathBuf, why: impl ToString) -> Opened {
        Opened { path, connection: None, found: FileKind::Unreadable(why.to_string()) }
    }

    /// The kind of file that was found.
    pub fn found(&self) -> &FileKind {
        &self.found
    }

    /// Stamps it, durably, and closes it. It is made if it is not there.
    ///
    /// # Errors
    /// What SQLite or the system says, in one line.
    pub fn stamp(self, stamp: &Stamp) -> Result<(), String> {
        let connection = match self.connection {
            Some(connection) => Ok(connection),
            None => {
                private::make_file(&self.path).map_err(|error| error.to_string())?;
                connect(&self.path)
            }
        };
        connection.and_then(|connection| write(&connection, stamp)).map_err(|error| {
            match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy) => "another process uses it; stop that one".to_owned(),
                _ => why(error),
            }
        })
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    connect_to(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn connect_to(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    page_sums::begin();
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// SQLite calls a full disk by other names.
fn why(error: rusqlite::Error) -> String {
    let text = error.to_string();
    match StoreError::from(error) {
        StoreError::Unavailable(why) if *why == *NO_ROOM => why.to_string(),
        _ => text,
    }
}

fn is_without_its_sum(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == page_sums::DAMAGED_PAGE)
}

fn stamped(connection: &Connection) -> rusqlite::Result<FileKind> {
    let tables = "SELECT count(*), coalesce(sum(name = 'stamp'), 0) FROM sqlite_master";
    match connection.query_row(tables, (), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))? {
        // Made, and not stamped before the process ended.
        (0, _) => return Ok(FileKind::Empty),
        (_, 0) => return Ok(FileKind::Unstamped),
        _ => {}
    }
    let format: Option<i64> =
        connection.query_row("SELECT format FROM stamp", (), |row| row.get(0)).optional()?;
    match format {
        None => return Ok(FileKind::Unstamped),
        Some(1..=FORMAT) => {}
        Some(_) => return Ok(FileKind::Newer),
    }
    let columns = "SELECT role, installation, start, token FROM stamp";
    let (role, installation, start, token): (String, String, i64, String) =
        connection.query_row(columns, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let uuid = |text: String| {
        let bad = |error| {
            rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
        };
        Uuid::parse_str(&text).map_err(bad)
    };
    let start = Start { number: start.cast_unsigned(), token: uuid(token)? };
    Ok(FileKind::Stamped(Stamp { role, installation: uuid(installation)?, start }))
}

fn write(connection: &Connection, stamp: &Stamp) -> rusqlite::Result<()> {
    // The next process to open the file reads the log, too. To move it into the file here would take two more syncs a file.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.unchecked_transaction()?;
    transaction.execute(TABLE, ())?;
    transaction.execute(
        "INSERT OR REPLACE INTO stamp VALUES (1, ?, ?, ?, ?, ?)",
        params![
            FORMAT,
            stamp.role,
            stamp.installation.to_string(),
            stamp.start.number.cast_signed(),
            stamp.start.token.to_string()
        ],
    )?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(path: &Path) -> u64 {
        std::fs::metadata(path).map_or(0, |found| found.len())
    }

    #[test]
    fn what_a_killed_process_left_in_the_log_is_in_the_file_before_it_is_stamped() {
        let place = tempfile::tempdir().expect("a directory");
        let (path, log) = (place.path().join("ids.db"), place.path().join("ids.db-wal"));
        let start = |number| Start { number, token: Uuid::from_u128(1) };
        let stamp = |number| {
            let (role, installation) = ("ids".to_owned(), Uuid::from_u128(2));
            Stamp { role, installation, start: start(number) }
        };
        Opened::open(path.clone()).stamp(&stamp(1)).expect("made");
        let connection = Connection::open(&path).expect("opened");
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("set");
        let rows = "CREATE TABLE kept (n); INSERT INTO kept VALUES (7);";
        connection.execute_batch(rows).expect("stored");
        drop(connection);
        assert!(length(&log) > 0);

        let opened = Opened::open(path.clone());
        assert_eq!((opened.found(), length(&log)), (&FileKind::Stamped(stamp(1)), 0));
        // Refused for the sake of another file: the process ends, and so does one that is killed here.
        drop(opened);
        Opened::open(path.clone()).stamp(&stamp(2)).expect("stamped");
        assert!(length(&log) > 0, "the next to open it reads the log");

        std::fs::remove_file(place.path().join("ids.db-shm")).expect("a power cut keeps no shared memory");
        assert_eq!(Opened::open(path.clone()).found(), &FileKind::Stamped(stamp(2)));
        let kept =
            Connection::open(&path).expect("opened").query_row("SELECT n FROM kept", (), |row| row.get(0));
        assert_eq!(kept, Ok(7));
    }

    #[test]
    fn a_database_without_a_stamp_is_empty_or_not_ours() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("ids.db");
        page_sums::begin();
        let connection = Connection::open(&path).expect("opened");
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA user_version = 1;").expect("made");
        drop(connection);
        assert_eq!(Opened::open(path.clone()).found(), &FileKind::Empty);
        let connection = Connection::open(&path).expect("opened");
        connection.execute_batch("CREATE TABLE kept (n)").expect("made");
        drop(connection);
        assert_eq!(Opened::open(path).found(), &FileKind::Unstamped);
    }
}
