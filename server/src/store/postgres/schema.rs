//! A start gives a database the migrations that it lacks, and the stored functions of this program. Servers that start
//! together do it once.
//!
//! A newer program first *expands*: it adds tables and columns that an older program does not need to know. The older
//! one serves on. A migration with which it would go wrong raises `oldest_program` in `meta`, and it is refused here.

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{Connection as _, PgConnection, Row as _};
use tracing::warn;

use super::functions::Functions;
use super::layout::{self, Layout};
use super::setback::MOST_CONFLICTS;
use super::{PgOpenError, PgRefusal, rights};
use crate::store::migrations::PostgresSchema;

/// The number of the lock under which the database is changed; the program's own.
const LOCK: i64 = 7_316_201;

/// How a database does not fit this program.
#[derive(Debug)]
pub(super) enum Unfit {
    /// A program must know the first migration; this one knows those up to the second.
    Newer(i64, i64),
    /// A build before 0.1.0 made it.
    Earlier,
    /// The role may not make what is missing.
    Refused(PgRefusal),
    /// A migration or a function failed.
    Migration(MigrateError),
    /// It cannot be read.
    Unreadable(sqlx::Error),
}

impl Unfit {
    pub(super) fn at(self, place: &str) -> PgOpenError {
        let place = place.to_owned();
        match self {
            Unfit::Newer(oldest, known) => PgOpenError::Newer { place, oldest, known },
            Unfit::Earlier => PgOpenError::Earlier { place },
            Unfit::Refused(refusal) => PgOpenError::Refused { place, refusal },
            Unfit::Migration(source) => PgOpenError::Migration { place, source },
            Unfit::Unreadable(source) => PgOpenError::Unreadable { place, source: source.into() },
        }
    }

    /// Whether a migration waited for a server that waited for it, since both change several tables. Nothing of it was applied.
    fn is_deadlock(&self) -> bool {
        let Unfit::Migration(MigrateError::ExecuteMigration(error, _) | MigrateError::Execute(error)) = self
        else {
            return false;
        };
        error.as_database_error().and_then(|error| error.code()).as_deref() == Some("40P01")
    }
}

impl From<sqlx::Error> for Unfit {
    fn from(error: sqlx::Error) -> Unfit {
        Unfit::Unreadable(error)
    }
}

/// The parts that a database lacks.
struct Lacks {
    migrations: bool,
    /// The functions, if it has others.
    functions: Option<Functions>,
}

/// Makes what the database lacks of `program`. Servers that start together take turns: the lock goes with the transaction, so a
/// pooler that hands out another session for the next one does no harm. A database that lacks nothing is not written to, so that a
/// role without the right to change tables is enough to serve.
pub(super) async fn migrate(connection: &mut PgConnection, program: &PostgresSchema) -> Result<(), Unfit> {
    if let Lacks { migrations: false, functions: None } = lacks(connection, program).await? {
        return Ok(());
    }
    rights::may_change(connection).await?.map_err(Unfit::Refused)?;
    for _ in 0..MOST_CONFLICTS {
        match apply(connection, program).await {
            Err(unfit) if unfit.is_deadlock() => {
                warn!("the writes of a server blocked the migrations; starting them again")
            }
            done => return done,
        }
    }
    apply(connection, program).await
}

/// Makes it in one transaction.
async fn apply(connection: &mut PgConnection, program: &PostgresSchema) -> Result<(), Unfit> {
    let mut tx = connection.begin().await?;
    // As long as it takes.
    sqlx::raw_sql("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").execute(&mut *tx).await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *tx).await?;
    // The program that had the lock before may have made it, or be a newer one.
    let Lacks { migrations, functions } = lacks(&mut tx, program).await?;
    let failed = |error| Unfit::Migration(MigrateError::Execute(error));
    // Before the migrations, which may use them. Those that go, go after the migrations, which may use them no longer.
    if let Some(functions) = &functions {
        functions.make(&mut tx).await.map_err(failed)?;
    }
    if migrations {
        let mut migrator = Migrator::with_migrations(program.migrations.iter().cloned().collect());
        migrator.set_locking(false).set_ignore_missing(true);
        migrator.run_direct(None, &mut *tx, false).await.map_err(Unfit::Migration)?;
    }
    if let Some(functions) = &functions {
        functions.note(&mut tx).await.map_err(failed)?;
    }
    tx.commit().await?;
    Ok(())
}

/// Whether the database admits a program that knows these migrations.
pub(super) async fn check(connection: &mut PgConnection, program: &PostgresSchema) -> Result<(), Unfit> {
    if !is_there(connection, "meta").await? {
        return Ok(());
    }
    let asked = sqlx::raw_sql("SELECT value FROM meta WHERE key = 'oldest_program'");
    let oldest = asked.fetch_optional(&mut *connection).await?;
    let oldest = oldest.map(|row| row.try_get::<String, _>(0)).transpose()?;
    let oldest = oldest.map_or(Ok(0), |text| text.parse::<i64>());
    let oldest = oldest.map_err(|why| Unfit::Unreadable(sqlx::Error::Decode(why.into())))?;
    let newest = newest(program);
    if oldest > newest { Err(Unfit::Newer(oldest, newest)) } else { Ok(()) }
}

