//! The tables of the file, what they looked like before, and who owns which sections as rows of them.

use sqlx::{Connection, SqliteConnection};

use crate::ids::SectionId;
use crate::store::claims::Claims;
use crate::store::sql::{self, HandsRow};

/// Stored in the file (`user_version`); a file with a larger one was written by a newer program.
const VERSION: i64 = 2;

/// Version 1. A program that knows only this one refuses a file of a later one.
const FIRST: &str = "
    CREATE TABLE layout (one INTEGER PRIMARY KEY CHECK (one = 1),
        section_size INTEGER NOT NULL, step INTEGER NOT NULL);
    CREATE TABLE floor (one INTEGER PRIMARY KEY CHECK (one = 1), ceiling INTEGER NOT NULL);
    INSERT INTO floor VALUES (1, 0);
    CREATE TABLE sections (section INTEGER PRIMARY KEY, ceiling INTEGER NOT NULL);
    CREATE TABLE claims (first INTEGER NOT NULL, last INTEGER NOT NULL,
        term INTEGER NOT NULL, version INTEGER NOT NULL, incarnation INTEGER NOT NULL);";

/// Version 2: runs of sections in the same hands, in place of the claims as they were made.
const SECOND: &str = "
    CREATE TABLE hands (first INTEGER PRIMARY KEY, last INTEGER NOT NULL,
        term INTEGER NOT NULL, version INTEGER NOT NULL, incarnation INTEGER NOT NULL, released INTEGER NOT NULL,
        earlier_term INTEGER, earlier_version INTEGER, earlier_incarnation INTEGER, earlier_released INTEGER);";

/// Makes the tables, or brings those of an earlier program up to date; all or nothing.
pub(super) async fn prepare(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let stored: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await?;
    sql::known_version("it", stored, VERSION)?;
    if stored == VERSION {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    if stored < 1 {
        sqlx::raw_sql(FIRST).execute(&mut *transaction).await?;
    }
    sqlx::raw_sql(SECOND).execute(&mut *transaction).await?;
    let claims = load_first(&mut transaction).await?;
    store(&mut transaction, &claims).await?;
    sqlx::raw_sql("DROP TABLE claims; PRAGMA user_version = 2;").execute(&mut *transaction).await?;
    transaction.commit().await
}

/// Who owns which sections.
pub(super) async fn load(connection: &mut SqliteConnection) -> Result<Claims, sqlx::Error> {
    let rows: Vec<HandsRow> =
        sqlx::query_as("SELECT * FROM hands ORDER BY first").fetch_all(connection).await?;
    sql::claims(rows)
}

/// Puts `claims` in the place of what is stored.
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

/// The claims as version 1 kept them: overlapping, the highest epoch deciding.
async fn load_first(connection: &mut SqliteConnection) -> Result<Claims, sqlx::Error> {
    let rows = sqlx::query_as("SELECT first, last, term, version, incarnation FROM claims");
    let rows: Vec<(u32, u32, i64, i64, i64)> = rows.fetch_all(connection).await?;
    let made = |(first, last, term, version, incarnation): (u32, u32, i64, i64, i64)| {
        (SectionId::new(first)..=SectionId::new(last), sql::owner(term, version, incarnation))
    };
    let mut made: Vec<_> = rows.into_iter().map(made).collect();
    made.sort_by_key(|(_, owner)| owner.epoch);
    let mut claims = Claims::default();
    for (sections, owner) in made {
        let twice =
            |error| sqlx::Error::Decode(format!("the stored claims contradict each other: {error}").into());
        claims.accept(&[sections], owner).map_err(twice)?;
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::message::Earlier;
    use crate::store::sql::owner;
    use crate::store::sqlite::SqliteSections;
    use crate::store::{Ceiling, Layout, SectionStore};

    #[tokio::test]
    async fn a_file_of_the_first_version_keeps_its_ceilings_and_claims() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sections.db");
        let url = format!("sqlite:{}?mode=rwc", path.display());
        let mut raw = SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(FIRST).execute(&mut raw).await.unwrap();
        let rows = "INSERT INTO layout VALUES (1, 100000, 10000); INSERT INTO sections VALUES (4, 70000);
            UPDATE floor SET ceiling = 500;
            INSERT INTO claims VALUES (5, 9, 0, 2, -1), (0, 9, 0, 1, 7); PRAGMA user_version = 1;";
        sqlx::raw_sql(rows).execute(&mut raw).await.unwrap();
        raw.close().await.unwrap();

        let store = SqliteSections::open(&path).await.unwrap();
        let (first, second, third) = (owner(0, 1, 7), owner(0, 2, -1), owner(0, 3, 8));
        assert_eq!(store.newest_epoch().await.unwrap(), second.epoch);
        let section = |section, max| Ceiling { section: SectionId::new(section), max };
        assert_eq!(store.raise(second, &[section(9, 600)]).await, [Ok(600)]);
        assert_eq!(store.raise(first, &[section(0, 600)]).await, [Ok(600)]);
        assert!(store.raise(first, &[section(9, 700)]).await[0].is_err());
        let layout = Layout { section_size: 100_000, step: 10_000 };
        let all = [SectionId::new(0)..=SectionId::new(9)];
        let claimed = store.claim(&all, third, layout).await.unwrap();
        assert_eq!(claimed.floor, 500);
        assert_eq!(claimed.ceilings, [section(0, 600), section(4, 70_000), section(9, 600)]);
        let held = |first, last, owner| Earlier {
            sections: SectionId::new(first)..=SectionId::new(last),
            owner,
            released: false,
        };
        assert_eq!(claimed.earlier, [held(0, 4, first), held(5, 9, second)]);
    }
}
