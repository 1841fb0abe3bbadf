//! The database under [`Directory`](super::Directory), and a transaction in it.
//!
//! On PostgreSQL everything runs on a connection that callers wait for in a bounded line, and no longer than an answer
//! may take. On SQLite what writes waits for its turn.

use std::sync::Arc;

use sqlx::{Connection as _, Postgres, Transaction};

use super::StoreError;
use super::postgres::{self, PgDb};
#[cfg(any(test, feature = "test-support"))]
use super::sql::memory;
use super::sql::{SqlConnection, SqlRow, Statement};
use super::sqlite::{self, Db, WriteTx};

/// See the module.
#[derive(Clone)]
pub(super) enum SqlDb {
    Sqlite(Arc<Db>),
    Postgres(Arc<PgDb>),
    #[cfg(any(test, feature = "test-support"))]
    Memory(memory::MemoryDb),
}

impl SqlDb {
    /// An empty one in memory.
    #[cfg(any(test, feature = "test-support"))]
    pub(super) fn in_memory() -> SqlDb {
        SqlDb::Memory(memory::open().expect("memory has room for it"))
    }

    /// The rows of a question.
    pub(super) async fn rows(&self, sql: Statement) -> Result<Vec<SqlRow>, StoreError> {
        // The calls of both databases are large: each lies beside its caller, not in it.
        let rows = async {
            match self {
                SqlDb::Sqlite(db) => SqlConnection::Sqlite(&mut *db.reader().await?).rows(sql).await,
                SqlDb::Postgres(db) => {
                    let rows = async { SqlConnection::Postgres(&mut *db.reader().await?).rows(sql).await };
                    db.limited(rows).await
                }
                #[cfg(any(test, feature = "test-support"))]
                SqlDb::Memory(db) => SqlConnection::Memory(&mut *db.lock().await).rows(sql).await,
            }
        };
        Box::pin(rows).await
    }

    /// The same over connections that the queues share with nobody.
    pub(super) async fn rows_for_queues(&self, sql: Statement) -> Result<Vec<SqlRow>, StoreError> {
        match self {
            SqlDb::Sqlite(db) => {
                let mut connection = db.service().await?;
                let rows = SqlConnection::Sqlite(&mut connection).rows(sql).await?;
                connection.give_back();
                Ok(rows)
            }
            SqlDb::Postgres(db) => {
                let rows = async { SqlConnection::Postgres(&mut *db.for_queues().await?).rows(sql).await };
                db.limited(Box::pin(rows)).await
            }
            #[cfg(any(test, feature = "test-support"))]
            SqlDb::Memory(_) => self.rows(sql).await,
        }
    }

    /// The only row of a question.
    pub(super) async fn row(&self, sql: Statement) -> Result<Option<SqlRow>, StoreError> {
        Ok(self.rows(sql).await?.pop())
    }

    /// Changes something by one statement. Returns how many rows.
    pub(super) async fn change(&self, sql: Statement) -> Result<u64, StoreError> {
        match self {
            SqlDb::Postgres(db) => {
                let change = async { SqlConnection::Postgres(&mut *db.reader().await?).change(sql).await };
                db.limited(Box::pin(change)).await
            }
            _ => {
                let mut writer = self.writer().await?;
                let mut tx = writer.begin().await?;
                let changed = tx.change(sql).await?;
                tx.commit().await?;
                Ok(changed)
            }
        }
    }

    /// The same. Returns the only row that it changed.
    pub(super) async fn changed_row(&self, sql: Statement) -> Result<Option<SqlRow>, StoreError> {
        if let SqlDb::Postgres(_) = self {
            return self.row(sql).await;
        }
        let mut writer = self.writer().await?;
        let mut tx = writer.begin().await?;
        let changed = tx.row(sql).await?;
        tx.commit().await?;
        Ok(changed)
    }

