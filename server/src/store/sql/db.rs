//! The database under [`Directory`](crate::store::Directory), and a transaction in it.
//!
//! On PostgreSQL everything runs on a connection that callers wait for in a bounded line, and no longer than an answer
//! may take. On SQLite what writes waits for its turn.

use std::sync::Arc;

use sqlx::{Connection as _, Postgres, Transaction};

use super::statement::{SqlRow, Statement, sql};
use crate::store::StoreError;
use crate::store::postgres::{self, PgDb};
use crate::store::sqlite::{self, Db, WriteTx};

/// See the module.
#[derive(Clone)]
pub(in crate::store) enum SqlDb {
    Sqlite(Arc<Db>),
    Postgres(Arc<PgDb>),
    #[cfg(any(test, feature = "test-support"))]
    Memory(super::memory::MemoryDb),
}

impl SqlDb {
    /// An empty one in memory.
    #[cfg(any(test, feature = "test-support"))]
    pub(in crate::store) fn in_memory() -> SqlDb {
        SqlDb::Memory(super::memory::open().expect("memory has room for it"))
    }

    /// The rows of a question.
    pub(in crate::store) async fn rows(&self, sql: Statement) -> Result<Vec<SqlRow>, StoreError> {
        // The calls of both databases are large: each lies beside its caller, not in it.
        let rows = async {
            match self {
                SqlDb::Sqlite(db) => {
                    Ok(of_sqlite(sql.for_sqlite().fetch_all(&mut *db.reader().await?).await?))
                }
                SqlDb::Postgres(db) => {
                    let rows = async { Ok(sql.for_postgres().fetch_all(&mut *db.reader().await?).await?) };
                    Ok(of_postgres(db.limited(rows).await?))
                }
                #[cfg(any(test, feature = "test-support"))]
                SqlDb::Memory(db) => super::memory::rows(&*db.lock().await, sql),
            }
        };
        Box::pin(rows).await
    }

    /// The same over connections that the queues share with nobody.
    pub(in crate::store) async fn rows_for_queues(&self, sql: Statement) -> Result<Vec<SqlRow>, StoreError> {
        match self {
            SqlDb::Sqlite(db) => {
                let mut connection = db.service().await?;
                let rows = sql.for_sqlite().fetch_all(&mut *connection).await?;
                connection.give_back();
                Ok(of_sqlite(rows))
            }
            SqlDb::Postgres(db) => {
                let rows = async { Ok(sql.for_postgres().fetch_all(&mut *db.for_queues().await?).await?) };
                Ok(of_postgres(db.limited(Box::pin(rows)).await?))
            }
            #[cfg(any(test, feature = "test-support"))]
            SqlDb::Memory(_) => self.rows(sql).await,
        }
    }

    /// The only row of a question.
    pub(in crate::store) async fn row(&self, sql: Statement) -> Result<Option<SqlRow>, StoreError> {
        Ok(self.rows(sql).await?.pop())
    }

