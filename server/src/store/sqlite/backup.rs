//! The files of an installation for a backup and its restore: one moment, read beside the process that serves it and without its lock.
//!
//! The moment is a read transaction on the main database and, behind it, the batches of the journal that are not flushed there. Pages are
//! copied out of that transaction, so they are of that moment however long it takes; no writer waits for it. Blocking; called by
//! `transfer::backup`.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use seqsvr_core::file_lock::FileLock;
use seqsvr_core::page_sums;
use uuid::Uuid;

use super::options::BUSY;
use super::private::{self, sync_directory_of};
use super::verify::text;
use super::{blocking, identity, journal, meta, named_files};
use crate::domain::{HistoryId, Timestamp};
use crate::store::{StoreError, migrations};

/// An account is made now and then, and the two readings are milliseconds apart.
const ATTEMPTS: usize = 100;

/// Pages that are copied at a time.
const PAGES_A_STEP: i32 = 256;

/// One moment of an installation.
pub struct BackupMoment {
    /// In its read transaction.
    main: Connection,
    /// Of which installation it is.
    pub installation: Uuid,
    /// The history that it continues.
    pub history: HistoryId,
    /// The batches of the journal that the database does not have, as they are stored.
    pub batches: Vec<Vec<u8>>,
    /// The last migration that was applied.
    pub migration: i64,
}

impl BackupMoment {
    /// Takes the moment that is now, of the database at `main`.
    ///
    /// # Errors
    /// When nothing was ever stored in it, an import of it is not finished, or it cannot be read.
    pub fn take(main: &Path) -> Result<BackupMoment, StoreError> {
        for _ in 0..ATTEMPTS {
            if let Some(taken) = Half::begin(main)?.with_journal(main)? {
                return Ok(taken);
            }
        }
        Err(StoreError::unavailable(
            "it changes too fast to be read, or its journal is damaged; `tidemark verify` says what is damaged",
        ))
    }

    fn of(main: Connection, batches: Vec<Vec<u8>>) -> Result<BackupMoment, StoreError> {
        if text(&main, meta::IMPORT)?.is_some() {
            return Err(StoreError::unavailable("an import into it was not finished; run it again first"));
        }
        let named = |key| -> Result<Uuid, StoreError> {
            let found =
                text(&main, key)?.ok_or_else(|| StoreError::corrupt("nothing was ever stored in it"))?;
            found.parse().map_err(|_| StoreError::corrupt(format!("{key} cannot be read")))
        };
        let (installation, history) = (named(identity::INSTALLATION)?, HistoryId(named(meta::HISTORY)?));
        let migration = main.query_row("SELECT max(version) FROM _sqlx_migrations", (), |row| row.get(0))?;
        if migration > newest_migration() {
            return Err(StoreError::unavailable("it was changed by a newer version; run that version"));
        }
        Ok(BackupMoment { main, installation, history, batches, migration })
    }

    /// Bytes of the main database.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn length(&self) -> Result<u64, StoreError> {
        length(&self.main)
    }

    /// Ends the moment: nothing more can be read from it.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn end(&mut self) -> Result<(), StoreError> {
        Ok(self.main.execute_batch("ROLLBACK")?)
    }

    /// Copies the main database into a file without a name, on the disk of `at`, where nothing else may be. `each` is called with how many
    /// bytes were copied.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn copy(&self, at: &Path, each: impl FnMut(u64)) -> Result<File, StoreError> {
        copy(&self.main, at, each)
    }
}

/// The first half of a moment: the main database.
struct Half {
    main: Connection,
    /// The last batch of the journal that it holds whole.
    flushed: u64,
    seen: Seen,
}

impl Half {
    fn begin(path: &Path) -> Result<Half, StoreError> {
        let main = open(path)?;
        main.execute_batch("BEGIN")?;
        // The first reading fixes the moment.
        let (flushed, seen) = (flushed(&main)?, Seen::read(&main)?);
        Ok(Half { main, flushed, seen })
    }

    /// The second half. `None`: what was seen has changed since the first one, or batches behind the flushed ones are missing, because a
    /// flush has ended and their room was used again. (The journal shows a gap then, as at a start.) Or one of their rows names a file that
    /// it could not name before.
    fn with_journal(self, path: &Path) -> Result<Option<BackupMoment>, StoreError> {
        let batches = match &self.seen.log {
            Some(note) => journal::noted_blobs_after(path, note, self.flushed),
            None => Ok(Some(Vec::new())),
        };
        let now = open(path)?;
        if Seen::read(&now)? != self.seen {
            return Ok(None);
        }
        let Some(batches) = batches? else { return Ok(None) };
        let named = named_files::of_records(&journal::decoded(self.flushed, &batches)?);
        let known = named_files::count_known_blocking(&self.main, &named)?;
        if named_files::count_known_blocking(&now, &named)? != known {
            return Ok(None);
        }
        BackupMoment::of(self.main, batches).map(Some)
    }
}

/// The part of the main database that must not change while the journal is read: an account or a table that is made may have rows there.
#[derive(PartialEq, Eq)]
struct Seen {
    log: Option<String>,
    people: Option<i64>,
    tables: Option<i64>,
}

