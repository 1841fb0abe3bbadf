//! The main database: opened once, read by a pool, written through two connections by turns, one of them for many rows.
//!
//! Owns the lock of the process, the migrations and the settings of every connection. After a failed or
//! abandoned transaction the connection that wrote is closed and opened again before it is used (I3): what SQLite
//! believes after a failed fsync is not to be trusted.

use std::fs::TryLockError;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::TransactionBehavior;
use seqsvr_core::file_lock::FileLock;
use seqsvr_core::page_sums;
use sqlx::migrate::MigrateError;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection, Sqlite, SqliteConnection};
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use super::blocking::{self, MOST_LOG};
use super::options::{BUSY, CHECKPOINT_PAGES, READER_CACHE_KIB, WRITER_CACHE_KIB};
use super::scan::Scanners;
use super::service::{Service, ServiceConnection};
use super::{OpenError, SqliteOptions, private};
use crate::store::{StoreError, migrations};

/// The main database.
pub struct Db {
    path: PathBuf,
    options: SqliteConnectOptions,
    /// Waiters come in turn.
    writer: Arc<Mutex<Slot>>,
    readers: SqlitePool,
    /// For the queues and the committer alone, so that no number of reads keeps them waiting.
    service: Service,
    /// Places of reads that run or wait.
    line: Arc<Semaphore>,
    scanners: Scanners,
}

/// Where the writing connection waits.
struct Slot {
    /// Present while nobody writes and nothing is wrong with it.
    connection: Option<SqliteConnection>,
    /// The one for many rows, likewise; it is opened when it is needed. Each forgets the pages that it has in its cache when the other has
    /// written.
    bulk: Option<rusqlite::Connection>,
    /// By what right it is open, until it is closed.
    open: Option<Right>,
}

/// By what right a process has a database open.
enum Right {
    /// It holds the lock. Never read: dropping it gives the lock up.
    Locked { _lock: FileLock },
    /// Another process holds the lock.
    Beside,
}

impl Db {
    /// Opens the database at `path` with the default options. See [`Db::open_with`].
    pub async fn open(path: &Path) -> Result<Arc<Db>, OpenError> {
        Db::open_with(path, &SqliteOptions::default()).await
    }

    /// Opens or makes the database at `path`, takes its lock, and applies the migrations that it lacks.
    ///
    /// # Errors
    /// When another process has it, a newer version or a build before 0.1.0 wrote it, or it is not a database.
    pub async fn open_with(path: &Path, options: &SqliteOptions) -> Result<Arc<Db>, OpenError> {
        if let Some(directory) = path.parent() {
            let io = |source| OpenError::Io { path: directory.to_owned(), source };
            private::make_directory(directory).map_err(io)?;
        }
        let lock = lock(path)?;
        private::make_file(path).map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        let connect = writing_options(path);
        let refused = |error| OpenError::of(path, error);
        let mut writer = SqliteConnection::connect_with(&connect).await.map_err(refused)?;
        migrate(path, &mut writer).await?;
        Ok(Db::over(path, options, connect, writer, Right::Locked { _lock: lock }))
    }

    /// Opens the database at `path` beside the process that has it, for a few short transactions on tables that nobody keeps in memory.
    /// Nothing is made or migrated.
    ///
    /// # Errors
    /// When it belongs to another version, or it is not a database.
    pub async fn open_beside(path: &Path, options: &SqliteOptions) -> Result<Arc<Db>, OpenError> {
        let connect = writing_options(path).create_if_missing(false);
        let refused = |error| OpenError::of(path, error);
        let mut writer = SqliteConnection::connect_with(&connect).await.map_err(refused)?;
        check_migrated(path, &mut writer).await?;
        Ok(Db::over(path, options, connect, writer, Right::Beside))
    }