    /// Changes something by one statement. Returns how many rows.
    pub(in crate::store) async fn change(&self, sql: Statement) -> Result<u64, StoreError> {
        match self {
            SqlDb::Postgres(db) => {
                let change = async {
                    let done = sql.for_postgres().execute(&mut *db.reader().await?).await?;
                    Ok(done.rows_affected())
                };
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
    pub(in crate::store) async fn changed_row(&self, sql: Statement) -> Result<Option<SqlRow>, StoreError> {
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
    pub(in crate::store) async fn limited<T>(
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
    pub(in crate::store) async fn writer(&self) -> Result<SqlWriter, StoreError> {
        Ok(match self {
            SqlDb::Sqlite(db) => SqlWriter::Sqlite(Arc::clone(db)),
            SqlDb::Postgres(db) => SqlWriter::Postgres(db.reader().await?),
            #[cfg(any(test, feature = "test-support"))]
            SqlDb::Memory(db) => SqlWriter::Memory(Arc::clone(db)),
        })
    }

    /// How often all sessions of an account were ended, by whichever process, where a server is told of it in no other way; else 0.
    pub(in crate::store) async fn endings(&self) -> Result<u64, StoreError> {
        match self {
            SqlDb::Sqlite(db) => sqlite::endings(db).await,
            _ => Ok(0),
        }
    }
}

/// A connection for one transaction.
pub(in crate::store) enum SqlWriter {
    Sqlite(Arc<Db>),
    Postgres(postgres::ReadConnection),
    #[cfg(any(test, feature = "test-support"))]
    Memory(super::memory::MemoryDb),
}

impl SqlWriter {
    /// Begins the transaction.
    pub(in crate::store) async fn begin(&mut self) -> Result<SqlTx<'_>, StoreError> {
        Ok(match self {
            SqlWriter::Sqlite(db) => SqlTx::Sqlite(db.write().await?),
            SqlWriter::Postgres(connection) => SqlTx::Postgres(connection.begin().await?),
            #[cfg(any(test, feature = "test-support"))]
            SqlWriter::Memory(db) => SqlTx::Memory(super::memory::begin(db).await?),
        })
    }
}

/// A transaction. Dropped without [`commit`](SqlTx::commit) it is rolled back.
pub(in crate::store) enum SqlTx<'c> {
    Sqlite(WriteTx),
    Postgres(Transaction<'c, Postgres>),
    #[cfg(any(test, feature = "test-support"))]
    Memory(super::memory::MemoryTx),
}

impl SqlTx<'_> {
    /// The rows of a question, or those that were changed, as far as the statement returns them.
    pub(in crate::store) async fn rows(&mut self, sql: Statement) -> Result<Vec<SqlRow>, StoreError> {
        Ok(match self {
            SqlTx::Sqlite(tx) => of_sqlite(sql.for_sqlite().fetch_all(&mut **tx).await?),
            SqlTx::Postgres(tx) => of_postgres(sql.for_postgres().fetch_all(&mut **tx).await?),
            #[cfg(any(test, feature = "test-support"))]
            SqlTx::Memory(tx) => super::memory::rows(tx, sql)?,
        })
    }

    /// The only one.
    pub(in crate::store) async fn row(&mut self, sql: Statement) -> Result<Option<SqlRow>, StoreError> {
        Ok(self.rows(sql).await?.pop())
    }

    /// How many rows the statement changed.
    pub(in crate::store) async fn change(&mut self, sql: Statement) -> Result<u64, StoreError> {
        Ok(match self {
            SqlTx::Sqlite(tx) => sql.for_sqlite().execute(&mut **tx).await?.rows_affected(),
            SqlTx::Postgres(tx) => sql.for_postgres().execute(&mut **tx).await?.rows_affected(),
            #[cfg(any(test, feature = "test-support"))]
            SqlTx::Memory(tx) => super::memory::change(tx, sql)?,
        })
    }

    /// Counts that all sessions of an account end here, where servers notice it by that ([`SqlDb::endings`]).
    pub(in crate::store) async fn count_ending(&mut self) -> Result<(), StoreError> {
        match self {
            SqlTx::Sqlite(tx) => sqlite::count_ending(tx).await,
            _ => Ok(()),
        }
    }

    /// Lets nobody else write to `table` until it ends. On SQLite it is so anyway.
    pub(in crate::store) async fn write_alone(&mut self, table: &'static str) -> Result<(), StoreError> {
        match self {
            SqlTx::Postgres(_) => {
                let lock = format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE");
                self.change(sql(lock)).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Makes it durable.
    pub(in crate::store) async fn commit(self) -> Result<(), StoreError> {
        match self {
            SqlTx::Sqlite(tx) => tx.commit().await,
            SqlTx::Postgres(tx) => Ok(tx.commit().await?),
            #[cfg(any(test, feature = "test-support"))]
            SqlTx::Memory(tx) => Ok(tx.execute_batch("COMMIT")?),
        }
    }

    /// Takes everything back.
    pub(in crate::store) async fn roll_back(self) -> Result<(), StoreError> {
        match self {
            SqlTx::Sqlite(tx) => tx.rollback().await,
            SqlTx::Postgres(tx) => Ok(tx.rollback().await?),
            #[cfg(any(test, feature = "test-support"))]
            SqlTx::Memory(tx) => Ok(tx.execute_batch("ROLLBACK")?),
        }
    }
}

fn of_sqlite(rows: Vec<sqlx::sqlite::SqliteRow>) -> Vec<SqlRow> {
    rows.into_iter().map(SqlRow::Sqlite).collect()
}

fn of_postgres(rows: Vec<sqlx::postgres::PgRow>) -> Vec<SqlRow> {
    rows.into_iter().map(SqlRow::Postgres).collect()
}