impl Seen {
    fn read(connection: &Connection) -> Result<Seen, StoreError> {
        let largest = |query| connection.query_row(query, (), |row| row.get(0));
        Ok(Seen {
            log: text(connection, meta::LOG)?,
            people: largest("SELECT count(*) FROM accounts")?,
            tables: largest("SELECT max(id) FROM tables")?,
        })
    }
}

fn flushed(connection: &Connection) -> Result<u64, StoreError> {
    let Some(found) = text(connection, meta::FLUSHED)? else { return Ok(0) };
    found.parse().map_err(|_| StoreError::corrupt(format!("{} is {found:?}, not a number", meta::FLUSHED)))
}

fn length(connection: &Connection) -> Result<u64, StoreError> {
    let of = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), (), |row| row.get::<_, i64>(0));
    Ok(of("page_count")?.cast_unsigned() * of("page_size")?.cast_unsigned())
}

/// A connection that cannot write, also beside a process that does.
fn open(path: &Path) -> Result<Connection, StoreError> {
    page_sums::begin();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// Copies another database of the installation, as [`BackupMoment::copy`] does the main one.
///
/// # Errors
/// When it cannot be read or written.
pub fn copy_database(from: &Path, at: &Path) -> Result<File, StoreError> {
    copy(&open(from)?, at, |_| {})
}

/// Copies page by page, so that each lies where it lay and has its sum. The name is removed before the first page is written: however
/// the process ends, no copy stays behind.
fn copy(from: &Connection, at: &Path, mut each: impl FnMut(u64)) -> Result<File, StoreError> {
    let size: i64 = from.query_row("PRAGMA page_size", (), |row| row.get(0))?;
    let made = || -> io::Result<File> {
        match fs::remove_file(at) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => private::make_file(at)?,
        }
        File::open(at)
    };
    let file = made().map_err(StoreError::unavailable)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(at, flags)?;
    // A copy that fails is thrown away: nothing of it must be durable, or be taken back.
    copy.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
    copy.pragma_update(None, "synchronous", "OFF")?;
    fs::remove_file(at).map_err(StoreError::unavailable)?;
    let backup = Backup::new(from, &mut copy)?;
    loop {
        let before = backup.progress();
        let step = backup.step(PAGES_A_STEP)?;
        let after = backup.progress();
        let pages = if before.pagecount == 0 {
            after.pagecount - after.remaining
        } else {
            before.remaining - after.remaining
        };
        each(i64::from(pages).cast_unsigned() * size.cast_unsigned());
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            _ => return Err(StoreError::unavailable("another process keeps it locked; try again")),
        }
    }
    Ok(file)
}

/// Keeps other processes that lock the file at `path` away, until it is dropped.
///
/// # Errors
/// When another one holds it, or the file cannot be made.
pub fn alone(path: &Path) -> Result<FileLock, TryLockError> {
    FileLock::take(path)
}

/// The last migration that this program knows.
pub fn newest_migration() -> i64 {
    migrations::SQLITE.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Where the main database of `main` lies while it is restored. It is there before anything else, and keeps servers away.
pub fn restoring_at(main: &Path) -> PathBuf {
    main.with_extension("restore.part")
}

/// Makes an installation of a main database that was restored [`restoring_at`] its place: a log with these batches beside `main`, and then
/// the database itself under its name. Until `tidemark restored` has done its work no server takes it.
///
/// # Errors
/// When something cannot be written.
pub fn settle_restored(main: &Path, batches: &[Vec<u8>]) -> Result<(), StoreError> {
    let part = restoring_at(main);
    let mut connection = blocking::open(&part)?;
    let note = journal::make_with(main, flushed(&connection)?, batches)?;
    let tx = connection.transaction()?;
    let put =
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    tx.execute(put, (meta::LOG, note))?;
    tx.execute(put, (identity::RESTORING, "1"))?;
    // Not all that was beside the database is in a backup.
    tx.execute("DELETE FROM meta WHERE key IN (?, ?)", (identity::FILES, identity::KEY))?;
    tx.commit()?;
    // The last connection moves all that it wrote into the file, and removes its log.
    connection.close().map_err(|(_, error)| error)?;
    let named = || {
        File::open(&part)?.sync_all()?;
        fs::rename(&part, main)?;
        sync_directory_of(main)
    };
    named().map_err(StoreError::unavailable)
}

/// Where the time of the last good backup stands: a file beside the database at `main`, so that a backup writes nothing into the
/// database.
fn noted_at(main: &Path) -> PathBuf {
    main.with_extension("backup-time")
}

/// Notes that a backup of the database at `main`, as it was at `moment`, is good.
///
/// # Errors
/// When it cannot be written.
pub fn note_backup(main: &Path, moment: Timestamp) -> io::Result<()> {
    let (path, fresh) = (noted_at(main), main.with_extension("backup-time.new"));
    _ = fs::remove_file(&fresh);
    private::make_file(&fresh)?;
    let mut file = File::options().write(true).open(&fresh)?;
    file.write_all(moment.to_rfc3339().as_bytes())?;
    file.sync_all()?;
    private::belong_to_directory(&fresh)?;
    fs::rename(&fresh, &path)?;
    sync_directory_of(&path)
}

/// The moment of the last good backup of the database at `main`; `None`: there was none.
pub(super) fn last_backup(main: &Path) -> Option<Timestamp> {
    Timestamp::from_rfc3339(fs::read_to_string(noted_at(main)).ok()?.trim())
}

#[cfg(test)]
mod tests;