    fn over(
        path: &Path,
        options: &SqliteOptions,
        connect: SqliteConnectOptions,
        writer: SqliteConnection,
        right: Right,
    ) -> Arc<Db> {
        let reading = connect_options(path)
            .read_only(true)
            .create_if_missing(false)
            .pragma("cache_size", format!("-{}", READER_CACHE_KIB));
        let readers = SqlitePoolOptions::new()
            .max_connections(options.readers)
            .acquire_timeout(BUSY)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_lazy_with(reading.clone());
        let service = Service::new(reading);
        // The scanners are as many again.
        let places = (2 * options.readers as usize).saturating_add(options.waiting_reads);
        Arc::new(Db {
            path: path.to_owned(),
            options: connect,
            writer: Arc::new(Mutex::new(Slot { connection: Some(writer), bulk: None, open: Some(right) })),
            readers,
            service,
            line: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            scanners: Scanners::new(path, options.readers),
        })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// For reading: a bounded pool of connections that cannot write.
    pub fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    /// A connection for the reads of the queues and the committer, which nobody else uses. A caller gives it back after a successful
    /// read; after a failure it is closed.
    pub(in crate::store) async fn service(&self) -> Result<ServiceConnection<'_>, StoreError> {
        self.service.connection().await
    }

    /// A place in the line of those who read on somebody's behalf.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when the line is full.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        Arc::clone(&self.line).try_acquire_owned().map_err(|_| StoreError::Busy)
    }

    /// A connection for reading on somebody's behalf, after those who asked earlier.
    pub(in crate::store) async fn reader(&self) -> Result<ReadConnection, StoreError> {
        let place = self.place()?;
        Ok(ReadConnection { connection: self.readers.acquire().await?, _place: place })
    }

    /// For reading ranges of entries.
    pub(super) fn scanners(&self) -> &Scanners {
        &self.scanners
    }

    /// Begins a write transaction, after the ones that were asked for earlier.
    ///
    /// Keep it short: everybody else who writes waits.
    pub async fn write(&self) -> Result<WriteTx, StoreError> {
        let mut slot = self.writer.clone().lock_owned().await;
        if slot.open.is_none() {
            return Err(StoreError::unavailable("the database is closed"));
        }
        // Taken out before the first await: an abandoned call leaves no half-used connection behind.
        let mut connection = match slot.connection.take() {
            Some(connection) => connection,
            None => SqliteConnection::connect_with(&self.options).await?,
        };
        sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await?;
        Ok(WriteTx { connection, slot })
    }

    /// Runs `work` whole on a blocking thread, as one write transaction after those that were asked for earlier. For many rows: sqlx copies
    /// each value and hands each statement between threads (docs/adr/0006).
    ///
    /// Abandoned, it is done all the same, before anybody else writes.
    ///
    /// # Errors
    /// Those of `work`, and nothing is stored; or that of the commit, after which the caller has to look.
    pub(super) async fn write_bulk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut slot = self.writer.clone().lock_owned().await;
        if slot.open.is_none() {
            return Err(StoreError::unavailable("the database is closed"));
        }
        let path = self.path.clone();
        let whole = move || {
            let mut connection = match slot.bulk.take() {
                Some(connection) => connection,
                None => blocking::open(&path)?,
            };
            let done = blocking::watched("write many rows", || {
                let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let done = work(&tx)?;
                tx.commit()?;
                Ok::<T, StoreError>(done)
            })?;
            // One that failed is not kept (I3).
            slot.bulk = Some(connection);
            Ok(done)
        };
        tokio::task::spawn_blocking(whole).await.map_err(StoreError::unavailable)?
    }

    /// A connection for checkpoints. They run beside whoever writes or reads.
    pub(super) async fn checkpointer(&self) -> Result<Checkpointer, StoreError> {
        Ok(Checkpointer { connection: SqliteConnection::connect_with(&self.options).await? })
    }

    /// Moves the write-ahead log into the database, closes it and gives up its lock. Later calls fail.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        self.service.close().await?;
        self.scanners.close().await;
        let mut slot = self.writer.lock().await;
        let right = slot.open.take();
        drop(slot.bulk.take());
        if let Some(mut connection) = slot.connection.take() {
            if matches!(right, Some(Right::Locked { .. })) {
                sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut connection).await?;
            }
            connection.close().await?;
        }
        drop(right);
        Ok(())
    }
}

/// A connection that reads; use it as one (`&mut *connection`).
pub(in crate::store) struct ReadConnection {
    connection: PoolConnection<Sqlite>,
    _place: OwnedSemaphorePermit,
}

