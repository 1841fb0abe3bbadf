//! Rows in PostgreSQL, for any number of processes on any number of machines. Owns a small pool; a connection that broke
//! is replaced, so a restart of the database needs none of ours.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use sqlx::{Executor, Row as _};

use super::{Extension, Repository, RepositoryError, Row, Values, check_forward};
use crate::issuer::range::Range;
use crate::issuer::tag::Tag;

/// Connections at most: fillers take a segment now and then, one call at a time each.
const CONNECTIONS: u32 = 4;

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The lock keeps processes that start together from making the tables at the same time, which PostgreSQL answers with
/// an error in spite of IF NOT EXISTS. Its number is this crate's own.
const SCHEMA: &str = "
    BEGIN;
    SELECT pg_advisory_xact_lock(7310599115236143730);
    CREATE TABLE IF NOT EXISTS issuer_tags (biz_tag varchar(64) PRIMARY KEY, start bigint NOT NULL,
        max bigint NOT NULL, step bigint NOT NULL, updated_at bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS issuer_extensions (biz_tag varchar(64) NOT NULL, first bigint NOT NULL,
        last bigint NOT NULL, used_at bigint NOT NULL, PRIMARY KEY (biz_tag, first));
    COMMIT;";

/// Milliseconds since 1970, by the database's clock.
macro_rules! now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}

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
        let options: PgConnectOptions = url.parse().map_err(unavailable)?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(CONNECT_TIMEOUT)
            .after_connect(|connection, _| {
                Box::pin(async move { connection.execute(sqlx::raw_sql(SCHEMA)).await.map(drop) })
            })
            .connect_lazy_with(options);
        Ok(Self { pool })
    }
}

fn unavailable(error: sqlx::Error) -> RepositoryError {
    RepositoryError::Unavailable(format!("PostgreSQL: {error}"))
}

/// A row as `biz_tag, start, max, step, updated_at`.
fn row(stored: &PgRow) -> Result<Row, sqlx::Error> {
    let number = |index| stored.try_get::<i64, _>(index).map(i64::cast_unsigned);
    let values = Values { start: number(1)?, max: number(2)?, step: number(3)? };
    Ok(Row { tag: tag(stored)?, values, updated_at: number(4)? })
}

fn tag(stored: &PgRow) -> Result<Tag, sqlx::Error> {
    Tag::new(stored.try_get(0)?).map_err(|bad| sqlx::Error::Decode(bad.into()))
}

fn extension(stored: &PgRow) -> Result<Extension, sqlx::Error> {
    let number = |index| stored.try_get::<i64, _>(index).map(i64::cast_unsigned);
    let range = Range { first: number(1)?, last: number(2)? };
    Ok(Extension { tag: tag(stored)?, range, used_at: number(3)? })
}

impl PostgresRepository {
    async fn record(&self, Extension { tag, range, used_at }: &Extension) -> Result<bool, sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        let inserted =
            sqlx::query("INSERT INTO issuer_extensions VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING")
                .bind(tag.as_str())
                .bind(range.first.cast_signed())
                .bind(range.last.cast_signed())
                .bind(used_at.cast_signed())
                .execute(&mut *transaction)
                .await?;
        sqlx::query(concat!(
            "INSERT INTO issuer_tags VALUES ($1, $2, $3, $4, ",
            now!(),
            ") ON CONFLICT (biz_tag) DO UPDATE SET max = excluded.max, updated_at = excluded.updated_at \
             WHERE excluded.max > issuer_tags.max"
        ))
        .bind(tag.as_str())
        .bind(range.first.cast_signed())
        .bind(range.last.cast_signed())
        .bind(range.count().cast_signed())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(inserted.rows_affected() > 0)
    }
}

#[async_trait]
impl Repository for PostgresRepository {
    async fn get(&self, tag: &Tag) -> Result<Option<Row>, RepositoryError> {
        let query =
            sqlx::query("SELECT biz_tag, start, max, step, updated_at FROM issuer_tags WHERE biz_tag = $1");
        let found = query.bind(tag.as_str()).fetch_optional(&self.pool).await.map_err(unavailable)?;
        found.as_ref().map(row).transpose().map_err(unavailable)
    }

    async fn list(&self) -> Result<Vec<Row>, RepositoryError> {
        let query = sqlx::query(
            "SELECT biz_tag, start, max, step, updated_at FROM issuer_tags ORDER BY biz_tag COLLATE \"C\"",
        );
        let found = query.fetch_all(&self.pool).await.map_err(unavailable)?;
        found.iter().map(row).collect::<Result<_, _>>().map_err(unavailable)
    }

    async fn create(&self, tag: &Tag, values: Values) -> Result<bool, RepositoryError> {
        let query = sqlx::query(concat!(
            "INSERT INTO issuer_tags VALUES ($1, $2, $3, $4, ",
            now!(),
            ") ON CONFLICT DO NOTHING"
        ));
        let query = query
            .bind(tag.as_str())
            .bind(values.start.cast_signed())
            .bind(values.max.cast_signed())
            .bind(values.step.cast_signed());
        Ok(query.execute(&self.pool).await.map_err(unavailable)?.rows_affected() > 0)
    }

    async fn take(&self, tag: &Tag, expected: u64, values: Values) -> Result<bool, RepositoryError> {
        check_forward(tag, expected, values)?;
        let query = sqlx::query(concat!(
            "UPDATE issuer_tags SET start = $3, max = $4, step = $5, updated_at = ",
            now!(),
            " WHERE biz_tag = $1 AND max = $2"
        ));
        let query = query
            .bind(tag.as_str())
            .bind(expected.cast_signed())
            .bind(values.start.cast_signed())
            .bind(values.max.cast_signed())
            .bind(values.step.cast_signed());
        Ok(query.execute(&self.pool).await.map_err(unavailable)?.rows_affected() > 0)
    }

    async fn remove(&self, tag: &Tag) -> Result<bool, RepositoryError> {
        let query = sqlx::query("DELETE FROM issuer_tags WHERE biz_tag = $1").bind(tag.as_str());
        Ok(query.execute(&self.pool).await.map_err(unavailable)?.rows_affected() > 0)
    }

    async fn reconcile(&self, extension: &Extension) -> Result<bool, RepositoryError> {
        self.record(extension).await.map_err(unavailable)
    }

    async fn extensions(&self, of: &Tag) -> Result<Vec<Extension>, RepositoryError> {
        let query = sqlx::query(
            "SELECT biz_tag, first, last, used_at FROM issuer_extensions WHERE biz_tag = $1 ORDER BY first",
        );
        let found = query.bind(of.as_str()).fetch_all(&self.pool).await.map_err(unavailable)?;
        found.iter().map(extension).collect::<Result<_, _>>().map_err(unavailable)
    }
}

#[cfg(test)]
#[path = "../../../tests/support/postgres.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with the integration tests")]
mod server;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, Weak};

    use super::PostgresRepository;
    use super::server::Server;

    /// One server for the tests that run at the same time, with a database for each.
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

    fn shared() -> Arc<Server> {
        let mut shared = SHARED.lock().unwrap();
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Server::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    async fn fresh() -> (PostgresRepository, Arc<Server>) {
        let server = tokio::task::spawn_blocking(shared).await.unwrap();
        let url = server.new_database().await;
        (PostgresRepository::new(&url).unwrap(), server)
    }

    super::super::conformance::conformance!(fresh);
}