/// Whether a program has ever applied its migrations.
pub(super) async fn is_used(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    is_there(connection, "_sqlx_migrations").await
}

/// Whether the database lacks no migration of `program`, and admits it.
pub(super) async fn is_current(
    connection: &mut PgConnection,
    program: &PostgresSchema,
) -> Result<bool, Unfit> {
    Ok(!lacks(connection, program).await?.migrations)
}

async fn lacks(connection: &mut PgConnection, program: &PostgresSchema) -> Result<Lacks, Unfit> {
    let applied = applied(connection).await?;
    let mut migrations = false;
    for migration in program.migrations.iter() {
        match applied.iter().find(|(version, _)| *version == migration.version) {
            None => migrations = true,
            Some((_, checksum)) if *checksum != *migration.checksum => return Err(Unfit::Earlier),
            Some(_) => {}
        }
    }
    check(connection, program).await?;
    // The functions of a newer program serve this one, too; the other way round they need not.
    if applied.iter().any(|(version, _)| *version > newest(program)) {
        return Ok(Lacks { migrations, functions: None });
    }
    let has_base = is_there(connection, "functions").await?;
    let layout = if has_base { layout::read(connection).await? } else { Layout::Plain };
    let functions = Functions(layout.functions(program));
    let are_there = has_base && functions.are_there(connection).await?;
    Ok(Lacks { migrations, functions: (!are_there).then_some(functions) })
}

/// The migrations that were applied, and their checksums.
async fn applied(connection: &mut PgConnection) -> Result<Vec<(i64, Vec<u8>)>, sqlx::Error> {
    if !is_used(connection).await? {
        return Ok(Vec::new());
    }
    let asked = sqlx::raw_sql("SELECT version, checksum FROM _sqlx_migrations WHERE success");
    asked.fetch_all(connection).await?.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

fn newest(program: &PostgresSchema) -> i64 {
    program.migrations.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// Nothing that only looks prepares a statement, which a pooler could lose.
async fn is_there(connection: &mut PgConnection, table: &'static str) -> Result<bool, sqlx::Error> {
    let asked = sqlx::AssertSqlSafe(format!("SELECT to_regclass('{table}') IS NOT NULL"));
    sqlx::raw_sql(asked).fetch_one(connection).await?.try_get(0)
}

#[cfg(test)]
mod tests {
    use sqlx::migrate::{Migration, MigrationType};
    use sqlx::{Executor as _, SqlSafeStr as _};
    use tidemark_test_support::servers::postgres::durable_database;
    use tidemark_test_support::until::until;

    use super::*;
    use crate::store::migrations::POSTGRES;

    /// Servers write to several tables in a transaction, in an order of their own.
    #[tokio::test]
    async fn migrations_that_a_server_gets_in_the_way_of_begin_anew() {
        let url = durable_database().await;
        let connect = async || PgConnection::connect(&url).await.expect("connected");
        let (mut migrating, mut writing, mut watching) = (connect().await, connect().await, connect().await);
        writing.execute("CREATE TABLE one (n int); CREATE TABLE two (n int)").await.expect("made");
        migrate(&mut migrating, &POSTGRES).await.expect("made");
        // The migration is the one that PostgreSQL ends, since the other one does not look for a deadlock that early.
        writing
            .execute("BEGIN; SET LOCAL deadlock_timeout = '60s'; INSERT INTO two VALUES (1)")
            .await
            .expect("begun");
        let sql = "ALTER TABLE one ADD COLUMN added int; ALTER TABLE two ADD COLUMN added int";
        let columns =
            Migration::new(9_000, "columns".into(), MigrationType::Simple, sql.into_sql_str(), false);
        let migrations = POSTGRES.migrations.iter().cloned().chain([columns]).collect();
        let migrations = Migrator::with_migrations(migrations);
        let program = PostgresSchema { migrations, functions: POSTGRES.functions.clone() };
        let applied = tokio::spawn(async move { migrate(&mut migrating, &program).await });
        until("the migration waits for the other", async || {
            let waiting =
                "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'two'::regclass AND NOT granted)";
            sqlx::query_scalar(waiting).fetch_one(&mut watching).await.expect("looked")
        })
        .await;
        writing.execute("INSERT INTO one VALUES (1)").await.expect("the migration gave way");
        writing.execute("COMMIT").await.expect("committed");
        applied.await.expect("no panic").expect("applied");
        watching.execute("SELECT one.added, two.added FROM one, two").await.expect("both columns are there");
    }
}
