//! A connection to either database, on which statements are run.

use sqlx::{PgConnection, SqliteConnection};

use super::statement::{SqlRow, Statement, sql};
use crate::store::StoreError;

/// See the module. In a transaction or not.
pub(in crate::store) enum SqlConnection<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
    #[cfg(any(test, feature = "test-support"))]
    Memory(&'c mut rusqlite::Connection),
}

impl SqlConnection<'_> {
    /// The rows of a question, or those that were changed, as far as the statement returns them.
    pub(in crate::store) async fn rows(&mut self, sql: Statement) -> Result<Vec<SqlRow>, StoreError> {
        Ok(match self {
            SqlConnection::Sqlite(connection) => {
                let rows = sql.for_sqlite().fetch_all(&mut **connection).await?;
                rows.into_iter().map(SqlRow::Sqlite).collect()
            }
            SqlConnection::Postgres(connection) => {
                let rows = sql.for_postgres().fetch_all(&mut **connection).await?;
                rows.into_iter().map(SqlRow::Postgres).collect()
            }
            #[cfg(any(test, feature = "test-support"))]
            SqlConnection::Memory(connection) => super::memory::rows(connection, sql)?,
        })
    }

    /// The only one.
    pub(in crate::store) async fn row(&mut self, sql: Statement) -> Result<Option<SqlRow>, StoreError> {
        Ok(self.rows(sql).await?.pop())
    }

    /// How many rows the statement changed.
    pub(in crate::store) async fn change(&mut self, sql: Statement) -> Result<u64, StoreError> {
        Ok(match self {
            SqlConnection::Sqlite(connection) => {
                sql.for_sqlite().execute(&mut **connection).await?.rows_affected()
            }
            SqlConnection::Postgres(connection) => {
                sql.for_postgres().execute(&mut **connection).await?.rows_affected()
            }
            #[cfg(any(test, feature = "test-support"))]
            SqlConnection::Memory(connection) => super::memory::change(connection, sql)?,
        })
    }

    /// Lets nobody else write to `table` until the transaction ends. On SQLite it is so anyway.
    pub(in crate::store) async fn write_alone(&mut self, table: &'static str) -> Result<(), StoreError> {
        match self {
            SqlConnection::Postgres(_) => {
                let lock = format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE");
                self.change(sql(lock)).await.map(drop)
            }
            _ => Ok(()),
        }
    }
}
