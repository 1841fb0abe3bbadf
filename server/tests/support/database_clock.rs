//! A clock of PostgreSQL that a test moves: a function of the same name, which the sessions of one database find before the real one.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// Stops the clock of the database at `url` at this moment, in milliseconds since 1970, if no test has done so.
pub(super) async fn begin(url: &str, moment: i64) {
    let name = "SELECT to_regprocedure('public.clock_timestamp()') IS NOT NULL";
    let mut connection = PgConnection::connect(url).await.expect("the database runs");
    if sqlx::query_scalar(name).fetch_one(&mut connection).await.expect("told") {
        return;
    }
    let define = format!(
        "CREATE TABLE public.test_clock AS SELECT {moment}::bigint AS ms;
         CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
             AS 'SELECT pg_catalog.to_timestamp(ms / 1000.0) FROM public.test_clock';
         GRANT SELECT ON public.test_clock TO PUBLIC;
         DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END$$"
    );
    connection.execute(AssertSqlSafe(define)).await.expect("defined");
}

/// Moves it, and what `also` moves at the same moment: a server that asks for the time meanwhile waits.
pub(super) async fn pass(url: &str, time: Duration, also: impl FnOnce()) {
    let mut connection = PgConnection::connect(url).await.expect("the database runs");
    let mut tx = connection.begin().await.expect("begun");
    tx.execute("LOCK TABLE public.test_clock IN ACCESS EXCLUSIVE MODE").await.expect("locked");
    let pass = sqlx::query("UPDATE public.test_clock SET ms = ms + $1").bind(time.as_millis() as i64);
    pass.execute(&mut *tx).await.expect("passed");
    also();
    tx.commit().await.expect("passed");
}
