//! A start gives a database migrations once, functions whenever their texts are others, and nothing where nothing is
//! missing.

use futures_util::future::join_all;
use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::*;
use crate::store::migrations::{POSTGRES, PostgresSchema};

/// This program, with other functions and one more migration.
struct Program {
    functions: Vec<(&'static str, &'static str)>,
    later: Option<&'static str>,
}

impl Program {
    /// This one.
    fn this() -> Program {
        Program { functions: POSTGRES.functions.clone(), later: None }
    }

    /// The same with a function of this name: another text, or one more.
    fn with(mut self, name: &'static str, text: &'static str) -> Program {
        self.functions.retain(|(known, _)| *known != name);
        self.functions.push((name, text));
        self
    }

    /// One that has this migration, too.
    fn and_later(self, sql: &'static str) -> Program {
        Program { later: Some(sql), ..self }
    }

    async fn open(self, url: &str) -> Result<Arc<PgDb>, PgOpenError> {
        let mut migrations: Vec<Migration> = POSTGRES.migrations.iter().cloned().collect();
        let later = |sql: &'static str| {
            Migration::new(9_000, "later".into(), MigrationType::Simple, sql.into_sql_str(), false)
        };
        migrations.extend(self.later.map(later));
        let migrations = Migrator::with_migrations(migrations);
        let program = Box::leak(Box::new(PostgresSchema { migrations, functions: self.functions }));
        PgDb::open_as(program, url, &PgOptions::default()).await
    }

    async fn starts(self, url: &str) {
        self.open(url).await.expect("opened").close().await;
    }
}

/// The answer to a question, as text.
async fn asked(url: &str, sql: &'static str) -> String {
    let mut connection = PgConnection::connect(url).await.expect("connected");
    let answer: Option<String> = sqlx::query_scalar(sql).fetch_one(&mut connection).await.expect("asked");
    answer.unwrap_or_default()
}

#[tokio::test]
async fn servers_that_start_together_migrate_once() {
    let url = durable_database().await;
    let opening = (0..6)
        .map(|_| Program::this().and_later("SELECT pg_sleep(0.2); CREATE TABLE later (n int)").open(&url));
    for opened in join_all(opening).await {
        opened.expect("opened").close().await;
    }
    Program::this().starts(&url).await;
    let known = POSTGRES.migrations.iter().count() + 1;
    assert_eq!(asked(&url, "SELECT count(*)::text FROM _sqlx_migrations").await, known.to_string());
}

#[tokio::test]
async fn an_older_program_serves_on_until_a_migration_says_no() {
    let url = durable_database().await;
    let before = opened(&url).await;
    Program::this().and_later("ALTER TABLE accounts ADD COLUMN picture text").starts(&url).await;
    let reopened = opened(&url).await;
    reopened.reader().await.expect("an older program reads");

    run(&url, "UPDATE meta SET value = '9000' WHERE key = 'oldest_program'").await;
    let newest = POSTGRES.migrations.iter().map(|known| known.version).max().expect("some");
    let why = refused(&url).await;
    assert!(why.contains(&format!("knows migration 9000, and this one knows those up to {newest}")), "{why}");
    Program::this().and_later("ALTER TABLE accounts ADD COLUMN picture text").starts(&url).await;
    // One that runs already ends with its next connection.
    let said = before.for_queues().await.expect_err("refused");
    assert!(matches!(&said, StoreError::Unavailable(why) if why.contains("migration 9000")), "{said}");
}

#[tokio::test]
async fn an_export_migrates_nothing() {
    let url = durable_database().await;
    let take = async || PgExportSnapshot::take(&url, &PgOptions::default()).await;
    let why = take().await.err().expect("refused").to_string();
    assert!(why.contains("has no tables of Tidemark"), "{why}");
    Program::this().starts(&url).await;
    run(&url, "DELETE FROM _sqlx_migrations").await;
    let why = take().await.err().expect("refused").to_string();
    assert!(why.contains("is of an earlier version; run `tidemark migrate` first"), "{why}");
}

#[tokio::test]
async fn a_database_of_a_build_before_the_first_version_is_refused() {
    let url = durable_database().await;
    Program::this().starts(&url).await;
    // As such a build left it: another migration 1, later ones, a need for itself, and no sums of functions.
    run(
        &url,
        "UPDATE _sqlx_migrations SET checksum = 'x' WHERE version = 1; DROP TABLE functions;
         INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (80, 'places', true, 'y', 1);
         UPDATE meta SET value = '78' WHERE key = 'oldest_program'",
    )
    .await;
    let export = PgExportSnapshot::take(&url, &PgOptions::default()).await.err().expect("refused");
    for why in [refused(&url).await, export.to_string()] {
        assert!(why.contains("was made by another build before 0.1.0; export it with that program"), "{why}");
        assert!(why.contains("import it into an empty database with this one"), "{why}");
    }
}

