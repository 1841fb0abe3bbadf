//! Machine ids in a database, SQLite or PostgreSQL: one table, written by compare and set on a version column. Leases
//! run on the database's own clock. The file must be on the machine's own disk for SQLite, and may be
//! shared by all processes of it.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Row as _;
#[cfg(feature = "service")]
use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;

use super::Instance;
use super::registry::{Entry, Registry, RegistryError, Row};
use crate::sql::confirmed;
#[cfg(feature = "service")]
use crate::sql::postgres_pool;
use crate::sql::sqlite_pool;

/// How long to wait for a connection, and for a writer of the same file.
const WAIT: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS issuer_machines (pool TEXT NOT NULL, machine BIGINT NOT NULL,
        instance TEXT NOT NULL, holder BIGINT NOT NULL, used_until BIGINT NOT NULL,
        lease_end BIGINT NOT NULL, version BIGINT NOT NULL, PRIMARY KEY (pool, machine))";

/// Both databases read these statements alike, but for the expression of the time in milliseconds since 1970.
macro_rules! registry {
    ($registry:ident, $now:literal) => {
        #[async_trait]
        impl Registry for $registry {
            async fn rows(&self) -> Result<Vec<Row>, RegistryError> {
                const ROWS: &str = concat!(
                    "SELECT machine, instance, holder, used_until, version, ",
                    "CAST(CASE WHEN lease_end > ",
                    $now,
                    " THEN 1 ELSE 0 END AS BIGINT) AS live FROM issuer_machines WHERE pool = $1"
                );
                let found =
                    sqlx::query(ROWS).bind(&self.pool).fetch_all(&self.database).await.map_err(RegistryError::new)?;
                let number = |row: &_, column| -> Result<u64, RegistryError> {
                    let number: i64 = sqlx::Row::try_get(row, column).map_err(RegistryError::new)?;
                    u64::try_from(number).map_err(RegistryError::new)
                };
                found
                    .iter()
                    .map(|row| {
                        let instance: String = row.try_get("instance").map_err(RegistryError::new)?;
                        let entry = Entry {
                            machine: u32::try_from(number(row, "machine")?).map_err(RegistryError::new)?,
                            instance: Instance::named(&instance).map_err(RegistryError::new)?,
                            holder: number(row, "holder")?,
                            used_until: number(row, "used_until")?,
                        };
                        Ok(Row { entry, live: number(row, "live")? == 1, version: number(row, "version")? })
                    })
                    .collect()
            }

            async fn write(&self, entry: &Entry, over: u64, lease: Duration) -> Result<bool, RegistryError> {
                const INSERT: &str = concat!(
                    "INSERT INTO issuer_machines (pool, machine, instance, holder, used_until, lease_end, version) ",
                    "VALUES ($1, $2, $3, $4, $5, ",
                    $now,
                    " + $6, 1) ON CONFLICT (pool, machine) DO NOTHING"
                );
                const UPDATE: &str = concat!(
                    "UPDATE issuer_machines SET instance = $3, holder = $4, used_until = $5, lease_end = ",
                    $now,
                    " + $6, version = version + 1 WHERE pool = $1 AND machine = $2 AND version = $7"
                );
                let mut query = sqlx::query(if over == 0 { INSERT } else { UPDATE })
                    .bind(&self.pool)
                    .bind(i64::from(entry.machine))
                    .bind(entry.instance.as_str())
                    .bind(entry.holder as i64)
                    .bind(entry.used_until as i64)
                    .bind(lease.as_millis() as i64);
                if over != 0 {
                    query = query.bind(over as i64);
                }
                let written = confirmed(query.execute(&self.database)).await.map_err(RegistryError::new)?;
                Ok(written.rows_affected() == 1)
            }
        }
    };
}

/// A [`Registry`] in a SQLite file.
#[derive(Debug)]
pub struct SqliteRegistry {
    pool: String,
    database: SqlitePool,
}

registry!(SqliteRegistry, "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)");

impl SqliteRegistry {
    /// Opens the file, making it if there is none; `pool` keeps systems apart that share it.
    ///
    /// # Errors
    ///
    /// [`RegistryError`]: the file cannot be opened or is no database.
    pub async fn open(path: impl AsRef<Path>, pool: &str) -> Result<Self, RegistryError> {
        let database = sqlite_pool(path.as_ref(), WAIT, SCHEMA).await.map_err(RegistryError::new)?;
        Ok(Self { pool: pool.to_owned(), database })
    }
}

/// A [`Registry`] in a PostgreSQL database.
#[cfg(feature = "service")]
#[derive(Debug)]
pub struct PostgresRegistry {
    pool: String,
    database: PgPool,
}

#[cfg(feature = "service")]
registry!(PostgresRegistry, "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)");

#[cfg(feature = "service")]
impl PostgresRegistry {
    /// A registry at `url` (`postgres://…`), which is connected to when it is first asked; the table is made with the first
    /// connection. `pool` keeps systems apart that share the database.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] for a text that is no URL of a PostgreSQL.
    pub fn new(url: &str, pool: &str) -> Result<Self, RegistryError> {
        let database = postgres_pool(url, 2, WAIT, SCHEMA).map_err(RegistryError::new)?;
        Ok(Self { pool: pool.to_owned(), database })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fresh() -> (SqliteRegistry, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (SqliteRegistry::open(folder.path().join("machines.db"), "test").await.unwrap(), folder)
    }

    super::super::conformance::conformance!(fresh);

    mod postgres {
        use super::super::{PostgresRegistry, Registry};
        use tidemark_test_support::servers::postgres::{fresh_schema, url};

        /// A pool of its own is all that a test needs of the shared server.
        async fn fresh() -> (PostgresRegistry, ()) {
            let pool = fresh_schema();
            (PostgresRegistry::new(url(), &pool).unwrap(), ())
        }

        super::super::super::conformance::conformance!(fresh);

        #[tokio::test]
        async fn processes_that_begin_at_once_all_find_the_table() {
            let registries: Vec<_> = (0..8).map(|_| PostgresRegistry::new(url(), "begin").unwrap()).collect();
            let read = futures_util::future::join_all(registries.iter().map(Registry::rows)).await;
            assert!(read.iter().all(Result::is_ok), "{read:?}");
        }
    }

    #[tokio::test]
    async fn pools_of_one_file_do_not_touch_each_other() {
        let (one, folder) = fresh().await;
        let two = SqliteRegistry::open(folder.path().join("machines.db"), "other").await.unwrap();
        let instance = Instance::named("a").unwrap();
        let entry = Entry { machine: 1, instance, holder: 1, used_until: 1 };
        assert_eq!(one.write(&entry, 0, WAIT).await, Ok(true));
        assert_eq!(two.rows().await, Ok(vec![]));
        assert_eq!(two.write(&entry, 0, WAIT).await, Ok(true));
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machines.db");
        std::fs::write(&path, "this is certainly no database, whatever its name says".repeat(40)).unwrap();
        let error = SqliteRegistry::open(path, "test").await.unwrap_err().to_string();
        assert!(error.starts_with("the registry of machine ids cannot be used"), "{error}");
    }
}