impl Deref for ReadConnection {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for ReadConnection {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

/// Moves the write-ahead log into the database.
pub(super) struct Checkpointer {
    connection: SqliteConnection,
}

impl Checkpointer {
    /// Moves what no reader still needs to find in the log.
    pub(super) async fn checkpoint(&mut self) -> Result<(), StoreError> {
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut self.connection).await?;
        Ok(())
    }
}

/// A write transaction on the main database; use it as a connection (`&mut *tx`).
///
/// Dropped without [`commit`](WriteTx::commit) it is rolled back.
pub struct WriteTx {
    connection: SqliteConnection,
    slot: OwnedMutexGuard<Slot>,
}

impl WriteTx {
    /// Makes it durable.
    ///
    /// # Errors
    /// Whether it is stored is then unknown to the caller, who has to look.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        sqlx::query("COMMIT").execute(&mut self.connection).await?;
        self.slot.connection = Some(self.connection);
        Ok(())
    }

    /// Takes everything back.
    pub async fn rollback(mut self) -> Result<(), StoreError> {
        sqlx::query("ROLLBACK").execute(&mut self.connection).await?;
        self.slot.connection = Some(self.connection);
        Ok(())
    }
}

impl Deref for WriteTx {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for WriteTx {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

/// Takes the lock of the database at `database`, which lies beside it, or says who is in the way.
fn lock(database: &Path) -> Result<FileLock, OpenError> {
    let path = database.with_added_extension("lock");
    FileLock::take(&path).map_err(|error| match error {
        TryLockError::WouldBlock => OpenError::InUse { path: database.to_owned() },
        TryLockError::Error(source) => OpenError::Io { path, source },
    })
}

/// Options of the connection that writes.
fn writing_options(path: &Path) -> SqliteConnectOptions {
    connect_options(path)
        .pragma("cache_size", format!("-{}", WRITER_CACHE_KIB))
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES.to_string())
}

/// Options of every connection over sqlx.
pub(super) fn connect_options(path: &Path) -> SqliteConnectOptions {
    page_sums::begin();
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("journal_size_limit", MOST_LOG.to_string())
        .busy_timeout(BUSY)
}

/// Refuses a database to which other migrations were applied than this version knows, for those who cannot apply them.
pub(super) async fn check_migrated(path: &Path, connection: &mut SqliteConnection) -> Result<(), OpenError> {
    check_base(path, connection).await?;
    let applied = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";
    let applied = sqlx::query_scalar::<_, i64>(applied).fetch_all(connection).await;
    let applied = applied.map_err(|error| OpenError::of(path, error))?;
    if applied.into_iter().eq(migrations::SQLITE.iter().map(|migration| migration.version)) {
        return Ok(());
    }
    let why = "it belongs to another version; use that one, or run `tidemark migrate` first";
    Err(OpenError::Unreadable { path: path.to_owned(), source: StoreError::unavailable(why) })
}

/// Refuses a database that was made from another base schema than this program's.
async fn check_base(path: &Path, connection: &mut SqliteConnection) -> Result<(), OpenError> {
    let refused = |error| OpenError::of(path, error);
    let migrated = "SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
    if sqlx::query_scalar::<_, i64>(migrated).fetch_one(&mut *connection).await.map_err(refused)? == 0 {
        return Ok(());
    }
    let base = migrations::SQLITE.iter().next().expect("the base schema");
    let applied = sqlx::query_scalar::<_, Vec<u8>>("SELECT checksum FROM _sqlx_migrations WHERE version = ?");
    match applied.bind(base.version).fetch_optional(connection).await.map_err(refused)? {
        Some(sum) if sum != *base.checksum => Err(OpenError::Earlier { path: path.to_owned() }),
        _ => Ok(()),
    }
}

async fn migrate(path: &Path, connection: &mut SqliteConnection) -> Result<(), OpenError> {
    check_base(path, connection).await?;
    migrations::SQLITE.run(connection).await.map_err(|source| match source {
        MigrateError::VersionMissing(migration) => OpenError::Newer { path: path.to_owned(), migration },
        source => OpenError::Migration { path: path.to_owned(), source },
    })
}

#[cfg(test)]
mod tests;