#[tokio::test]
async fn a_start_that_lacks_nothing_writes_nothing() {
    let url = durable_database().await;
    Program::this().starts(&url).await;
    // The transactions that wrote the functions and their sums.
    const WRITTEN: &str = "SELECT string_agg(name || ' ' || xmin, ',' ORDER BY name) FROM (
         SELECT proname::text, xmin FROM pg_proc WHERE pronamespace = 'public'::regnamespace
         UNION ALL SELECT 'sum of ' || name, xmin FROM functions
         UNION ALL SELECT 'migration ' || version, xmin FROM _sqlx_migrations) AS written (name, xmin)";
    let before = asked(&url, WRITTEN).await;
    assert!(before.contains("commit_messages") && before.contains("sum of commit_rows"), "{before}");
    Program::this().starts(&url).await;
    assert_eq!(asked(&url, WRITTEN).await, before);
}

#[tokio::test]
async fn each_file_makes_the_function_of_its_name_and_nothing_else() {
    let url = durable_database().await;
    Program::this().starts(&url).await;
    const MADE: &str = "SELECT string_agg(proname, ',' ORDER BY proname) FROM pg_proc WHERE pronamespace = 'public'::regnamespace";
    let mut names: Vec<&str> = POSTGRES.functions.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(asked(&url, MADE).await, names.join(","));
}

#[tokio::test]
async fn functions_are_replaced_as_a_whole_where_a_text_is_another_one() {
    let url = durable_database().await;
    let told = async || asked(&url, "SELECT told(1)::text").await;
    let with = |text| Program::this().with("told", text);
    with("CREATE OR REPLACE FUNCTION told(n int) RETURNS int LANGUAGE sql AS 'SELECT n'").starts(&url).await;
    assert_eq!(told().await, "1");
    run(&url, "CREATE ROLE may_call; REVOKE EXECUTE ON FUNCTION told FROM PUBLIC; GRANT EXECUTE ON FUNCTION told TO may_call").await;
    with("CREATE OR REPLACE FUNCTION told(n int) RETURNS int LANGUAGE sql AS 'SELECT n + 1'")
        .starts(&url)
        .await;
    assert_eq!(told().await, "2");
    let may_call =
        asked(&url, "SELECT has_function_privilege('may_call', 'told(int)', 'EXECUTE')::text").await;
    assert_eq!(may_call, "true", "what was granted stays");

    // PostgreSQL replaces none of these: another name of an argument, another result, another type of an argument.
    for (text, answer) in [
        ("CREATE OR REPLACE FUNCTION told(m int) RETURNS int LANGUAGE sql AS 'SELECT m + 2'", "3"),
        ("CREATE OR REPLACE FUNCTION told(m int) RETURNS text LANGUAGE sql AS $$SELECT 'four'$$", "four"),
        ("CREATE OR REPLACE FUNCTION told(m bigint) RETURNS text LANGUAGE sql AS $$SELECT 'five'$$", "five"),
    ] {
        with(text).starts(&url).await;
        assert_eq!(told().await, answer);
    }
    run(&url, "DROP OWNED BY may_call; DROP ROLE may_call").await;

    // One that a program has no more goes; others' functions stay.
    run(&url, "CREATE FUNCTION of_the_operator() RETURNS int LANGUAGE sql AS 'SELECT 1'").await;
    Program::this().starts(&url).await;
    let left = "SELECT concat(to_regproc('told') IS NULL, to_regproc('of_the_operator') IS NULL)";
    assert_eq!(asked(&url, left).await, "tf");
}

#[tokio::test]
async fn a_function_that_cannot_be_made_leaves_all_as_it_was() {
    let url = durable_database().await;
    Program::this().starts(&url).await;
    let noted = "SELECT string_agg(name || encode(sum, 'hex'), ',' ORDER BY name) FROM functions";
    let before = asked(&url, noted).await;
    let broken = Program::this()
        .with("stop_commit", "CREATE OR REPLACE FUNCTION stop_commit(code text, what text, which bigint[]) RETURNS void LANGUAGE plpgsql AS 'BEGIN END'")
        .with("told", "CREATE FUNCTION told() RETURNS nothing LANGUAGE sql AS ''");
    let why = broken.open(&url).await.err().expect("refused").to_string();
    assert!(why.contains("cannot be migrated") && why.contains("nothing"), "{why}");
    assert_eq!(asked(&url, noted).await, before);
    let text = asked(&url, "SELECT prosrc FROM pg_proc WHERE proname = 'stop_commit'").await;
    assert!(text.contains("RAISE EXCEPTION"), "{text}");
}

/// Two versions over one database: the functions are those of the newer one, whichever starts last.
#[tokio::test]
async fn an_older_program_does_not_put_its_functions_back() {
    let url = durable_database().await;
    let newer = || {
        let text = "CREATE OR REPLACE FUNCTION told() RETURNS int LANGUAGE sql AS 'SELECT 2'";
        Program::this().with("told", text).and_later("-- The functions are others.")
    };
    let older = || {
        let text = "CREATE OR REPLACE FUNCTION told() RETURNS int LANGUAGE sql AS 'SELECT 1'";
        Program::this().with("told", text)
    };
    older().starts(&url).await;
    assert_eq!(asked(&url, "SELECT told()::text").await, "1");
    for _ in 0..2 {
        newer().starts(&url).await;
        older().starts(&url).await;
        assert_eq!(asked(&url, "SELECT told()::text").await, "2");
    }
}
