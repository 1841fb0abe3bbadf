//! The tables of the schema, their locks, and the owners of sections as rows of them.

use std::ops::RangeInclusive;

use sqlx::{AssertSqlSafe, PgConnection, PgPool};

use crate::ids::SectionId;
use crate::store::claims::Claims;
use crate::store::sql::{self, HandsRow};
use crate::store::{Ceiling, Layout, Ranges};

/// Stored in the schema.
const VERSION: i64 = 1;

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
    sql::known_version(&format!("schema {schema}"), stored.into(), VERSION)?;
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

pub(super) async fn layout(connection: &mut PgConnection) -> Result<Option<(i64, i64)>, sqlx::Error> {
    sqlx::query_as("SELECT section_size, step FROM layout").fetch_optional(connection).await
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

/// The stored ceilings of the sections in `ranges`, in one answer and one row: rows cost more than what is in them.
pub(super) async fn ceilings(
    connection: &mut PgConnection,
    ranges: &Ranges,
) -> Result<Vec<Ceiling>, sqlx::Error> {
    let bounds = |end: fn(&RangeInclusive<SectionId>) -> &SectionId| {
        ranges.iter().map(|range| i64::from(end(range).get())).collect::<Vec<i64>>()
    };
    let packed = sqlx::query_as(
        "SELECT array_agg(section), array_agg(ceiling) FROM unnest($1::bigint[], $2::bigint[]) AS claimed(first, last) \
         JOIN sections ON section BETWEEN first AND last",
    );
    let packed = packed.bind(bounds(RangeInclusive::start)).bind(bounds(RangeInclusive::end));
    let (sections, ceilings): (Option<Vec<i64>>, Option<Vec<i64>>) = packed.fetch_one(connection).await?;
    let ceiling = |(section, max): (i64, i64)| {
        Ok(Ceiling { section: SectionId::new(sql::number(section)?), max: max.cast_unsigned() })
    };
    sections.unwrap_or_default().into_iter().zip(ceilings.unwrap_or_default()).map(ceiling).collect()
}

/// The stored claims: the owners of sections.
pub(super) async fn load(connection: &mut PgConnection) -> Result<Claims, sqlx::Error> {
    let rows = sqlx::query_as(
        "SELECT first, last, term, version, incarnation, released, \
         earlier_term, earlier_version, earlier_incarnation, earlier_released FROM hands ORDER BY first",
    );
    let rows: Vec<HandsRow> = rows.fetch_all(connection).await?;
    sql::claims(rows)
}

/// Puts `claims` in the place of the stored ones, in two statements however many runs there are.
pub(super) async fn store(connection: &mut PgConnection, claims: &Claims) -> Result<(), sqlx::Error> {
    let rows: Vec<HandsRow> = claims.runs().iter().map(sql::row).collect();
    sqlx::query("DELETE FROM hands").execute(&mut *connection).await?;
    let insert = sqlx::query(
        "INSERT INTO hands SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], \
         $6::boolean[], $7::bigint[], $8::bigint[], $9::bigint[], $10::boolean[])",
    );
    insert
        .bind(column(&rows, |row| row.0))
        .bind(column(&rows, |row| row.1))
        .bind(column(&rows, |row| row.2))
        .bind(column(&rows, |row| row.3))
        .bind(column(&rows, |row| row.4))
        .bind(column(&rows, |row| row.5))
        .bind(column(&rows, |row| row.6))
        .bind(column(&rows, |row| row.7))
        .bind(column(&rows, |row| row.8))
        .bind(column(&rows, |row| row.9))
        .execute(connection)
        .await
        .map(drop)
}

fn column<T>(rows: &[HandsRow], of: fn(&HandsRow) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}
