//! The measurements over PostgreSQL: servers of the product over a database server of their own, which counts what it is
//! asked and what it writes.

mod send;
mod servers;

pub(super) use send::SendPostgres;
pub(super) use servers::Servers;

use std::time::Duration;

use sqlx::{Connection, PgConnection, Row};
use tidemark_test_support::servers::postgres;

use crate::{Failure, Result, cpu};

/// How long a load may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(900);

/// A database server as it comes: every commit waits for the disk. It counts the statements.
pub(super) async fn database() -> Result<postgres::Server> {
    if !postgres::is_installed() {
        return Err(Failure::new("PostgreSQL is missing; apt-get install postgresql"));
    }
    let arguments = "-c fsync=on -c shared_preload_libraries=pg_stat_statements";
    let database = tokio::task::spawn_blocking(|| postgres::Server::start_with(arguments)).await?;
    database.execute("CREATE EXTENSION pg_stat_statements").await;
    Ok(database)
}

/// The work of a database server so far. Open sessions may not have told everything yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DatabaseWork {
    /// Statements, each of which is a round trip.
    pub(super) statements: f64,
    /// Syncs of its log.
    pub(super) flushes: f64,
    /// Bytes of its log.
    pub(super) log_bytes: f64,
    /// Seconds of the processor.
    pub(super) seconds: f64,
}

impl DatabaseWork {
    /// The work of `database` so far.
    pub(super) async fn of(database: &postgres::Server) -> Result<DatabaseWork> {
        let mut connection = PgConnection::connect(database.url()).await?;
        let row = sqlx::query(
            "SELECT (SELECT sum(calls) FROM pg_stat_statements)::float8, (SELECT wal_sync FROM pg_stat_wal)::float8,
                 (pg_current_wal_insert_lsn() - '0/0')::float8",
        )
        .fetch_one(&mut connection)
        .await?;
        let (statements, flushes, log_bytes) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(DatabaseWork { statements, flushes, log_bytes, seconds: cpu::of_family(database.pid())? })
    }

    /// The work since `earlier`.
    pub(super) fn since(self, earlier: DatabaseWork) -> DatabaseWork {
        DatabaseWork {
            statements: self.statements - earlier.statements,
            flushes: self.flushes - earlier.flushes,
            log_bytes: self.log_bytes - earlier.log_bytes,
            seconds: self.seconds - earlier.seconds,
        }
    }
}

/// Waits for a load, and no longer than one may take.
pub(super) async fn within_patience<T>(load: impl Future<Output = Result<T>>) -> Result<T> {
    let late = |_| Failure::new(format!("the load did not come to its end within {PATIENCE:?}"));
    tokio::time::timeout(PATIENCE, load).await.map_err(late)?
}