    /// Waits for `work`, a transaction, and no longer than an answer may take.
    pub(super) async fn limited<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        // A transaction is a large future, of which those around it would hold several copies.
        let work = Box::pin(work);
        match self {
            SqlDb::Postgres(db) => db.limited(work).await,
            _ => work.await,
        }
    }

    /// A connection for one transaction, within [`limited`](Self::limited).
    pub(super) async fn writer(&self) -> Result<SqlWriter, StoreError> {
        Ok(match self {
            SqlDb::Sqlite(db) => SqlWriter::Sqlite(Arc::clone(db)),
            SqlDb::Postgres(db) => SqlWriter::Postgres(db.reader().await?),
            #[cfg(any(test, feature = "test-support"))]
            SqlDb::Memory(db) => SqlWriter::Memory(Arc::clone(db)),
        })
    }

    /// How often accounts were changed in a way that servers must notice, such as an end of all sessions, by whichever process, where a
    /// server is told of it in no other way; else 0.
    pub(super) async fn endings(&self) -> Result<u64, StoreError> {
        match self {
            SqlDb::Sqlite(db) => sqlite::endings(db).await,
            _ => Ok(0),
        }
    }
}

/// A connection for one transaction.
pub(super) enum SqlWriter {
    Sqlite(Arc<Db>),
    Postgres(postgres::ReadConnection),
    #[cfg(any(test, feature = "test-support"))]
    Memory(memory::MemoryDb),
}

impl SqlWriter {
    /// Begins the transaction.
    pub(super) async fn begin(&mut self) -> Result<SqlTx<'_>, StoreError> {
        Ok(match self {
            SqlWriter::Sqlite(db) => SqlTx::Sqlite(db.write().await?),
            SqlWriter::Postgres(connection) => SqlTx::Postgres(connection.begin().await?),
            #[cfg(any(test, feature = "test-support"))]
            SqlWriter::Memory(db) => SqlTx::Memory(memory::begin(db).await?),
        })
    }
}

/// A transaction. Dropped without [`commit`](SqlTx::commit) it is rolled back.
pub(super) enum SqlTx<'c> {
    Sqlite(WriteTx),
    Postgres(Transaction<'c, Postgres>),
    #[cfg(any(test, feature = "test-support"))]
    Memory(memory::MemoryTx),
}

impl SqlTx<'_> {
    /// Where its statements are run.
    pub(super) fn connection(&mut self) -> SqlConnection<'_> {
        match self {
            SqlTx::Sqlite(tx) => SqlConnection::Sqlite(tx),
            SqlTx::Postgres(tx) => SqlConnection::Postgres(tx),
            #[cfg(any(test, feature = "test-support"))]
            SqlTx::Memory(tx) => SqlConnection::Memory(tx),
        }
    }

    /// The rows of a question, or those that were changed, as far as the statement returns them.
    pub(super) async fn rows(&mut self, sql: Statement) -> Result<Vec<SqlRow>, StoreError> {
        self.connection().rows(sql).await
    }

    /// The only one.
    pub(super) async fn row(&mut self, sql: Statement) -> Result<Option<SqlRow>, StoreError> {
        self.connection().row(sql).await
    }

    /// How many rows the statement changed.
    pub(super) async fn change(&mut self, sql: Statement) -> Result<u64, StoreError> {
        self.connection().change(sql).await
    }

    /// Counts a change of an account that servers must notice, where they do by that ([`SqlDb::endings`]): its sessions end, or it has
    /// another name.
    pub(super) async fn count_ending(&mut self) -> Result<(), StoreError> {
        match self {
            SqlTx::Sqlite(tx) => sqlite::count_ending(tx).await,
            _ => Ok(()),
        }
    }

    /// Makes it durable.
    pub(super) async fn commit(self) -> Result<(), StoreError> {
        match self {
            SqlTx::Sqlite(tx) => tx.commit().await,
            SqlTx::Postgres(tx) => Ok(tx.commit().await?),
            #[cfg(any(test, feature = "test-support"))]
            SqlTx::Memory(tx) => Ok(tx.execute_batch("COMMIT")?),
        }
    }

    /// Takes everything back.
    pub(super) async fn roll_back(self) -> Result<(), StoreError> {
        match self {
            SqlTx::Sqlite(tx) => tx.rollback().await,
            SqlTx::Postgres(tx) => Ok(tx.rollback().await?),
            #[cfg(any(test, feature = "test-support"))]
            SqlTx::Memory(tx) => Ok(tx.execute_batch("ROLLBACK")?),
        }
    }
}
