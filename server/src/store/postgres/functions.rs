//! The stored functions (migrations/README.md): which ones the database has, and how they are replaced. Called by
//! `schema`, under its lock and in its transaction.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

/// The error code of PostgreSQL for a function that cannot be replaced by one with other names of arguments or another result.
const CANNOT_BE_REPLACED: &str = "42P13";

/// The functions of a layout ([`PgLayout::functions`](super::layout::PgLayout::functions)).
pub(super) struct Functions(pub(super) BTreeMap<&'static str, &'static str>);

impl Functions {
    /// Whether the database has these and no others, as far as programs have noted it.
    pub(super) async fn are_there(&self, connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
        let rows =
            sqlx::raw_sql("SELECT name, sum FROM functions ORDER BY name").fetch_all(connection).await?;
        let noted = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        let noted: Vec<(String, Vec<u8>)> = noted.collect::<Result<_, sqlx::Error>>()?;
        Ok(noted == self.sums())
    }

    /// Makes all of them, each in place of the one that had its name.
    pub(super) async fn make(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        for (name, text) in &self.0 {
            let before = signatures(connection, name).await?;
            let mut point = connection.begin().await?;
            match sqlx::raw_sql(*text).execute(&mut *point).await {
                Ok(_) => point.commit().await?,
                Err(error) if !before.is_empty() && code(&error).as_deref() == Some(CANNOT_BE_REPLACED) => {
                    point.rollback().await?;
                    drop_all(connection, &before).await?;
                    sqlx::raw_sql(*text).execute(&mut *connection).await?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            // With arguments of other types it is another function.
            if signatures(connection, name).await?.len() > before.len() {
                drop_all(connection, &before).await?;
            }
        }
        Ok(())
    }

    /// Drops those that another program made and this one does not have, and notes what is there now.
    pub(super) async fn note(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let gone =
            sqlx::query_scalar("DELETE FROM functions RETURNING name").fetch_all(&mut *connection).await?;
        for name in gone.iter().filter(|name: &&String| !self.0.contains_key(name.as_str())) {
            let left = signatures(connection, name).await?;
            drop_all(connection, &left).await?;
        }
        let (names, sums): (Vec<String>, Vec<Vec<u8>>) = self.sums().into_iter().unzip();
        sqlx::query("INSERT INTO functions (name, sum) SELECT * FROM unnest($1::text[], $2::bytea[])")
            .bind(names)
            .bind(sums)
            .execute(connection)
            .await?;
        Ok(())
    }

    fn sums(&self) -> Vec<(String, Vec<u8>)> {
        self.0.iter().map(|(name, text)| ((*name).to_owned(), Sha256::digest(text).to_vec())).collect()
    }
}

/// The functions of this name where new ones are made, with the types of their arguments.
async fn signatures(connection: &mut PgConnection, name: &str) -> Result<Vec<String>, sqlx::Error> {
    let asked = "SELECT oid::regprocedure::text FROM pg_proc
        WHERE proname = $1 AND pronamespace = current_schema()::regnamespace";
    sqlx::query_scalar(asked).bind(name).fetch_all(connection).await
}

async fn drop_all(connection: &mut PgConnection, signatures: &[String]) -> Result<(), sqlx::Error> {
    for signature in signatures {
        let statement = AssertSqlSafe(format!("DROP FUNCTION {signature}"));
        sqlx::raw_sql(statement).execute(&mut *connection).await?;
    }
    Ok(())
}

fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}
