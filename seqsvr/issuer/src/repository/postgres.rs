//! Rows in PostgreSQL, for any number of processes on any number of machines. Owns a small pool; a connection that
//! broke is replaced, so a restart of the database needs none of ours.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool, PgRow, Postgres};
use sqlx::{Connection as _, Row as _};

use super::sql::repository;
use super::{Extension, Repository, RepositoryError, TagRow, Values, check_forward};
use crate::range::Range;
use crate::sql::{create, postgres_pool};
use crate::tag::Tag;

/// Connections at most: fillers take a segment now and then, one call at a time each.
const CONNECTIONS: u32 = 4;

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS issuer_tags (biz_tag varchar(64) PRIMARY KEY, start bigint NOT NULL,
        max bigint NOT NULL, step bigint NOT NULL, updated_at bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS issuer_extensions (biz_tag varchar(64) NOT NULL, first bigint NOT NULL,
        last bigint NOT NULL, used_at bigint NOT NULL, PRIMARY KEY (biz_tag, first));";

/// A [`Repository`] in two tables of a PostgreSQL database, `issuer_tags` and `issuer_extensions`.
#[derive(Debug)]
pub struct PostgresRepository {
    pool: PgPool,
}

impl PostgresRepository {
    /// Uses the database at `url` (`postgres://user:password@host/database`). Nothing is connected yet; the tables
    /// are made with the first connection.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unavailable`] for a URL that cannot be understood.
    pub fn new(url: &str) -> Result<Self, RepositoryError> {
        let pool = postgres_pool(url, CONNECTIONS, CONNECT_TIMEOUT, SCHEMA).map_err(unavailable)?;
        Ok(Self { pool })
    }

    /// Uses the connections of `pool`, and makes the tables if they are not there.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unavailable`].
    pub async fn over(pool: PgPool) -> Result<Self, RepositoryError> {
        let mut connection = pool.acquire().await.map_err(unavailable)?;
        // A role that may not make tables is enough where they are there.
        let there =
            "SELECT to_regclass('issuer_tags') IS NOT NULL AND to_regclass('issuer_extensions') IS NOT NULL";
        if !sqlx::query_scalar(there).fetch_one(&mut *connection).await.map_err(unavailable)? {
            create(&mut connection, SCHEMA).await.map_err(unavailable)?;
        }
        drop(connection);
        Ok(Self { pool })
    }

    async fn hold(&self) -> Result<PostgresHold, RepositoryError> {
        self.pool.acquire().await.map(PostgresHold).map_err(unavailable)
    }

    fn unavailable(&self, error: sqlx::Error) -> RepositoryError {
        unavailable(error)
    }
}

fn unavailable(error: sqlx::Error) -> RepositoryError {
    RepositoryError::Unavailable(format!("PostgreSQL: {error}"))
}

/// Goes back to the pool, which looks whether it still works.
struct PostgresHold(PoolConnection<Postgres>);

impl PostgresHold {
    fn connection(&mut self) -> &mut PgConnection {
        &mut self.0
    }

    fn keep(self) {}
}

repository!(
    PostgresRepository,
    PgRow,
    now = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
    begin = "BEGIN"
);

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

    use super::PostgresRepository;
    use tidemark_test_support::servers::postgres::{fresh_schema, url};

    async fn fresh() -> (PostgresRepository, ()) {
        let schema = fresh_schema();
        let mut connection = PgConnection::connect(url()).await.unwrap();
        connection.execute(AssertSqlSafe(format!("CREATE SCHEMA {schema}"))).await.unwrap();
        (PostgresRepository::new(&format!("{}&options[search_path]={schema}", url())).unwrap(), ())
    }

    super::super::conformance::conformance!(fresh);
}
