//! Ceilings in PostgreSQL: for operators that run it already and trust its replication. Owns a small pool of connections. Several processes
//! may use one schema at a time; the claims in it decide which owner may raise a section.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use super::backup::Backup;
use super::batches::batches;
use super::sql::{layout_is_new, number, stored, stored_layout};
use super::{Ceiling, Claimed, Layout, Owner, RaiseError, Ranges, SectionStore, StoreError};
use crate::ids::{Epoch, SectionId};
use crate::postgres_warnings::confirmed;

mod schema;

/// How long a statement, or the wait for a connection, may take before the call is answered with a failure.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many raises go into one transaction.
const BATCH: usize = 10_000;

/// A claim and a few raises at a time; a process needs no more.
const CONNECTIONS: u32 = 4;

/// A [`SectionStore`] in one schema of a PostgreSQL database.
///
/// A claim or release locks the table of claims against raises, and raises hold it as it is until they are committed, so
/// that after a claim no raise of an earlier owner succeeds. Commits wait for the disk whatever the server's default is.
#[derive(Debug)]
pub struct PostgresSections {
    pool: PgPool,
}

impl PostgresSections {
    /// Opens the schema in the database at `url` (`postgres://…`), making it if there is none. `schema`: a name of
    /// `[a-z0-9_]{1,40}`, one for each Set.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: a wrong name or URL, the server does not answer, or another program wrote the schema.
    pub async fn open(url: &str, schema: &str) -> Result<Self, StoreError> {
        let fits = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_';
        if schema.is_empty() || schema.len() > 40 || !schema.bytes().all(fits) {
            let wrong = format!("{schema:?} is no name of a schema: use 1 to 40 of a to z, 0 to 9 and _");
            return Err(StoreError::Unavailable(wrong));
        }
        let options: PgConnectOptions = url.parse().map_err(unavailable)?;
        let options = options.options([
            ("search_path", schema.to_owned()),
            ("synchronous_commit", "on".to_owned()),
            ("client_min_messages", "warning".to_owned()),
            ("statement_timeout", PATIENCE.as_millis().to_string()),
        ]);
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(PATIENCE);
        let pool = pool.connect_with(options).await.map_err(unavailable)?;
        schema::prepare(&pool, schema).await.map_err(unavailable)?;
        Ok(Self { pool })
    }

    /// Closes the connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

#[async_trait]
impl SectionStore for PostgresSections {
    async fn newest_epoch(&self) -> Result<Epoch, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(unavailable)?;
        Ok(schema::load(&mut connection).await.map_err(unavailable)?.newest())
    }

    async fn claim(&self, sections: &Ranges, owner: Owner, layout: Layout) -> Result<Claimed, StoreError> {
        let mut transaction = self.pool.begin().await.map_err(unavailable)?;
        schema::lock_for_claim(&mut transaction).await.map_err(unavailable)?;
        let stored = schema::layout(&mut transaction).await.map_err(unavailable)?;
        if layout_is_new(stored, layout)? {
            schema::fix_layout(&mut transaction, layout).await.map_err(unavailable)?;
        }
        let mut claims = schema::load(&mut transaction).await.map_err(unavailable)?;
        claims.accept(sections, owner)?;
        // Even if they are the same: what is read here is on a synchronous standby once this is.
        schema::store(&mut transaction, &claims).await.map_err(unavailable)?;
        let ceilings = schema::ceilings(&mut transaction, sections).await.map_err(unavailable)?;
        commit(transaction).await.map_err(unavailable)?;
        Ok(Claimed { ceilings, floor: 0, earlier: claims.earlier(sections) })
    }

    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        let mut answers = Vec::with_capacity(raises.len());
        for batch in batches(raises, BATCH) {
            match self.raise_batch(owner, batch).await {
                Ok(batch) => answers.extend(batch),
                Err(error) => answers.extend(batch.iter().map(|_| Err(error.clone()))),
            }
        }
        answers
    }

    async fn release(&self, sections: &Ranges, owner: Owner) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await.map_err(unavailable)?;
        schema::lock_for_claim(&mut transaction).await.map_err(unavailable)?;
        let mut claims = schema::load(&mut transaction).await.map_err(unavailable)?;
        if claims.release(sections, owner) {
            schema::store(&mut transaction, &claims).await.map_err(unavailable)?;
        }
        commit(transaction).await.map_err(unavailable)
    }

    async fn backup(&self) -> Result<Backup, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(unavailable)?;
        let layout = schema::layout(&mut connection).await.map_err(unavailable)?;
        let newest = schema::load(&mut connection).await.map_err(unavailable)?.newest();
        let backup =
            Backup { layout: stored_layout(layout).map_err(unavailable)?, newest, ..Backup::default() };
        // Read later: ceilings only grow.
        let all = [SectionId::new(0)..=SectionId::new(u32::MAX)];
        let mut ceilings = schema::ceilings(&mut connection, &all).await.map_err(unavailable)?;
        ceilings.sort_unstable_by_key(|one| one.section);
        Ok(backup.with(ceilings))
    }
}

