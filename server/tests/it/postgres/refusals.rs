//! Databases that the program refuses at its start: each with one line that says what is wrong, with what, and what to do, and nothing
//! made in them.

use std::process::Stdio;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tidemark_test_support::servers::postgres::{Server, durable_database};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{ChildStderr, Command};
use tokio::time::timeout;

use super::servers::run;
use crate::support::PATIENCE;

/// Tries to serve from `url`, with these settings beside it, and answers the last line that the program says.
pub(crate) async fn refused_with(url: &str, settings: &[(&str, &str)]) -> String {
    let place = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(&place).kill_on_drop(true);
    command.env("TIDEMARK_DATABASE_URL", url).envs(settings.iter().copied());
    let ended = timeout(PATIENCE, command.output()).await.expect("refused in time").expect("runs");
    let said = String::from_utf8(ended.stderr).expect("text");
    assert!(matches!(ended.status.code(), Some(1 | 2)), "{said}");
    assert_eq!(ended.stdout, b"", "it does not listen");
    assert_eq!(place.path().read_dir().expect("readable").count(), 0, "nothing lies there");
    let last = said.lines().last().expect("a line").to_owned();
    assert!(!last.contains("s3cret"), "{last}");
    last
}

pub(crate) async fn refused(url: &str) -> String {
    refused_with(url, &[]).await
}

/// The program serves from `url`, and is then killed.
pub(crate) async fn served(url: &str) {
    served_with(url, &[]).await;
}

/// The same with these settings beside it.
pub(crate) async fn served_with(url: &str, settings: &[(&str, &str)]) {
    let place = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(&place).kill_on_drop(true);
    command
        .env("TIDEMARK_DATABASE_URL", url)
        .envs(settings.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut serving = command.spawn().expect("runs");
    let mut first = [0];
    let out = serving.stdout.as_mut().expect("piped");
    timeout(PATIENCE, out.read_exact(&mut first)).await.expect("in time").expect("listens");
}

/// Runs statements as the owner of all databases.
pub(crate) async fn as_owner(url: &str, sql: &str) {
    let mut connection = PgConnection::connect(url).await.expect("connected");
    connection.execute(AssertSqlSafe(sql.to_owned())).await.expect(sql);
}

/// How many tables are in the database.
pub(crate) async fn tables(url: &str) -> i64 {
    let mut connection = PgConnection::connect(url).await.expect("connected");
    let count = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    sqlx::query_scalar(count).fetch_one(&mut connection).await.expect("counted")
}

/// The same database as another role.
pub(crate) fn as_role(url: &str, role: &str) -> String {
    url.replace("postgres@localhost", &format!("{role}@localhost"))
}

/// Runs `ALTER DATABASE … SET` on it.
async fn set(url: &str, setting: &str) {
    let name = url.split(['/', '?']).nth(3).expect("the name of a database");
    as_owner(url, &format!("ALTER DATABASE {name} SET {setting}")).await;
}

fn says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
}

#[tokio::test]
async fn another_encoding_is_refused() {
    let server = Server::start_with("-c fsync=on");
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let url = server.new_database_with(&format!("ENCODING '{encoding}' TEMPLATE template0")).await;
        let said = refused(&url).await;
        says(
            &said,
            &["PostgreSQL at ", &format!("its encoding is {encoding}; make a database with ENCODING 'UTF8'")],
        );
        assert_eq!(tables(&url).await, 0);
    }
}

