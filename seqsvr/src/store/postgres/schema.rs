//! The tables of the schema, their locks, and who owns which sections as rows of them.

use std::ops::RangeInclusive;

use sqlx::{AssertSqlSafe, PgConnection, PgPool};

use crate::ids::{Epoch, SectionId};
use crate::replica::message::Held;
use crate::store::claims::{Claims, Hands, Run};
use crate::store::{Ceiling, Layout, MAX_CEILING, Owner};

/// Stored in the schema; one with a larger version was written by a newer program.
const VERSION: i32 = 1;

/// Taken while a schema is made, so that two processes that start at once do not both make it.
const MAKING: i64 = 0x7365_7173_7672;

const TABLES: &str = "
    CREATE TABLE schema_version (one BOOLEAN PRIMARY KEY CHECK (one), version INTEGER NOT NULL);
    INSERT INTO schema_version VALUES (true, 1);
    CREATE TABLE layout (one BOOLEAN PRIMARY KEY CHECK (one), section_size BIGINT NOT NULL, step BIGINT NOT NULL);
    CREATE TABLE sections (section BIGINT PRIMARY KEY, ceiling BIGINT NOT NULL);
    CREATE TABLE hands (first BIGINT PRIMARY KEY, last BIGINT NOT NULL,
        term BIGINT NOT NULL, version BIGINT NOT NULL, incarnation BIGINT NOT NULL, released BOOLEAN NOT NULL,
        earlier_term BIGINT, earlier_version BIGINT, earlier_incarnation BIGINT, earlier_released BOOLEAN);";

type HandsRow = (i64, i64, i64, i64, i64, bool, Option<i64>, Option<i64>, Option<i64>, Option<bool>);

/// Makes the schema and its tables if they are not there; `schema` is a checked name.
pub(super) async fn prepare(pool: &PgPool, schema: &str) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(MAKING).execute(&mut *transaction).await?;
    let there: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(format!("{schema}.schema_version"))
        .fetch_one(&mut *transaction)
        .await?;
    if !there {
        let make = AssertSqlSafe(format!("CREATE SCHEMA IF NOT EXISTS {schema}; {TABLES}"));
        sqlx::raw_sql(make).execute(&mut *transaction).await?;
    }
    let stored: i32 =
        sqlx::query_scalar("SELECT version FROM schema_version").fetch_one(&mut *transaction).await?;
    if stored > VERSION {
        let newer = format!("schema {schema}: written by a newer program (version {stored}); use that one");
        return Err(sqlx::Error::Configuration(newer.into()));
    }
    transaction.commit().await
}

/// Waits for the raises under way and holds up others until the transaction ends.
pub(super) async fn lock_for_claim(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("LOCK TABLE hands IN EXCLUSIVE MODE").execute(connection).await.map(drop)
}

/// Holds up claims until the transaction ends, but no other raises.
pub(super) async fn lock_for_raise(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("LOCK TABLE hands IN SHARE MODE").execute(connection).await.map(drop)
}

pub(super) async fn layout(connection: &mut PgConnection) -> Result<Option<Layout>, sqlx::Error> {
    let row = sqlx::query_as("SELECT section_size, step FROM layout").fetch_optional(connection).await?;
    let plain = |(section_size, step): (i64, i64)| {
        Ok(Layout { section_size: number(section_size)?, step: number(step)? })
    };
    row.map(plain).transpose()
}

pub(super) async fn fix_layout(connection: &mut PgConnection, layout: Layout) -> Result<(), sqlx::Error> {
    let insert = sqlx::query("INSERT INTO layout VALUES (true, $1, $2)");
    insert
        .bind(i64::from(layout.section_size))
        .bind(i64::from(layout.step))
        .execute(connection)
        .await
        .map(drop)
}

pub(super) async fn ceilings(
    connection: &mut PgConnection,
    sections: &[RangeInclusive<SectionId>],
) -> Result<Vec<Ceiling>, sqlx::Error> {
    let mut ceilings = Vec::new();
    for range in sections {
        let rows = sqlx::query_as("SELECT section, ceiling FROM sections WHERE section BETWEEN $1 AND $2")
            .bind(i64::from(range.start().get()))
            .bind(i64::from(range.end().get()));
        let rows: Vec<(i64, i64)> = rows.fetch_all(&mut *connection).await?;
        for (section, max) in rows {
            let section = SectionId::new(number(section)?);
            ceilings.push(Ceiling { section, max: max.cast_unsigned() });
        }
    }
    Ok(ceilings)
}

/// Who owns which sections.
pub(super) async fn load(connection: &mut PgConnection) -> Result<Claims, sqlx::Error> {
    let rows = sqlx::query_as(
        "SELECT first, last, term, version, incarnation, released, \
         earlier_term, earlier_version, earlier_incarnation, earlier_released FROM hands ORDER BY first",
    );
    let rows: Vec<HandsRow> = rows.fetch_all(connection).await?;
    let run = |row: HandsRow| {
        let (first, last, term, version, incarnation, released, ..) = row;
        let earlier = match (row.6, row.7, row.8, row.9) {
            (Some(term), Some(version), Some(incarnation), Some(released)) => {
                Some(Held { owner: owner(term, version, incarnation), released })
            }
            _ => None,
        };
        let owner = Held { owner: owner(term, version, incarnation), released };
        let sections = SectionId::new(number(first)?)..=SectionId::new(number(last)?);
        Ok(Run { sections, hands: Hands { owner, earlier } })
    };
    Ok(Claims::from_runs(rows.into_iter().map(run).collect::<Result<_, sqlx::Error>>()?))
}

/// Puts `claims` in the place of what is stored.
pub(super) async fn store(connection: &mut PgConnection, claims: &Claims) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM hands").execute(&mut *connection).await?;
    for Run { sections, hands: Hands { owner, earlier } } in claims.runs() {
        sqlx::query("INSERT INTO hands VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
            .bind(i64::from(sections.start().get()))
            .bind(i64::from(sections.end().get()))
            .bind(owner.owner.epoch.term.cast_signed())
            .bind(owner.owner.epoch.version.cast_signed())
            .bind(owner.owner.incarnation.cast_signed())
            .bind(owner.released)
            .bind(earlier.map(|held| held.owner.epoch.term.cast_signed()))
            .bind(earlier.map(|held| held.owner.epoch.version.cast_signed()))
            .bind(earlier.map(|held| held.owner.incarnation.cast_signed()))
            .bind(earlier.map(|held| held.released))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// A ceiling as PostgreSQL keeps it.
pub(super) fn stored(ceiling: u64) -> Result<i64, sqlx::Error> {
    let too_large =
        |_| sqlx::Error::Encode(format!("{ceiling} is above {MAX_CEILING}, the largest ceiling").into());
    i64::try_from(ceiling).map_err(too_large)
}

/// A section, or one of the settings, from a column that is wide enough for it.
pub(super) fn number(column: i64) -> Result<u32, sqlx::Error> {
    u32::try_from(column).map_err(|_| sqlx::Error::Decode(format!("{column} is out of range").into()))
}

fn owner(term: i64, version: i64, incarnation: i64) -> Owner {
    let epoch = Epoch { term: term.cast_unsigned(), version: version.cast_unsigned() };
    Owner { epoch, incarnation: incarnation.cast_unsigned() }
}