impl PostgresSections {
    /// One answer for each of `raises`, no two of which are for the same section. An error is one of all.
    async fn raise_batch(
        &self,
        owner: Owner,
        raises: &[Ceiling],
    ) -> Result<Vec<Result<u64, RaiseError>>, RaiseError> {
        let nothing = |error: sqlx::Error| RaiseError::Unavailable(error.to_string());
        let mut transaction = self.pool.begin().await.map_err(nothing)?;
        schema::lock_for_raise(&mut transaction).await.map_err(nothing)?;
        let claims = schema::load(&mut transaction).await.map_err(nothing)?;
        let mut answers: Vec<_> =
            raises.iter().map(|raise| claims.check(raise.section, owner).map(|()| raise.max)).collect();
        let admitted = raises.iter().zip(&answers).filter(|(_, answer)| answer.is_ok());
        let admitted: Vec<Ceiling> = admitted.map(|(raise, _)| *raise).collect();
        if admitted.is_empty() {
            return Ok(answers);
        }
        let raised = raise_all(&mut transaction, &admitted).await.map_err(nothing)?;
        commit(transaction).await.map_err(|error| RaiseError::Unknown(error.to_string()))?;
        for (raise, answer) in raises.iter().zip(&mut answers).filter(|(_, answer)| answer.is_ok()) {
            let stored = raised.iter().find(|(section, _)| *section == raise.section.get());
            if let Some(&(_, stored)) = stored {
                *answer = Err(RaiseError::Smaller { stored });
            }
        }
        Ok(answers)
    }
}

/// A commit that a synchronous standby has, too, where there is one.
async fn commit(transaction: Transaction<'_, Postgres>) -> Result<(), sqlx::Error> {
    confirmed(transaction.commit()).await.map_err(io::Error::other)?
}

/// Raises what is not above its target yet, and answers with the sections that are, and their ceilings.
async fn raise_all(
    connection: &mut PgConnection,
    raises: &[Ceiling],
) -> Result<Vec<(u32, u64)>, sqlx::Error> {
    let sections: Vec<i64> = raises.iter().map(|raise| i64::from(raise.section.get())).collect();
    let targets = raises.iter().map(|raise| stored(raise.max)).collect::<Result<Vec<i64>, _>>()?;
    let raised: Vec<i64> = sqlx::query_scalar(
        "INSERT INTO sections SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS asked(section, ceiling) \
         ORDER BY section ON CONFLICT (section) DO UPDATE SET ceiling = excluded.ceiling \
         WHERE excluded.ceiling >= sections.ceiling RETURNING section",
    )
    .bind(&sections)
    .bind(&targets)
    .fetch_all(&mut *connection)
    .await?;
    if raised.len() == sections.len() {
        return Ok(Vec::new());
    }
    let raised: HashSet<i64> = raised.into_iter().collect();
    let above: Vec<i64> = sections.into_iter().filter(|section| !raised.contains(section)).collect();
    let rows = sqlx::query_as("SELECT section, ceiling FROM sections WHERE section = ANY($1)").bind(above);
    let rows: Vec<(i64, i64)> = rows.fetch_all(connection).await?;
    rows.into_iter().map(|(section, ceiling)| Ok((number(section)?, ceiling.cast_unsigned()))).collect()
}

fn unavailable(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(format!("PostgreSQL: {error}"))
}

#[cfg(test)]
mod tests;