#[tokio::test]
async fn a_database_that_only_reads_is_refused() {
    let url = durable_database().await;
    set(&url, "default_transaction_read_only = on").await;
    says(&refused(&url).await, &["its transactions are read-only; set default_transaction_read_only to off"]);
    assert_eq!(tables(&url).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_and_one_that_does_not_sync_are_refused() {
    let primary = Server::start_with("-c fsync=on");
    let url = primary.new_database().await;
    let standby = primary.standby("-c fsync=on");
    standby.run();
    let at_standby =
        url.replace(&primary.folder().display().to_string(), &standby.folder().display().to_string());
    says(
        &refused(&at_standby).await,
        &["it is a standby, which cannot be written to; name the primary in the URL"],
    );
    assert_eq!(tables(&url).await, 0);

    let careless = Server::start_with("-c fsync=off");
    let url = careless.new_database().await;
    says(&refused(&url).await, &["its fsync is off, so a power cut would destroy it; set fsync to on"]);
    assert_eq!(tables(&url).await, 0);
}

/// The server asks for `on` in each session, so what the database says by itself does not matter.
#[tokio::test]
async fn synchronous_commit_of_the_database_is_overruled() {
    let url = durable_database().await;
    for weak in ["off", "local"] {
        set(&url, &format!("synchronous_commit = {weak}")).await;
        served(&url).await;
        served(&format!("{url}&options=-c%20synchronous_commit%3D{weak}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_a_newer_program_needs_ends_a_server_and_is_refused() {
    let url = durable_database().await;
    let place = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(&place).kill_on_drop(true);
    command.env("TIDEMARK_DATABASE_URL", &url).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut serving = command.spawn().expect("runs");
    let mut first = [0];
    let out = serving.stdout.as_mut().expect("piped");
    timeout(PATIENCE, out.read_exact(&mut first)).await.expect("in time").expect("listens");
    as_owner(&url, "UPDATE meta SET value = '9001' WHERE key = 'oldest_program'").await;
    // It looks every ten seconds.
    let ended = timeout(PATIENCE, serving.wait_with_output()).await.expect("in time").expect("ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let last = said.lines().last().expect("a line").to_owned();
    for said in [last, refused(&url).await, run(place.path(), &url, &["migrate"]).await.2] {
        says(
            &said,
            &[
                "was changed by a newer version: it needs a program that knows migration 9001",
                "run the newer version",
            ],
        );
    }
}

#[tokio::test]
async fn a_database_of_a_build_before_the_first_version_is_refused() {
    let url = durable_database().await;
    let place = tempfile::tempdir().expect("a directory");
    assert_eq!(run(place.path(), &url, &["migrate"]).await.0, 0);
    as_owner(&url, "UPDATE _sqlx_migrations SET checksum = 'x' WHERE version = 1").await;
    for said in [refused(&url).await, run(place.path(), &url, &["migrate"]).await.2] {
        says(
            &said,
            &[
                "PostgreSQL at ",
                "was made by another build before 0.1.0; export it with that program",
                "import it into an empty database with this one",
            ],
        );
    }
}

#[tokio::test]
async fn another_source_of_ids_is_refused() {
    let url = durable_database().await;
    let said = refused_with(&url, &[("TIDEMARK_MESSAGES__IDS", "seqsvr")]).await;
    says(&said, &["[messages] ids", "store"]);
    assert_eq!(tables(&url).await, 0);
    served(&url).await;
    as_owner(&url, "UPDATE meta SET value = 'seqsvr' WHERE key = 'message_ids'").await;
    says(&refused(&url).await, &["the ids of messages come from \"seqsvr\" in this installation"]);
}

#[tokio::test]
async fn a_connection_that_is_not_encrypted_as_asked_is_refused() {
    let (server, files) = Server::start_with_tls("-c fsync=on");
    let name = server.new_database().await;
    let name = name.split(['/', '?']).nth(3).expect("the name of a database").to_owned();
    let to = |host: &str, rest: &str| format!("postgres://postgres@{host}:{}/{name}?{rest}", server.port());
    let authority = format!("sslmode=verify-full&sslrootcert={}", files.authority.display());
    let said = refused(&to("127.0.0.1", "sslmode=verify-full")).await;
    says(&said, &["cannot connect to", "check sslmode and sslrootcert in the URL"]);
    // The certificate is one of 127.0.0.1.
    let said = refused(&to("localhost", &authority)).await;
    says(&said, &["cannot connect to", "check sslmode and sslrootcert in the URL"]);
    let said = refused(&to("127.0.0.1", "sslmode=verify-full&sslrootcert=/nowhere/ca.pem")).await;
    says(&said, &["sslrootcert=/nowhere/ca.pem, which cannot be read", "name a readable file"]);
    for good in [authority.as_str(), "sslmode=require", "sslmode=prefer", "sslmode=disable"] {
        served(&to("127.0.0.1", good)).await;
    }

    let (server, _) = Server::start_with_tls("-c fsync=on -c ssl=off");
    let to = |rest: &str| format!("postgres://postgres@127.0.0.1:{}/postgres?{rest}", server.port());
    for mode in ["require", "verify-full"] {
        let said = refused(&to(&format!("sslmode={mode}"))).await;
        says(&said, &["cannot connect to", "check sslmode and sslrootcert in the URL"]);
    }
}

#[tokio::test]
async fn a_wrong_password_a_wrong_name_and_nobody_there_are_told_apart() {
    let url = durable_database().await;
    let unknown = refused(&as_role(&url, "nobody_knows:s3cret")).await;
    says(&unknown, &["cannot connect to", "role \"nobody_knows\" does not exist", "the user and password"]);
    let name = url.split(['/', '?']).nth(3).expect("the name of a database");
    says(&refused(&url.replace(name, "missing")).await, &["database \"missing\" does not exist"]);
}

/// The line of a log that follows the one that says which program begins.
async fn second_line(log: &mut Lines<BufReader<ChildStderr>>) -> String {
    let mut next = async || timeout(PATIENCE, log.next_line()).await.expect("in time").expect("text");
    next().await.expect("the version");
    next().await.expect("a line")
}

/// A server and its database may start together.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_does_not_run_yet_is_waited_for_and_not_for_ever() {
    let database = Server::start_with("-c fsync=on");
    let url = database.new_database().await;
    database.kill();
    let said = refused_with(&url, &[("TIDEMARK_STORAGE__START_SECONDS", "1")]).await;
    says(&said, &["cannot connect to", "check that it runs there"]);
    let place = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(&place).kill_on_drop(true);
    command.env("TIDEMARK_DATABASE_URL", &url).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut serving = command.spawn().expect("runs");
    let mut log = BufReader::new(serving.stderr.take().expect("piped")).lines();
    let line = second_line(&mut log).await;
    says(&line, &["waiting for the database, 30 s at most", "check that it runs there"]);
    database.run();
    let mut first = [0];
    let out = serving.stdout.as_mut().expect("piped");
    timeout(PATIENCE, out.read_exact(&mut first)).await.expect("in time").expect("listens");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_waiting_and_a_wrong_password_is_not_waited_for() {
    let database = Server::start_with("-c fsync=on");
    let url = database.new_database().await;
    let patient = [("TIDEMARK_STORAGE__START_SECONDS", "3600")];
    let said = refused_with(&as_role(&url, "nobody_knows:s3cret"), &patient).await;
    says(&said, &["role \"nobody_knows\" does not exist"]);
    database.kill();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).envs(patient).kill_on_drop(true);
    command.env("TIDEMARK_DATABASE_URL", &url).stderr(Stdio::piped());
    let mut serving = command.spawn().expect("runs");
    let mut log = BufReader::new(serving.stderr.take().expect("piped")).lines();
    let line = second_line(&mut log).await;
    says(&line, &["waiting for the database, 3600 s at most"]);
    let pid = serving.id().expect("it runs").to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.expect("runs").success());
    assert_eq!(timeout(PATIENCE, serving.wait()).await.expect("in time").expect("ends").code(), Some(1));
}
