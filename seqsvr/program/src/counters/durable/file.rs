//! The ceilings of the counters in a SQLite file, with the lock by which one process at a time uses the directory. Owned
//! by the raiser's thread.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior, params};
use seqsvr_core::file_lock::FileLock;
use seqsvr_core::page_sums;

use super::book::NamedCeiling;

/// Stored in the file (`application_id`): whose file it is.
const PROGRAM: i64 = 1_936_028_003;
/// Stored in the file (`user_version`); 0 is a new file.
const VERSION: i64 = 1;

const TABLES: &str = "
    CREATE TABLE counters (name BLOB PRIMARY KEY, ceiling INTEGER NOT NULL CHECK (ceiling > 0)) STRICT, WITHOUT ROWID;
    PRAGMA application_id = 1936028003;
    PRAGMA user_version = 1;";

/// See the module.
#[derive(Debug)]
pub(super) struct CounterFile {
    path: PathBuf,
    /// None after a failure: a sync that failed may be followed by one that falsely succeeds, so the file is opened anew and what
    /// its log held is written again (I3).
    connection: Option<Connection>,
    _lock: FileLock,
}

impl CounterFile {
    /// Opens the file in `directory`; makes both if there is none.
    pub(super) fn open(directory: &Path) -> Result<Self, String> {
        let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", directory.display());
        if !directory.is_dir() {
            fs::create_dir_all(directory).map_err(|why| wrong(&why))?;
            // Else a power cut could take the new directory away, with what is in it.
            let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
            let synced = File::open(parent.unwrap_or(Path::new("."))).and_then(|parent| parent.sync_all());
            synced.map_err(|why| wrong(&why))?;
        }
        let lock = FileLock::take(&directory.join("lock")).map_err(|error| match error {
            TryLockError::WouldBlock => wrong(&"another process uses it: stop that one first"),
            TryLockError::Error(why) => wrong(&why),
        })?;
        let path = directory.join("counters.db");
        let connection = connect(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(Self { path, connection: Some(connection), _lock: lock })
    }

    /// All counters with their ceilings.
    pub(super) fn load(&mut self) -> Result<Vec<NamedCeiling>, String> {
        self.with(|connection| {
            let mut select = connection.prepare("SELECT name, ceiling FROM counters")?;
            let named = select.query_map((), |row| {
                let (name, ceiling): (Vec<u8>, i64) = (row.get(0)?, row.get(1)?);
                Ok((name.into_boxed_slice(), ceiling.unsigned_abs()))
            })?;
            named.collect()
        })
    }

    /// Writes these ceilings in one commit; 0 is that of a counter that gave nothing, which goes. When it returns they survive a
    /// power cut; after an error they may.
    pub(super) fn write(&mut self, ceilings: &[NamedCeiling]) -> Result<(), String> {
        self.with(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut upsert = transaction.prepare_cached(
                "INSERT INTO counters VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET ceiling = excluded.ceiling",
            )?;
            let mut delete = transaction.prepare_cached("DELETE FROM counters WHERE name = ?1")?;
            for (name, ceiling) in ceilings {
                match ceiling {
                    0 => delete.execute(params![name])?,
                    _ => upsert.execute(params![name, ceiling.cast_signed()])?,
                };
            }
            drop((upsert, delete));
            transaction.commit()
        })
    }

    fn with<T>(&mut self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, String> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.path).map_err(|why| format!("{}: {why}", self.path.display()))?,
        };
        let done = work(&mut connection).map_err(|why| format!("{}: {why}", self.path.display()))?;
        self.connection = Some(connection);
        Ok(done)
    }
}

fn connect(path: &Path) -> Result<Connection, String> {
    let text = |error: rusqlite::Error| error.to_string();
    page_sums::begin();
    let connection = Connection::open(path).map_err(text)?;
    let settings = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";
    connection.execute_batch(settings).map_err(text)?;
    let stored = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(text);
    match (stored("application_id")?, stored("user_version")?) {
        (PROGRAM, VERSION) => {}
        (0, 0) => connection.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} COMMIT;")).map_err(text)?,
        (PROGRAM, newer) => {
            return Err(format!(
                "it has version {newer}, and this program knows {VERSION}: use a newer seqsvr"
            ));
        }
        _ => return Err("another program wrote it: name another directory".to_owned()),
    }
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    let busy: i64 = connection.query_row(checkpoint, (), |row| row.get(0)).map_err(text)?;
    if busy == 0 { Ok(connection) } else { Err("another connection uses it".to_owned()) }
}
