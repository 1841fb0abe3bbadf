//! The databases of the issuer's tables, opened alike for the rows of tags, for machine ids and for the fingerprints of
//! codes.

use std::io;
use std::path::Path;
use std::time::Duration;

use seqsvr_core::{page_sums, postgres_warnings};
use sqlx::Connection as _;
#[cfg(feature = "postgres")]
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use tokio::time::{Instant, sleep};

/// Between two tries to open a file that others open at the same moment.
const RETRY: Duration = Duration::from_millis(5);
/// SQLite's code for "another connection holds the lock".
const SQLITE_BUSY: &str = "5";

/// A connection to a SQLite file that keeps what it confirmed through a power cut, with the tables of `schema`; the file is
/// made if there is none. `wait`: for another writer.
pub(super) async fn sqlite_connection(
    path: &Path,
    wait: Duration,
    schema: &'static str,
) -> Result<SqliteConnection, sqlx::Error> {
    let options = sqlite(path, wait);
    let deadline = Instant::now() + wait;
    loop {
        match SqliteConnection::connect_with(&options).await {
            // SQLite refuses without waiting when two connections give a new file its write-ahead log at once.
            Err(sqlx::Error::Database(error))
                if error.code().as_deref() == Some(SQLITE_BUSY) && Instant::now() < deadline =>
            {
                sleep(RETRY).await;
            }
            connected => {
                let mut connection = connected?;
                sqlx::raw_sql(schema).execute(&mut connection).await?;
                return Ok(connection);
            }
        }
    }
}

fn sqlite(path: &Path, wait: Duration) -> SqliteConnectOptions {
    page_sums::begin();
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(wait)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
}

/// The same, as a pool of one connection.
pub(super) async fn sqlite_pool(
    path: &Path,
    wait: Duration,
    schema: &'static str,
) -> Result<SqlitePool, sqlx::Error> {
    let pools = SqlitePoolOptions::new().max_connections(1).acquire_timeout(wait);
    sqlite_connection(path, wait, schema).await?.close().await?;
    pools.connect_with(sqlite(path, wait)).await
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

/// A commit that a synchronous standby of PostgreSQL has, too, where there is one. SQLite has none, and says nothing of it.
pub(super) async fn confirmed<T>(
    commit: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    postgres_warnings::confirmed(commit).await.map_err(io::Error::other)?
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    /// SQLite answers "locked" without waiting to one of two that turn a new file into one with a write-ahead log.
    #[test]
    fn a_new_file_is_opened_by_many_at_once() {
        const OPENERS: usize = 8;
        const ROUNDS: usize = 200;
        let folder = tempfile::tempdir().unwrap();
        for round in 0..ROUNDS {
            let path = &folder.path().join(format!("{round}.db"));
            let start = &std::sync::Barrier::new(OPENERS);
            std::thread::scope(|scope| {
                for _ in 0..OPENERS {
                    scope.spawn(move || {
                        let runtime =
                            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                        start.wait();
                        let schema = "CREATE TABLE IF NOT EXISTS kept (n INTEGER)";
                        runtime.block_on(super::sqlite_pool(path, Duration::from_secs(30), schema)).unwrap();
                    });
                }
            });
        }
    }
}
