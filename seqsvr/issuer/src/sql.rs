//! The databases of the issuer's tables, opened alike for the rows of tags, for machine ids and for the fingerprints of
//! codes.

use std::path::Path;
use std::time::Duration;

#[cfg(feature = "postgres")]
use sqlx::Connection as _;
#[cfg(feature = "postgres")]
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

/// A SQLite file that keeps what it confirmed through a power cut, made if there is none. `wait`: for another writer.
pub(super) fn sqlite(path: &Path, wait: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(wait)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
}

/// The same, open, with the tables of `schema`.
pub(super) async fn sqlite_pool(
    path: &Path,
    wait: Duration,
    schema: &'static str,
) -> Result<SqlitePool, sqlx::Error> {
    let pools = SqlitePoolOptions::new().max_connections(1).acquire_timeout(wait);
    let pool = pools.connect_with(sqlite(path, wait)).await?;
    sqlx::raw_sql(schema).execute(&pool).await?;
    Ok(pool)
}

/// The PostgreSQL at `url`, which is connected to when it is first used; the tables of `schema` are made then. `wait`: for a
/// connection.
#[cfg(feature = "postgres")]
pub(super) fn postgres_pool(
    url: &str,
    connections: u32,
    wait: Duration,
    schema: &'static str,
) -> Result<PgPool, sqlx::Error> {
    let options: PgConnectOptions = url.parse()?;
    let pools = PgPoolOptions::new().max_connections(connections).acquire_timeout(wait);
    let pools = pools.after_connect(move |connection, _| Box::pin(create(connection, schema)));
    Ok(pools.connect_lazy_with(options))
}

/// PostgreSQL fails one of two sessions that make the same table at once, in spite of IF NOT EXISTS, so they take turns. The
/// number of the lock is this crate's own.
#[cfg(feature = "postgres")]
pub(super) async fn create(connection: &mut PgConnection, schema: &'static str) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock(7316200)").execute(&mut *transaction).await?;
    sqlx::raw_sql(schema).execute(&mut *transaction).await?;
    transaction.commit().await
}
