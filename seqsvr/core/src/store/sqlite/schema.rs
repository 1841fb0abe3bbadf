//! The tables of the file, and the owners of sections as rows of them.

use sqlx::{Connection, SqliteConnection};

use crate::store::claims::Claims;
use crate::store::sql::{self, HandsRow};

/// Stored in the file (`user_version`); 0 is a new file.
const VERSION: i64 = 1;

const TABLES: &str = "
    CREATE TABLE layout (one INTEGER PRIMARY KEY CHECK (one = 1),
        section_size INTEGER NOT NULL, step INTEGER NOT NULL);
    CREATE TABLE floor (one INTEGER PRIMARY KEY CHECK (one = 1), ceiling INTEGER NOT NULL);
    INSERT INTO floor VALUES (1, 0);
    CREATE TABLE sections (section INTEGER PRIMARY KEY, ceiling INTEGER NOT NULL);
    CREATE TABLE hands (first INTEGER PRIMARY KEY, last INTEGER NOT NULL,
        term INTEGER NOT NULL, version INTEGER NOT NULL, incarnation INTEGER NOT NULL, released INTEGER NOT NULL,
        earlier_term INTEGER, earlier_version INTEGER, earlier_incarnation INTEGER, earlier_released INTEGER);
    PRAGMA user_version = 1;";

/// Makes the tables in a new file; all or nothing.
pub(super) async fn prepare(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let stored: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await?;
    if stored != 0 {
        return sql::known_version("it", stored, VERSION);
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::raw_sql(TABLES).execute(&mut *transaction).await?;
    transaction.commit().await
}

/// The stored claims: the owners of sections.
pub(super) async fn load(connection: &mut SqliteConnection) -> Result<Claims, sqlx::Error> {
    let rows: Vec<HandsRow> =
        sqlx::query_as("SELECT * FROM hands ORDER BY first").fetch_all(connection).await?;
    sql::claims(rows)
}

/// Puts `claims` in the place of the stored ones.
pub(super) async fn store(connection: &mut SqliteConnection, claims: &Claims) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM hands").execute(&mut *connection).await?;
    for row in claims.runs().iter().map(sql::row) {
        sqlx::query("INSERT INTO hands VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")
            .bind(row.0)
            .bind(row.1)
            .bind(row.2)
            .bind(row.3)
            .bind(row.4)
            .bind(row.5)
            .bind(row.6)
            .bind(row.7)
            .bind(row.8)
            .bind(row.9)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
